"""``recbole-hns schema``: a JSON Schema of all settings."""

from __future__ import annotations

import json
from collections.abc import Sequence

from recbole_hns.bridge.schema import json_schema
from recbole_hns.cli.parser import Parser


def main(arguments: Sequence[str]) -> None:
    """Run ``recbole-hns schema``."""
    parser = Parser(
        prog="recbole-hns schema",
        description="Print a JSON Schema of all settings, for editors that check property files.",
        allow_abbrev=False,
    )
    parser.parse_args(arguments)
    print(json.dumps(json_schema(), indent=1, ensure_ascii=False))
