"""Whether the settings and the data fit together: what can only be seen once data is loaded."""

from __future__ import annotations

import contextlib
import pickle
import random
import re
import traceback
from collections.abc import Iterator
from logging import getLogger
from pathlib import Path

import numpy as np
import psutil
import torch
from recbole.config import Config
from recbole.data.dataset import Dataset
from recbole.model.abstract_recommender import AbstractRecommender

from recbole_hns.data.loader import TrainLoader
from recbole_hns.errors import Error
from recbole_hns.sampling.pools import POOLS, refuse_users_without_negatives
from recbole_hns.sampling.positives import Positives
from recbole_hns.settings.checks import is_whole, shown

# What RecBole's own code raises when it meets settings or files that it cannot use.
RECBOLE_ERRORS = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError, MemoryError),
    *(OSError, RuntimeError, TypeError, ValueError, pickle.PickleError, re.error),
)
COPIES = 4  # of every parameter: itself, its gradient and Adam's two moments
BYTES_PER_CANDIDATE = 16  # id, score, loss and weight


@contextlib.contextmanager
def recbole_says(what: str) -> Iterator[None]:
    """Tell an error of a call into RecBole, made with nothing but settings and files, in a sentence."""
    try:
        yield
    except (Error, RecursionError):
        raise
    except RECBOLE_ERRORS as error:
        raise Error(f"{what} with these settings: {_reason(error)}.") from error


def _reason(error: BaseException) -> str:
    reason = " ".join(str(error).split()).rstrip(".!")
    if not reason:  # a bare assert says it in code
        reason = traceback.extract_tb(error.__traceback__)[-1].line or ""
    if not isinstance(error, (ValueError, ImportError, NotImplementedError)):
        reason = f"{type(error).__name__}: {reason}"
    return shown(reason, 400)[1:-1]


def check_files(config: Config) -> None:
    """Refuse interaction files that hold nothing, or whose first line is not a header of RecBole's."""
    folder, name, separator = Path(config["data_path"]), config["dataset"], config["field_separator"]
    parts = config["benchmark_filename"] or [None]
    for part in parts:
        file = folder / (f"{name}.inter" if part is None else f"{name}.{part}.inter")
        with open(file, encoding=config["encoding"]) as lines:
            header, first = lines.readline().rstrip("\n"), lines.readline()
        example = separator.join(["user_id:token", "item_id:token"])
        if not all(column.count(":") == 1 for column in header.split(separator)):
            raise Error(
                f"{file} begins with {shown(header)}: its first line must name columns with types, "
                f"separated by field_separator, e.g. {example!r}."
            )
        if not first.strip() and part in (parts[0], None):
            raise Error(f"{file} holds no interaction: it needs a line for each, below the header.")


def check_fit(config: Config, data: Dataset) -> None:
    """Refuse settings that the data set cannot have."""
    for field, key in ((data.uid_field, "USER_ID_FIELD"), (data.iid_field, "ITEM_ID_FIELD")):
        if field not in data.inter_feat:
            raise Error(
                f"{key}={field} is not a column of data set {config['dataset']}, or is not loaded: see "
                f"load_col={shown(config['load_col'])}."
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
    _check_memory(config, data)


def _check_negatives(data: Dataset) -> None:
    """RecBole refuses a user who took all items without a name; name the user before it does."""
    users = np.asarray(data.inter_feat[data.uid_field])
    items = np.asarray(data.inter_feat[data.iid_field])
    full = Positives(users, items, data.user_num, data.item_num).users_without_negatives()
    if len(full):
        refuse_users_without_negatives(data, full)


def _check_memory(config: Config, data: Dataset) -> None:
    """Refuse what this machine cannot hold, rather than be killed half-way."""
    spec, users, rows = config.spec, data.user_num, data.user_num + data.item_num
    pairs = min(config["train_batch_size"], len(data.inter_feat))
    bytes_of = {
        "embedding_size": (config["embedding_size"], 4 * COPIES * rows, f"{rows} users and items"),
        "N": (spec.N, BYTES_PER_CANDIDATE * pairs, f"{pairs} pairs of a batch"),
        "pool_size": (getattr(spec.method, "pool_size", None), 4 * users, f"{users} users"),
        "generator_size": (
            getattr(spec.method, "generator_size", None),
            4 * COPIES * rows,
            f"{rows} users and items",
        ),
    }
    memory = psutil.virtual_memory().total
    for key, (value, each, what) in bytes_of.items():
        if is_whole(value) and value * each > memory:
            raise Error(
                f"{key}={value} needs {value * each / 1e9:,.0f} GB of memory for {what}, and this "
                f"machine has {memory / 1e9:,.0f}: make it smaller."
            )


def check_parts(config: Config, train_set: Dataset, valid_set: Dataset, test_set: Dataset) -> None:
    """Refuse a split that leaves nothing to train on; say what the others being empty means."""
    if len(train_set) == 0:
        raise Error(
            f"data set {config['dataset']} leaves no interaction to train on: see eval_args and the "
            "filters, e.g. user_inter_num_interval."
        )
    if config["repeatable"] or config.spec.pool == "popularity":
        # Whom such a pool cannot draw for shows in the training part alone.
        POOLS[config.spec.pool]("train", train_set, alpha=config.spec.pool_alpha).set_phase("train")
    if len(valid_set) == 0:
        getLogger().warning("the validation set is empty: all epochs are trained, and the last counts.")
    if len(test_set) == 0:
        getLogger().warning("the test set is empty: there will be no test result.")


def check_model(config: Config, model: torch.nn.Module, data: Dataset) -> None:
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


def rehearse(config: Config, model: AbstractRecommender, loader: TrainLoader) -> None:
    """Let a model of RecBole score two pairs, so that sizes that do not fit show before a run begins.

    No random state is touched, and nothing is learned. A model of your own is not tried: its errors
    are to be seen as they are.
    """
    if config.own_model:
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
