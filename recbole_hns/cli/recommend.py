"""``recbole-hns recommend``: what a trained recommender is for, as a CSV."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from recbole_hns.bridge.keys import PathText
from recbole_hns.cli.parser import Parser, add_trust
from recbole_hns.errors import Error
from recbole_hns.files import a_path
from recbole_hns.runs.recommend import recommend, write_csv
from recbole_hns.settings.dialect import read_command_line
from recbole_hns.settings.kinds import convert

EPILOG = """\
Everything that the data set says the user took, in training, validation or test, is left out of the
user's list; what the run's own preparation of the data dropped (such as low ratings) is not known and
can come up. Sequential models go on from the user's whole sequence. A user with fewer than K items left
gets those.

examples:
  recbole-hns recommend saved/BPR-Jan-01-2026_12-00-00.pth --users=196,186 --k=5
  recbole-hns recommend saved/BPR-Jan-01-2026_12-00-00.pth --users=users.txt --output=lists.csv
"""


def make_parser() -> Parser:
    """The command's own options; all others are settings."""
    parser = Parser(
        prog="recbole-hns recommend",
        usage="recbole-hns recommend CHECKPOINT [--users=A,B|FILE] [--k=10] [--output=FILE]",
        description="Write each user's top K items to a CSV, in the data set's own ids.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", type=a_path, help="a .pth file of a run")
    parser.add_argument("--users", help="ids, or a file with one per line; all users if not given")
    parser.add_argument("--k", type=int, default=10, help="items per user (10)")
    parser.add_argument("--output", type=a_path, default=Path("recommendations.csv"), help="the CSV")
    add_trust(parser)
    return parser


def main(arguments: Sequence[str]) -> None:
    """Run ``recbole-hns recommend …``."""
    options, rest = make_parser().parse_known_args(arguments)
    _refuse_bad_output(options.output)
    users = None if options.users is None else read_users(options.users)
    rows = recommend(
        options.checkpoint, users, options.k, read_command_line(rest), options.trust_checkpoint
    )
    n_users, n_rows = write_csv(rows, options.output)
    print(f"written: {options.output}, {n_rows:,} recommendations for {n_users:,} users")


def read_users(text: str) -> list[str]:
    """The ids in ``a,b,c``, or in a file with one per line."""
    file = a_path(text)
    is_file = os.path.isfile(file)  # which says no, too, of what is no name of a file
    try:
        lines = file.read_text("utf-8").splitlines() if is_file else text.split(",")
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"users={text} cannot be read: {error}.") from error
    users = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not users:
        raise Error(f"users={text} names no user: give ids, or a file with one per line.")
    return users


def _refuse_bad_output(file: Path) -> None:
    """Before minutes of scoring."""
    convert("output", str(file), PathText)
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise Error(f"output={file} is not allowed: it must be a file in a folder that exists.")
