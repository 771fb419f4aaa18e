"""``recbole-hns convert``: raw files to a RecBole data set, prepared as the paper does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from recbole_hns.bridge.keys import SEEDS, Folder, is_path
from recbole_hns.cli.parser import Parser
from recbole_hns.data.convert import SPLITS, prepare, write_dataset
from recbole_hns.data.interactions import Interactions, statistics
from recbole_hns.data.read import Columns, read_interactions
from recbole_hns.errors import Error
from recbole_hns.files import a_path
from recbole_hns.settings.kinds import LARGE, convert, whole
from recbole_hns.settings.words import plain_word

EPILOG = """\
formats, told by the file's name:
  .mat        a sparse matrix of users × items called data
  .npz        a sparse matrix of users × items, as scipy.sparse.save_npz writes it
  .txt        lines `user item item …`; train.txt and test.txt, or a folder with both, as LightGCN's
  .csv .tsv   a table with a header

examples:
  recbole-hns convert gowalladata.mat --name=gowalla
  recbole-hns convert yelp2018/train.txt yelp2018/test.txt --name=yelp2018 --split=file
  recbole-hns convert ratings.csv --name=books --core=5 \\
    --user=reviewer --item=asin --rating=stars --threshold=4
"""


def make_parser() -> Parser:
    """The command's options."""
    parser = Parser(
        prog="recbole-hns convert",
        description="Turn raw interactions into a RecBole data set and print its statistics.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="+", type=a_path, metavar="PATH", help="files of one format")
    parser.add_argument("--name", required=True, help="the data set's name, for --dataset=NAME")
    parser.add_argument("--output", type=a_path, default=Path("dataset"), help="folder (dataset)")
    parser.add_argument("--overwrite", action="store_true", help="replace a data set of that name")
    parser.add_argument("--core", type=int, default=1, help="k of the k-core; the paper's is 5 (1: all)")
    parser.add_argument(
        "--split",
        choices=SPLITS,
        default=None,
        help="paper: 80/20 per user, 10 %% of training held out; file: the files' own test set, 10 %% "
        "of training held out; none: one file that RecBole splits (file where there is one, else paper)",
    )
    parser.add_argument("--seed", type=int, default=2020, help="of the random split (2020)")
    parser.add_argument("--user", default="user_id", help="column of the user (user_id)")
    parser.add_argument("--item", default="item_id", help="column of the item (item_id)")
    parser.add_argument("--rating", help="column of the rating; all rows are positive if not given")
    parser.add_argument("--threshold", type=float, help="ratings from here on are positive, e.g. 4")
    parser.add_argument("--time", help="column of the time stamp")
    return parser


def main(arguments: Sequence[str]) -> None:
    """Run ``recbole-hns convert …``."""
    options = make_parser().parse_args(arguments)
    check(options)
    columns = Columns(options.user, options.item, options.rating, options.time, options.threshold)
    data = read_interactions(options.paths, columns)
    split = options.split or ("paper" if data.parts is None else "file")
    data = prepare(data, options.core, split, options.seed)
    files = write_dataset(data, options.output, options.name, options.overwrite)
    print(statistics_table(options.name, data))
    print(f"written: {', '.join(str(file) for file in files)}")


def check(options: argparse.Namespace) -> None:
    """Refuse what cannot be, before minutes of reading."""
    if (options.rating is None) != (options.threshold is None):
        raise Error("--rating and --threshold belong together: a column, and where positive begins.")
    convert("core", options.core, whole(1, LARGE), why="the k of a k-core")
    name = options.name
    if not is_path(name) or Path(name).name != name or name.startswith("."):
        raise Error(f"name={plain_word(name)} is not allowed: it becomes the name of a folder.")
    convert("output", str(options.output), Folder)
    convert("seed", options.seed, whole(0, SEEDS))


def statistics_table(name: str, data: Interactions) -> str:
    """The paper's table 1 for one data set."""
    numbers = statistics(data)
    cells = {"data set": name}
    for key in ("users", "items", "interactions", "train", "test"):
        if key in numbers:
            cells[key] = f"{numbers[key]:,}"
    cells["sparsity"] = f"{numbers['sparsity']:.4%}"
    widths = {key: max(len(key), len(value)) for key, value in cells.items()}
    head = "  ".join(f"{key:>{width}}" for key, width in widths.items())
    lines = [head, "  ".join(f"{cells[key]:>{width}}" for key, width in widths.items())]
    if "held_out" in numbers:
        lines.append(f"{numbers['held_out']:,} of the training pairs are held out for validation")
    return "\n".join(lines)
