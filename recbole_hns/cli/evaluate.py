"""``recbole-hns evaluate``: a checkpoint, tested again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from recbole_hns.cli.parser import Parser, add_trust, result_table
from recbole_hns.files import a_path
from recbole_hns.runs.evaluate import evaluate, theorem_interval
from recbole_hns.settings.dialect import read_command_line

EPILOG = """\
Metrics and K are those of the run unless given; any setting that does not change the model or the data
can be given as --key=value. The split is the run's own. --theorem=K says between which bounds the paper's
theorem puts Recall@K, given OPAUC(K/N-), and for how many users.

examples:
  recbole-hns evaluate saved/BPR-Jan-01-2026_12-00-00.pth
  recbole-hns evaluate saved/BPR-Jan-01-2026_12-00-00.pth --metrics=Recall,NDCG,OPAUC --topk=5,20,50
"""


def make_parser() -> Parser:
    """The command's own options; all others are settings."""
    parser = Parser(
        prog="recbole-hns evaluate",
        usage="recbole-hns evaluate CHECKPOINT [--metrics=A,B] [--topk=5,10] [--key=value ...]",
        description="Evaluate a checkpoint on the validation and test sets of its run.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", type=a_path, help="a .pth file of a run")
    parser.add_argument("--theorem", type=int, metavar="K", help="the theorem's bounds of Recall@K")
    add_trust(parser)
    return parser


def main(arguments: Sequence[str]) -> None:
    """Run ``recbole-hns evaluate …``."""
    options, rest = make_parser().parse_known_args(arguments)
    settings = read_command_line(rest)
    table = result_table(evaluate(options.checkpoint, settings, options.trust_checkpoint))
    k, about = options.theorem, ""
    if k is not None:
        about = (
            f"\ntest Recall@{k} is {theorem_interval(options.checkpoint, k, options.trust_checkpoint)}."
        )
    print(table + about)
