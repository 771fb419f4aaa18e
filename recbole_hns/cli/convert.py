"""``recbole-hns convert``: raw files to a RecBole data set, prepared as the paper does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from recbole_hns.bridge.allowed import FOLDER, PATH, SEEDS, whole
from recbole_hns.data.convert import SPLITS, prepare, write_dataset
from recbole_hns.data.interactions import Interactions, statistics
from recbole_hns.data.read import Columns, read_interactions
from recbole_hns.errors import Error
from recbole_hns.settings.checks import shown

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


def make_parser(parser_class: type[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The command's options."""
    parser = parser_class(
        prog="recbole-hns convert",
        description="Turn raw interactions into a RecBole data set and print its statistics.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files of one format")
    parser.add_argument("--name", required=True, help="the data set's name, for --dataset=NAME")
    parser.add_argument("--output", type=Path, default=Path("dataset"), help="folder (dataset)")
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


def main(arguments: Sequence[str], parser_class: type[argparse.ArgumentParser]) -> None:
    """Run ``recbole-hns convert …``."""
    options = make_parser(parser_class).parse_args(arguments)
    if (options.rating is None) != (options.threshold is None):
        raise Error("--rating and --threshold belong together: a column, and where positive begins.")
    if options.core < 1:
        raise Error(f"core={options.core} is not allowed: the k of a k-core is at least 1.")
    name = options.name
    if not PATH.test(name) or Path(name).name != name or name.startswith("."):
        raise Error(f"name={shown(name)[1:-1]} is not allowed: it becomes the name of a folder.")
    FOLDER.check("output", str(options.output))
    whole(0, SEEDS).check("seed", options.seed)
    columns = Columns(options.user, options.item, options.rating, options.time, options.threshold)
    data = read_interactions(options.paths, columns)
    split = options.split or ("paper" if data.parts is None else "file")
    data = prepare(data, options.core, split, options.seed)
    files = write_dataset(data, options.output, options.name, options.overwrite)
    print(statistics_table(options.name, data))
    print(f"written: {', '.join(str(file) for file in files)}")


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
