"""``recbole-hns samplers``: what a run can name as its sampler."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from recbole_hns.cli.parser import Parser
from recbole_hns.sampling.methods import all_methods
from recbole_hns.settings.parts import Part, settings_of
from recbole_hns.settings.registry import table


def main(arguments: Sequence[str]) -> None:
    """Run ``recbole-hns samplers``."""
    parser = Parser(
        prog="recbole-hns samplers",
        description="List all samplers, pools and pair losses with their settings and defaults.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.parse_args(arguments)
    print(sampler_table())


def sampler_table() -> str:
    """Every sampler with a line about it, and its settings with their defaults; then pools and losses."""
    width = max(map(len, all_methods()))
    lines = []
    for name, one in all_methods().items():
        settings = ", ".join(f"{key}={value}" for key, value in one.defaults({}).items())
        lines += [f"{name:<{width}}  {one.about}", f"{'':<{width}}  {settings or 'nothing to set'}"]
    for kind, key, words in (
        ("pool", "pool", "where candidates come from"),
        ("loss", "pair_loss", "what is minimised"),
    ):
        lines += ["", f"--{key}, {words}:"]
        lines += [_part_line(name, part) for name, part in table(kind).items()]
    return "\n".join(lines)


def _part_line(name: str, part: type[Part]) -> str:
    own = ", ".join(f"{one.key}={one.default}" for one in settings_of(part))
    return f"  {name:<12}  {part.about()}" + (f"  [{own}]" if own else "")
