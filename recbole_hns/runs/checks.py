"""Whether the settings and the data fit together: what can only be seen once data is loaded."""

from __future__ import annotations

import contextlib
import random
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from recbole.data.dataset import Dataset
from recbole.model.abstract_recommender import AbstractRecommender

from recbole_hns.bridge.says import recbole_says
from recbole_hns.bridge.world import refuse_users_without_negatives, world_of
from recbole_hns.data.loader import TrainLoader
from recbole_hns.errors import Error
from recbole_hns.runs.needs import check_memory
from recbole_hns.runs.overlap import warn_of_known_pairs
from recbole_hns.runs.own_data import refuse_what_cannot_score
from recbole_hns.runs.two_negatives import warn_if_negatives_are_not_read
from recbole_hns.sampling.positives import Positives
from recbole_hns.settings.words import shown

if TYPE_CHECKING:
    from recbole_hns.runs.config import HNSConfig


def check_files(config: HNSConfig) -> None:
    """Refuse interaction files that hold nothing, or whose first line is not a header of RecBole's."""
    folder, name, separator = Path(config["data_path"]), config["dataset"], config["field_separator"]
    parts = config["benchmark_filename"] or [None]
    for part in parts:
        file = folder / (f"{name}.inter" if part is None else f"{name}.{part}.inter")
        with open(file, encoding=config["encoding"]) as lines:
            header = lines.readline().rstrip("\n")
            empty = not any(line.strip() for line in lines)
        example = separator.join(["user_id:token", "item_id:token"])
        if not all(column.count(":") == 1 for column in header.split(separator)):
            raise Error(
                f"{file} begins with {shown(header)}: its first line must name columns with types, "
                f"separated by field_separator, e.g. {example!r}."
            )
        if empty and part in (parts[0], None):
            raise Error(f"{file} holds no interaction: it needs a line for each, below the header.")


def check_fit(config: HNSConfig, data: Dataset) -> None:
    """Refuse settings that the data set cannot have."""
    for field, key in ((data.uid_field, "USER_ID_FIELD"), (data.iid_field, "ITEM_ID_FIELD")):
        if field not in data.inter_feat:
            raise Error(
                f"{key}={field} is not a column of data set {config['dataset']}, or is not loaded: see "
                f"load_col={shown(config['load_col'])}."
            )
        if field in (config["unused_col"] or {}).get("inter", ()):
            raise Error(
                f"unused_col={shown(config['unused_col'])} drops {key}={field}, which every model takes: "
                "leave it out."
            )
    time, in_parts = config["TIME_FIELD"], config["benchmark_filename"]  # which nothing orders
    if config["eval_args"]["order"] == "TO" and not in_parts and time not in data.inter_feat:
        raise Error(
            f"eval_args order=TO needs TIME_FIELD={time}, which is not a column of data set "
            f"{config['dataset']}, or is not loaded: see load_col={shown(config['load_col'])}."
        )
    if not config["repeatable"]:
        _check_negatives(data)
    n_items = data.item_num - 1
    cuts = {"topk": config["topk"], "opauc_k": config["opauc_k"] or []}
    for key, values in cuts.items():
        for k in values if isinstance(values, (list, tuple)) else [values]:
            if k > n_items:
                raise Error(
                    f"{key}={k} is not possible: data set {config['dataset']} has {n_items} items."
                )
    check_memory(config, data)


def _check_negatives(data: Dataset) -> None:
    """RecBole refuses a user who took all items without a name; name the user before it does."""
    users = np.asarray(data.inter_feat[data.uid_field])
    items = np.asarray(data.inter_feat[data.iid_field])
    full = Positives(users, items, data.user_num, data.item_num).users_without_negatives()
    if len(full):
        refuse_users_without_negatives(data, full)


def check_parts(
    config: HNSConfig, train_set: Dataset, valid_set: Dataset, test_set: Dataset | None
) -> None:
    """Refuse a split that leaves nothing to train on; say what the others being empty means."""
    if len(train_set) == 0:
        raise Error(
            f"data set {config['dataset']} leaves no interaction to train on: see eval_args and the "
            "filters, e.g. user_inter_num_interval."
        )
    if (
        "line" in config.method.pool.gives
    ):  # whom a pool cannot draw for shows in the training part alone
        config.method.pool.open(world_of(train_set, config))
    if len(valid_set) == 0:
        getLogger().warning("the validation set is empty: all epochs are trained, and the last counts.")
    if test_set is not None and len(test_set) == 0:
        getLogger().warning("the test set is empty: there will be no test result.")
    if not config["repeatable"]:  # where what was taken may well be taken again
        warn_of_known_pairs(train_set, valid_set, test_set)


def check_model(config: HNSConfig, model: torch.nn.Module, data: Dataset) -> None:
    """Refuse what a model of RecBole would stumble over in its first step."""
    name, smaller = config["model"], min(data.user_num, data.item_num)
    # Each is drawn from, or spread over, the users and the items.
    demands = {
        "DGCF": ("train_batch_size", getattr(model, "cor_batch_size", 0), "compares so many at once"),
        "NCL": ("num_clusters", config["num_clusters"], "makes so many clusters"),
    }
    if name in demands:
        key, wanted, why = demands[name]
        if wanted > smaller:
            raise Error(
                f"{key}={config[key]} is too large for {name} on data set {config['dataset']}: it takes "
                f"{wanted} users and {wanted} items ({name} {why}), and there are {smaller} of one kind."
            )


def rehearse(config: HNSConfig, model: AbstractRecommender, loader: TrainLoader) -> None:
    """Let a model of RecBole score two pairs, so that sizes that do not fit show before a run begins.

    No random state is touched, and nothing is learned. A model of your own is only asked whether its loss
    reads the negatives: its errors are to be seen as they are.
    """
    if config.own_model:
        unread = warn_if_negatives_are_not_read(config, model, loader)
        if config.dataset_class is not None:
            refuse_what_cannot_score(config, model, loader, unread)
        return
    states = random.getstate(), np.random.get_state()
    model.eval()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            batches = iter(getattr(loader, "general_dataloader", loader))
            transform = recbole_says(f"transform={config['transform']} cannot be used")
            with transform if config["transform"] else contextlib.nullcontext():
                batch = next(batches)
            if batch is None:  # RecBole's own user_defined does nothing, and so returns nothing
                raise Error(
                    f"transform={config['transform']} returns no batch: it is a place for code of your "
                    "own, recbole.data.transform.UserDefinedTransform; leave it out."
                )
            batch = batch[:2].to(config["device"])
            with recbole_says(f"{config['model']} cannot score"):
                model.predict(batch)
    finally:
        model.train()
        random.setstate(states[0])
        np.random.set_state(states[1])
