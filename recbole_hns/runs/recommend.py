"""``recbole-hns recommend``: what a trained recommender is for, as a CSV."""

from __future__ import annotations

import argparse
import copy
import csv
import os
from collections.abc import Iterator, Sequence
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

from recbole_hns.bridge.allowed import PATH
from recbole_hns.bridge.config import read_command_line
from recbole_hns.cli.parser import add_trust
from recbole_hns.errors import Error
from recbole_hns.runs.artifact import Tester, Trained, find_model, load_trained
from recbole_hns.sampling.positives import Positives

SCORES = 1 << 24  # scores in a batch of users
HEADER = ("user", "item", "rank", "score")

EPILOG = """\
Everything that the data set says the user took, in training, validation or test, is left out of the
user's list; what the run's own preparation of the data dropped (such as low ratings) is not known and
can come up. Sequential models go on from the user's whole sequence. A user with fewer than K items left
gets those.

examples:
  recbole-hns recommend saved/BPR-Jan-01-2026_12-00-00.pth --users=196,186 --k=5
  recbole-hns recommend saved/BPR-Jan-01-2026_12-00-00.pth --users=users.txt --output=lists.csv
"""


def make_parser(parser_class: type[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The command's own options; all others are settings."""
    parser = parser_class(
        prog="recbole-hns recommend",
        usage="recbole-hns recommend CHECKPOINT [--users=A,B|FILE] [--k=10] [--output=FILE]",
        description="Write each user's top K items to a CSV, in the data set's own ids.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", type=Path, help="a .pth file of a run")
    parser.add_argument("--users", help="ids, or a file with one per line; all users if not given")
    parser.add_argument("--k", type=int, default=10, help="items per user (10)")
    parser.add_argument("--output", type=Path, default=Path("recommendations.csv"), help="the CSV")
    add_trust(parser)
    return parser


def main(arguments: Sequence[str], parser_class: type[argparse.ArgumentParser]) -> None:
    """Run ``recbole-hns recommend …``."""
    options, rest = make_parser(parser_class).parse_known_args(arguments)
    _refuse_bad_output(options.output)
    users = None if options.users is None else read_users(options.users)
    rows = recommend(
        options.checkpoint, users, options.k, read_command_line(rest), options.trust_checkpoint
    )
    n_users, n_rows = write_csv(rows, options.output)
    print(f"written: {options.output}, {n_rows:,} recommendations for {n_users:,} users")


def read_users(text: str) -> list[str]:
    """The ids in ``a,b,c``, or in a file with one per line."""
    is_file = os.path.isfile(text)  # which says no, too, of what is no name of a file
    try:
        lines = Path(text).read_text("utf-8").splitlines() if is_file else text.split(",")
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"users={text} cannot be read: {error}.") from error
    users = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not users:
        raise Error(f"users={text} names no user: give ids, or a file with one per line.")
    return users


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
    found = find_model(checkpoint, trust_checkpoint)
    trained = load_trained(*found, settings, {"eval_batch_size"}, model)
    data = trained.dataset
    if not 1 <= k < data.item_num:
        raise Error(f"k={k} is not allowed: the data set has {data.item_num - 1} items.")
    ids = np.arange(1, data.user_num) if users is None else _ids(data, users)
    frame = data.inter_feat
    taken = Positives(
        frame[data.uid_field].to_numpy(), frame[data.iid_field].to_numpy(), data.user_num, data.item_num
    )
    contexts = _contexts(trained, ids)
    train_data, *_ = trained.split()
    tester = Tester(trained.config, trained.model(train_data._dataset))
    return _rows(tester, train_data._dataset, contexts, ids, taken, k)


def _ids(data: Dataset, users: Sequence[str]) -> np.ndarray:
    known = data.field2token_id[data.uid_field]
    unknown = [user for user in users if user not in known or known[user] == 0]
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise Error(
            f"users={','.join(unknown[:3])}{more} are unknown: data set {data.dataset_name} has no such "
            "users, or its preparation dropped them."
        )
    return np.array([known[user] for user in users])


def _contexts(trained: Trained, ids: np.ndarray):
    """What the model scores for: users, or the sequences of what they took."""
    data = trained.dataset
    if trained.config["MODEL_TYPE"] == ModelType.SEQUENTIAL:
        return _last_sequences(trained, ids)
    return lambda part: data.join(Interaction({data.uid_field: torch.from_numpy(ids[part])}))


def _last_sequences(trained: Trained, ids: np.ndarray):
    """Each user's whole sequence, as RecBole's own augmentation makes it.

    Augmentation gives every interaction the sequence before it; so each user gets one made-up
    interaction more, whose sequence is all that the user took.
    """
    data, config = trained.dataset, trained.config
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


def _rows(tester: Tester, data: Dataset, contexts, ids: np.ndarray, taken: Positives, k: int):
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


def _refuse_bad_output(file: Path) -> None:
    """Before minutes of scoring."""
    PATH.check("output", str(file))
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise Error(f"output={file} is not allowed: it must be a file in a folder that exists.")


def write_csv(rows: Iterator[Row], file: Path) -> tuple[int, int]:
    """Write the file whole or not at all; the numbers of users and rows in it."""
    temporary = file.with_name(f".{file.name}.tmp")
    users, n_rows = set(), 0
    try:
        with open(temporary, "w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(HEADER)
            for row in rows:
                writer.writerow((row.user, row.item, row.rank, f"{row.score:.6g}"))
                users.add(row.user)
                n_rows += 1
        os.replace(temporary, file)
    except OSError as error:
        raise Error(f"output={file} cannot be written: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)
    return len(users), n_rows
