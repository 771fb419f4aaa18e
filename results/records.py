"""The records of the studies in results/, one ``runs.jsonl`` each.

    python results/records.py add tuning/gowalla-mf gowalla-mf   # a finished search, or a folder of them
    python results/records.py best gowalla-mf dns                # print a search's best.yaml
    python results/records.py search gowalla-mf dns              # print its domains, out of search.yaml

A line is a JSON object that says its ``kind`` and the ``search`` that it belongs to: ``plan``,
``summary``, ``best`` and ``trials`` are what was in search.json, summary.json, best.yaml and trials.csv;
a ``run`` is a result.json with the ``folder`` where it was, in the search's ``part`` trials, runs (the
winner's tests) or refit.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
KINDS = ("plan", "summary", "best", "trials", "run")
PARTS = ("trials", "runs", "refit")


@cache
def lines_of(study: str) -> list[dict]:
    """The lines of a study's records."""
    file = HERE / study / "runs.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def of_kind(study: str, kind: str) -> dict[str, dict]:
    """The study's lines of a kind that each search has one of, by search."""
    return {line["search"]: line for line in lines_of(study) if line["kind"] == kind}


def add(folder: Path, study: str) -> None:
    """Put a finished search, or all of a folder, into the study's records; one of the same name goes."""
    searches = [file.parent for file in [folder / "search.json", *sorted(folder.glob("*/search.json"))]]
    searches = [search for search in searches if (search / "summary.json").exists()]
    if not searches:
        sys.exit(f"{folder} holds no finished search: name a folder with search.json and summary.json.")
    names = {search.resolve().name for search in searches}
    lines = [line for line in lines_of(study) if line["search"] not in names]
    lines += [line for search in searches for line in search_lines(search)]
    lines.sort(key=lambda line: (line["search"], KINDS.index(line["kind"])))  # runs stay in order
    (HERE / study).mkdir(exist_ok=True)
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    (HERE / study / "runs.jsonl").write_text(text, "utf-8")
    lines_of.cache_clear()
    print(f"{study}/runs.jsonl: {', '.join(sorted(names))}")


def search_lines(folder: Path) -> Iterable[dict]:
    """The lines that a search's folder becomes."""
    name = folder.resolve().name
    yield {"kind": "plan", "search": name, "plan": read_json(folder / "search.json")}
    yield {"kind": "summary", "search": name, "summary": read_json(folder / "summary.json")}
    yield {"kind": "best", "search": name, "yaml": (folder / "best.yaml").read_text("utf-8")}
    with open(folder / "trials.csv", newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    rows = [[number(cell) for cell in row] for row in rows]
    yield {"kind": "trials", "search": name, "columns": head, "rows": rows}
    for part in PARTS:
        for file in sorted((folder / part).rglob("result.json")):
            where = file.parent.relative_to(folder / part).as_posix()
            result = read_json(file)
            yield {"kind": "run", "search": name, "part": part, "folder": where, "result": result}


def read_json(file: Path) -> dict:
    """The file's content."""
    return json.loads(file.read_text("utf-8"))


def number(cell: str) -> str | int | float:
    """A cell of a CSV as a number, if that is written back as it was."""
    for kind in (int, float):
        try:
            if str(kind(cell)) == cell:
                return kind(cell)
        except ValueError:
            continue
    return cell


def domains(study: str, search: str) -> str:
    """A search's part of ``search.yaml``, as a search file of its own."""
    text = (HERE / study / "search.yaml").read_text("utf-8")
    found = re.search(rf"^{re.escape(search)}:\n((?:  .*\n)+)", text, re.MULTILINE)
    if not found:
        sys.exit(f"{study}/search.yaml has no search {search}.")
    return re.sub("^  ", "", found[1], flags=re.MULTILINE)


def best(study: str, search: str) -> str:
    """A search's ``best.yaml``."""
    found = of_kind(study, "best")
    if search not in found:
        sys.exit(f"{study}/runs.jsonl has no search {search}.")
    return found[search]["yaml"]


def main() -> None:
    """Do what the command says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="add|best|search", dest="command")
    command = commands.add_parser("add", help="put finished searches into a study")
    command.add_argument("folder", type=Path)
    command.add_argument("study")
    for name in ("best", "search"):
        command = commands.add_parser(name, help=f"print a search's {name}.yaml")
        command.add_argument("study")
        command.add_argument("search")
    options = parser.parse_args()
    if options.command == "add":
        add(options.folder, options.study)
    else:
        print({"best": best, "search": domains}[options.command](options.study, options.search), end="")


if __name__ == "__main__":
    main()
