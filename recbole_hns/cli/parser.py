"""What all commands have in common: the parser and the table of results."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from recbole_hns.errors import Error


class Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, by :class:`Error`."""

    def error(self, message: str) -> NoReturn:
        """Called by argparse for a bad argument."""
        raise Error(f"{message}.")


def add_trust(parser: argparse.ArgumentParser) -> None:
    """``--trust_checkpoint``, of every command that reads one."""
    parser.add_argument(
        "--trust_checkpoint",
        nargs="?",
        const=True,
        default=False,
        type=_flag,
        help="read pickled checkpoints too, such as RecBole's own: they can run code of their writer",
    )


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def result_table(result: dict[str, Any]) -> str:
    """The metrics of the best epoch on validation and of the model tested."""
    valid, test = result["best_valid_result"] or {}, result["test_result"] or {}
    values = [str(value) for value in (*valid.values(), *test.values())]
    decimals = max((len(value.partition(".")[2]) for value in values), default=0)

    def cell(metrics: dict[str, float], name: str) -> str:
        return f"{metrics[name]:.{decimals}f}" if name in metrics else ""

    lines = [("metric", "valid", "test")]
    lines += [(name, cell(valid, name), cell(test, name)) for name in {**valid, **test}]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return "\n".join(f"{m:<{widths[0]}}  {v:>{widths[1]}}  {t:>{widths[2]}}" for m, v, t in lines)
