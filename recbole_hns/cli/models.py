"""``recbole-hns models``: RecBole's models, and how each is trained."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from recbole_hns.cli.parser import Parser
from recbole_hns.models.cards import PATHS, support_table


def main(arguments: Sequence[str]) -> None:
    """Run ``recbole-hns models``."""
    parser = Parser(
        prog="recbole-hns models",
        description="List RecBole's models and how each is trained with a sampler.",
        epilog="\n".join(f"{path}: {what}" for path, what in PATHS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--markdown", action="store_true", help="as a Markdown table")
    print(support_table(parser.parse_args(arguments).markdown))
