"""Whether a model can score the batches of a data set of its own class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from recbole.model.abstract_recommender import AbstractRecommender

from recbole_hns.bridge.says import recbole_says
from recbole_hns.errors import Error

if TYPE_CHECKING:
    from recbole_hns.data.loader import TrainLoader
    from recbole_hns.runs.config import HNSConfig


def refuse_what_cannot_score(
    config: HNSConfig, model: AbstractRecommender, loader: TrainLoader, unread: bool
) -> None:
    """Let the model score two pairs, as a sampler does with candidates in the place of the positives.

    ``unread`` says that its loss does not read the negatives.

    Raises:
        Error: for a model that reads what a data loader of its own puts into batches, as SRGNN its graphs.
    """
    data = loader._dataset
    batch = data.join(data.inter_feat[torch.arange(min(2, len(data)))]).to(config["device"])
    what = "learns from no negatives, and cannot score any" if unread else "cannot score candidates"
    model.eval()
    try:
        with (
            torch.random.fork_rng(devices=range(torch.cuda.device_count())),
            torch.no_grad(),
            recbole_says(f"{config['model']} {what}"),
        ):
            _predict(config["model"], model, batch)
    finally:
        model.train()


def _predict(name: str, model: AbstractRecommender, batch: object) -> None:
    try:
        model.predict(batch)
    except KeyError as error:
        column = error.args[0]
        if column in batch:  # type: ignore[operator]
            raise
        raise Error(
            f"{name} reads {column} of a batch, which is no column of its data set: batches with more than "
            "rows, such as graphs that a data loader of its own makes, cannot be scored for candidates; "
            "train it by its own package."
        ) from error
