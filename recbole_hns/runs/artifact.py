"""What a run leaves: a model with its configuration and data, to evaluate and to recommend from."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from recbole.config import Config
from recbole.data.dataset import Dataset
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.utils import get_model, init_seed

from recbole_hns.bridge.config import LayeredConfig
from recbole_hns.bridge.install import install
from recbole_hns.bridge.keys import PathText
from recbole_hns.data.fingerprint import fingerprint
from recbole_hns.errors import Error
from recbole_hns.files import a_path
from recbole_hns.kernels import get_kernels
from recbole_hns.models.cards import has_vectors, scorer_of
from recbole_hns.models.scorer import Scorer
from recbole_hns.runs import pipeline
from recbole_hns.runs.resume import rebuild_config
from recbole_hns.sampling.query import vectors_of
from recbole_hns.settings.kinds import convert
from recbole_hns.training.checkpoint import Content, read_checkpoint
from recbole_hns.training.run_files import best_file, last_file, runs_in
from recbole_hns.training.state import load_others

# Where a run wrote to may be out of reach now, and nothing is written here: RecBole's default stands.
NOTHING_WRITTEN = {"checkpoint_dir": "saved", "result_dir": None}


class IdVectors(NamedTuple):
    """Vectors whose dot products are the model's scores, and the ids that their rows are of."""

    users: npt.NDArray[np.float32]  # (n_users, d)
    items: npt.NDArray[np.float32]  # (n_items, d)
    user_ids: npt.NDArray[Any]
    item_ids: npt.NDArray[Any]


class Artifact:
    """A trained model; everything is read when it is first asked for.

    ``given`` are settings that replace the run's own; only those of ``free``, and such as change nothing
    that is computed, can be other than the run's. ``model`` is needed where RecBole does not know the class.
    """

    def __init__(
        self,
        file: Path,
        state: Content,
        given: dict[str, Any] | None = None,
        free: set[str] | frozenset[str] = frozenset(),
        model: type[AbstractRecommender] | None = None,
        record: dict[str, Any] | None = None,
        dataset_class: type[Dataset] | None = None,
    ):
        self.file, self.state, self.record, self._model_class = file, state, record, model
        self.dataset_class = dataset_class
        self.config = _config(state, file, given or {}, free, model)
        self.config["log_wandb"] = False

    # ------------------------------------------------------------- what it measured

    @cached_property
    def test(self) -> dict[str, float]:
        """The metrics on the test set."""
        if self.record is not None and self.record["test"]:
            return dict(self.record["test"])
        return dict(self.evaluate()["test_result"] or {})

    @property
    def history(self) -> pd.DataFrame:
        """A row for each epoch: its loss, seconds, measured hardness and validation."""
        rows = self.state.get("history") if self.record is None else self.record["epochs"]
        if rows is None:
            last = last_file(self.file)
            rows = read_checkpoint(last).get("history", []) if last.is_file() else []
        parts = ("hardness", "valid")
        flat = [
            {**row, **{k: v for part in parts for k, v in row.get(part, {}).items()}} for row in rows
        ]
        return pd.DataFrame(flat).drop(columns=list(parts), errors="ignore")

    def evaluate(self, **settings: Any) -> dict[str, Any]:
        """``best_valid_result`` and ``test_result`` on the split of the run, e.g. ``topk=[5, 20]``."""
        from recbole_hns.runs.evaluate import evaluate_artifact, with_settings

        return evaluate_artifact(with_settings(self, settings) if settings else self)

    def recommend(self, users: Sequence[object] | None = None, k: int = 10) -> pd.DataFrame:
        """The top ``k`` items of users, in the data set's own ids: user, item, rank, score."""
        from recbole_hns.runs.recommend import recommend_from

        wanted = None if users is None else [str(user) for user in users]
        return pd.DataFrame(list(recommend_from(self, wanted, k)))

    def vectors(self) -> IdVectors:
        """The vectors of all users and items, for an index of nearest neighbours.

        Raises:
            Error: for a model whose scores are no dot products.
        """
        from recbole_hns.runs.recommend import contexts_of

        if not has_vectors(type(self.model)):
            raise Error(
                f"{self.config['model']} has no vectors: its scores are no dot products; use "
                "recommend()."
            )
        data = self.data
        users = np.arange(1, data.user_num)
        contexts = contexts_of(self, users)
        found, items = [], torch.empty(0)
        for first in range(0, len(users), 4096):
            part = slice(first, first + 4096)
            batch = contexts(part).to(self.config["device"])
            batch[self.model.ITEM_ID] = torch.ones(
                len(batch), dtype=torch.long, device=self.model.device
            )
            with torch.no_grad():
                v = vectors_of(self.scorer.encode(batch))
            found.append(v.context.detach()[v.rows].cpu())
            items = v.items.detach().cpu()
        user_ids, item_ids = data.field2id_token[data.uid_field], data.field2id_token[data.iid_field]
        return IdVectors(
            torch.cat(found).numpy(), items[1 : data.item_num].numpy(), user_ids[1:], item_ids[1:]
        )

    # ------------------------------------------------------------- what it is made of

    @cached_property
    def data(self) -> Dataset:
        """The whole data set, as the run loaded it."""
        return pipeline.load(self.config, dataset_class=self.dataset_class)

    @cached_property
    def parts(self) -> pipeline.Parts:
        """The data, split as the run did."""
        data = copy.copy(self.data)  # a split changes the form of what it splits
        parts = pipeline.split(self.config, data)
        expected = self.state.get("data")
        if expected not in (None, fingerprint(parts.train)):
            raise Error(
                f"data set {self.config['dataset']} is not the one that the checkpoint was trained on: "
                "its training set is another."
            )
        return parts

    @property
    def train_set(self) -> Dataset:
        """What the model was trained on."""
        return self.parts.train

    @cached_property
    def model(self) -> AbstractRecommender:
        """The model with its parameters, ready to score."""
        config, device = self.config, self.config["device"]
        train = self.parts.train
        init_seed(config["seed"], config["reproducibility"])
        model_class = getattr(config, "model_class", None) or get_model(config["model"])
        model = model_class(config, train).to(device)
        try:
            model.load_state_dict(self.state["state_dict"])
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise Error(f"the checkpoint does not fit {config['model']}: {reason}") from error
        load_others(model, self.state, device)
        return model.eval()

    @cached_property
    def scorer(self) -> Scorer:
        """How the model scores."""
        backend = get_kernels(self.config["hns_backend"] or "auto", self.config["device"])
        return scorer_of(type(self.model))(self.model, self.parts.train, backend)


def load(
    where: str | Path,
    trust_checkpoint: bool = False,
    model: type[AbstractRecommender] | None = None,
    dataset_class: type[Dataset] | None = None,
) -> Artifact:
    """The model of a run: of its ``.pth`` file, or the best model of a folder's newest run.

    ``model`` and ``dataset_class`` are the run's, where they are classes of your own.

    Raises:
        Error: if there is none, or it is a pickle and ``trust_checkpoint`` is not set.
    """
    return open_artifact(where, trust=trust_checkpoint, model=model, dataset_class=dataset_class)


def open_artifact(
    where: str | Path,
    given: dict[str, Any] | None = None,
    free: set[str] | frozenset[str] = frozenset(),
    trust: bool = False,
    model: type[AbstractRecommender] | None = None,
    dataset_class: type[Dataset] | None = None,
) -> Artifact:
    """The artifact of a checkpoint with other settings."""
    install()
    state, file = find_model(where, trust)
    return Artifact(file, state, given, free, model, dataset_class=dataset_class)


def find_model(where: str | Path, trust: bool = False) -> tuple[Content, Path]:
    """What a checkpoint holds, and its file; of a folder, the best model of its newest run."""
    convert("checkpoint", str(where), PathText)
    file = a_path(where)
    if file.is_dir():
        newest = next(runs_in(file), None)
        if newest is None:
            raise Error(f"there is no run in {file}: name a .pth file.")
        file = best_file(newest)
    return read_checkpoint(file, trust=trust), file


def settings_of(state: Content) -> dict[str, Any]:
    """All settings that the run of a checkpoint had."""
    final: dict[str, Any] = (
        state["final"] if "final" in state else state["recbole_config"].final_config_dict
    )
    return final


def _config(
    state: Content,
    file: Path,
    given: dict[str, Any],
    free: set[str] | frozenset[str],
    model: type[AbstractRecommender] | None,
) -> Config:
    config: Config = state.get("recbole_config")
    if config is None:
        return rebuild_config(
            state,
            file,
            model,
            config_dict={**NOTHING_WRITTEN, **given},
            free=free,
            config_class=LayeredConfig,
        )
    for key, value in given.items():
        config[key] = str(a_path(value) / config["dataset"]) if key == "data_path" else value
    config["device"] = torch.device("cuda" if torch.cuda.is_available() and config["use_gpu"] else "cpu")
    return config
