"""What a report is made from: the ``result.json`` of runs, and the ``runs.jsonl`` of whole studies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from recbole_hns.errors import Error
from recbole_hns.runs.result import read_result

NAMES = ("result.json", "runs.jsonl")
Values = dict[str, float | None]  # a metric's key, such as ndcg@10, and its value


class Best(msgspec.Struct):
    """The best epoch on validation; all None in a run that had nothing to validate on."""

    score: float | None = None
    valid: Values | None = None


class Record(msgspec.Struct):
    """Of a run's record, what a report reads."""

    format: Literal[1]
    model: str
    dataset: str
    sampler: dict[str, object]  # the name, under "sampler", and the settings
    seed: int
    valid_metric: str
    valid_metric_bigger: bool
    best: Best
    test: Values | None  # None in a trial of a search
    config: dict[str, object]

    def __post_init__(self) -> None:
        if not isinstance(self.sampler.get("sampler"), str):
            raise ValueError("its sampler has no name")

    @property
    def method(self) -> str:
        """The sampler's name."""
        return str(self.sampler["sampler"])

    @property
    def values(self) -> Values:
        """What was measured: on the test set where there is one, else on validation."""
        return self.test or self.best.valid or {}


def find_records(paths: Iterable[Path]) -> Iterator[Record]:
    """Every record in the files, and in all ``result.json`` and ``runs.jsonl`` below the folders."""
    for path in paths:
        if not path.exists():
            raise Error(f"{path} does not exist.")
        files = [path]
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.name in NAMES and file.is_file())
        if not files:
            raise Error(
                f"{path} holds no result.json and no runs.jsonl: name the folder of a run or study."
            )
        for file in files:
            if file.suffix == ".jsonl":
                yield from _read_lines(file)
            else:
                yield as_record(read_result(file), file)


def read_lines(file: Path) -> Iterator[dict[str, object]]:
    """The lines of a ``runs.jsonl``, each an object that says its ``kind``."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise Error(f"{file} cannot be read: {' '.join(str(error).split())}.") from error
    for number, line in enumerate(lines, 1):
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Error(f"line {number} of {file} cannot be read: {error}.") from error
        if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
            raise Error(f"line {number} of {file} does not say its kind: it is no line of a runs.jsonl.")
        yield content


def _read_lines(file: Path) -> Iterator[Record]:
    for number, content in enumerate(read_lines(file), 1):
        if content["kind"] == "run":
            yield as_record(content.get("result"), f"line {number} of {file}")


def as_record(content: object, where: object) -> Record:
    """The content of a ``result.json`` as a record; ``where`` it stood is for the error's sentence."""
    try:
        return msgspec.convert(content, Record)
    except (msgspec.ValidationError, RecursionError) as error:
        raise Error(f"{where} cannot be read as a result: {error}.") from error
