"""``recbole-hns report``: the paper's table and figures from finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recbole_hns.bridge.keys import Folder
from recbole_hns.cli.parser import Parser
from recbole_hns.files import a_path
from recbole_hns.report import make_report
from recbole_hns.settings.kinds import convert


def main(arguments: Sequence[str]) -> None:
    """Write the report, print its table."""
    parser = Parser(
        prog="recbole-hns report",
        description="Tables, figures and a page from the result.json of runs and searches, and from "
        "runs.jsonl of studies.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths", nargs="+", type=a_path, metavar="RUNS", help="folders of runs, searches or studies"
    )
    parser.add_argument("--output", type=a_path, default=Path("report"), help="folder (report)")
    parser.add_argument("--metrics", help="of tables and bars, e.g. ndcg@50,recall@50")
    parser.add_argument("--ours", help="methods that are no baselines: e.g. dns,softmax_v")
    parser.add_argument("--title", default="Samplers", help="of the page")
    options = parser.parse_args(arguments)
    convert("output", str(options.output), Folder)
    metrics = options.metrics.split(",") if options.metrics else None
    ours = [name.strip() for name in options.ours.split(",")] if options.ours else []
    files = make_report(options.paths, options.output, metrics, options.title, ours)
    print((options.output / "table.md").read_text("utf-8"))
    print(f"written: {', '.join(str(file) for file in files)}")
