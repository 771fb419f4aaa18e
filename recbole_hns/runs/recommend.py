"""What a trained recommender is for: each user's top items."""

from __future__ import annotations

import copy
import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from recbole.data.dataset import Dataset
from recbole.data.interaction import Interaction
from recbole.data.transform import construct_transform
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.utils import ModelType
from tqdm import tqdm

from recbole_hns.errors import Error
from recbole_hns.files import whole_file
from recbole_hns.runs.artifact import Artifact, open_artifact
from recbole_hns.runs.tester import Tester
from recbole_hns.sampling.positives import Ids, Positives
from recbole_hns.settings.words import as_cell

SCORES = 1 << 24  # scores in a batch of users
HEADER = ("user", "item", "rank", "score")
Contexts = Callable[[slice], Interaction]  # of some of the users


@dataclass
class Row:
    """One recommendation."""

    user: str
    item: str
    rank: int
    score: float


def recommend(
    checkpoint: str | Path,
    users: Sequence[str] | None = None,
    k: int = 10,
    settings: dict[str, Any] | None = None,
    trust_checkpoint: bool = False,
    model: type[AbstractRecommender] | None = None,
) -> Iterator[Row]:
    """The top ``k`` items of each user, all users if none are named, in the data set's own ids.

    What a user is known to have taken, in training, validation or test, is left out. ``model`` is the
    class where RecBole does not know it.
    """
    artifact = open_artifact(checkpoint, settings, {"eval_batch_size"}, trust_checkpoint, model)
    return recommend_from(artifact, users, k)


def recommend_from(artifact: Artifact, users: Sequence[str] | None = None, k: int = 10) -> Iterator[Row]:
    """The same of a model that is there already."""
    data = artifact.data
    if not 1 <= k < data.item_num:
        raise Error(f"k={k} is not allowed: the data set has {data.item_num - 1} items.")
    ids = np.arange(1, data.user_num) if users is None else _ids(data, users)
    frame = data.inter_feat
    taken = Positives(
        frame[data.uid_field].to_numpy(), frame[data.iid_field].to_numpy(), data.user_num, data.item_num
    )
    contexts = contexts_of(artifact, ids)
    return _rows(Tester(artifact.config, artifact.model), artifact.parts.train, contexts, ids, taken, k)


def _ids(data: Dataset, users: Sequence[str]) -> Ids:
    known = data.field2token_id[data.uid_field]
    unknown = [user for user in users if user not in known or known[user] == 0]
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise Error(
            f"users={','.join(unknown[:3])}{more} are unknown: data set {data.dataset_name} has no such "
            "users, or its preparation dropped them."
        )
    return np.array([known[user] for user in users])


def contexts_of(artifact: Artifact, ids: Ids) -> Contexts:
    """What the model scores for: users, or the sequences of what they took."""
    data = artifact.data
    if artifact.config["MODEL_TYPE"] == ModelType.SEQUENTIAL:
        return _last_sequences(artifact, ids)
    joined = artifact.parts.train

    def contexts(part: slice) -> Interaction:
        return joined.join(Interaction({data.uid_field: torch.from_numpy(ids[part])}))

    return contexts


def _last_sequences(artifact: Artifact, ids: Ids) -> Contexts:
    """Each user's whole sequence, as RecBole's own augmentation makes it.

    Augmentation gives every interaction the sequence before it; so each user gets one made-up
    interaction more, whose sequence is all that the user took.
    """
    data, config = artifact.data, artifact.config
    uid, time = data.uid_field, data.time_field
    if config["benchmark_filename"]:
        raise Error(f"{config['model']} cannot recommend here: the data set's files hold sequences.")
    frame = data.inter_feat
    own = frame[frame[uid].isin(ids)].sort_values([uid, time], kind="stable")
    made_up = own.groupby(uid).tail(1).assign(**{time: lambda rows: rows[time] + 1})
    extended = copy.copy(data)
    extended.inter_feat = pd.concat([own, made_up], ignore_index=True)
    extended._change_feat_format()
    users = np.asarray(extended.inter_feat[uid])
    last = np.append(np.flatnonzero(users[1:] != users[:-1]), len(users) - 1)
    at = last[np.searchsorted(users[last], ids)]
    transform = construct_transform(config)
    return lambda part: transform(extended, extended[at[part]])


def _rows(
    tester: Tester, data: Dataset, contexts: Contexts, ids: Ids, taken: Positives, k: int
) -> Iterator[Row]:
    """The lists, batch by batch."""
    step = max(1, SCORES // data.item_num)
    parts = [slice(start, start + step) for start in range(0, len(ids), step)]
    item_names, user_names = (data.field2id_token[f] for f in (data.iid_field, data.uid_field))
    for part in tqdm(parts, "users", disable=len(parts) == 1 or not tester.config["show_progress"]):
        users = ids[part]
        rows = np.repeat(np.arange(len(users)), taken.counts[users])
        known = np.concatenate([taken.row(user) for user in users])
        scores = tester.scores(contexts(part), (torch.from_numpy(rows), torch.from_numpy(known)), data)
        values, items = (tensor.cpu().numpy() for tensor in scores.float().topk(k))
        for user, of_user, its_items in zip(users, values, items):
            for rank, (score, item) in enumerate(zip(of_user, its_items), start=1):
                if score > -np.inf:
                    yield Row(str(user_names[user]), str(item_names[item]), rank, float(score))


def write_csv(rows: Iterator[Row], file: Path) -> tuple[int, int]:
    """Write the file whole or not at all; the numbers of users and rows in it.

    An id that a spreadsheet would run as a formula, such as ``=1+1``, gets a ``'`` in front.
    """
    users, n_rows = set(), 0
    with whole_file(file, newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER)
        for row in rows:
            cells = (as_cell(row.user), as_cell(row.item))
            writer.writerow((*cells, row.rank, f"{row.score:.6g}"))
            users.add(row.user)
            n_rows += 1
    return len(users), n_rows
