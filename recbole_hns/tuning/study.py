"""What the trials of a search have in common, and what is known of each."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import torch

from recbole_hns.files import whole_file
from recbole_hns.runs.config import HNSConfig
from recbole_hns.settings.registry import adopt, import_parts
from recbole_hns.tuning.plan import ModelClass, SearchPlan


class Line(TypedDict):
    """A validation of a trial."""

    epoch: int  # how many were trained
    score: float
    valid: dict[str, float]
    train_loss: float
    seconds: float  # since the validation before
    settings: dict[str, Any]  # that were in force


@dataclass(frozen=True)
class Study:
    """What all trials of a search have in common."""

    plan: SearchPlan
    model: ModelClass | None  # of one's own
    threads: int
    folder: str  # of the search
    start: str  # where the search was begun
    modules: list[str]  # that register parts
    parts: list[tuple[str, str, Any]]  # that no module registers

    def enter(self) -> None:
        """Know in this process what the search's own process knows."""
        torch.set_num_threads(self.threads)
        logging.getLogger().setLevel(logging.ERROR)
        if os.path.isdir(self.start):
            os.chdir(self.start)
        import_parts(self.modules)
        adopt(self.parts)

    def config(self, settings: dict[str, Any]) -> HNSConfig:
        """The configuration of a trial that stands in its own folder."""
        own = {"checkpoint_dir": ".", "result_dir": None, "show_progress": False, "state": "ERROR"}
        return self.plan.config({**settings, **own}, self.model)


NUMBER = "number"  # of a trial, beside the settings that it begins with


def name_of(number: int) -> str:
    """What a trial is called."""
    return f"{number:04d}"


def folder_of(search: str | Path, name: str) -> Path:
    """Where a trial keeps its files."""
    return Path(search) / "trials" / name


@dataclass
class Reports:
    """A trial's validations, on the disk as they come: what is known of it after any end."""

    folder: Path
    lines: list[Line] = field(default_factory=list)
    done: bool = False  # trained to its end

    @classmethod
    def read(cls, folder: Path) -> Reports:
        """Those that there are, up to a line that is none: the process was killed while it wrote."""
        reports, file = cls(folder), folder / "reports.jsonl"
        for text in file.read_text("utf-8", "replace").splitlines() if file.is_file() else ():
            try:
                line = json.loads(text)
                if line == {"done": True}:
                    reports.done = True
                else:
                    reports.lines.append(msgspec.convert(line, Line))
            except (ValueError, ArithmeticError, RecursionError):
                break
        return reports

    def cut(self, epoch: int) -> None:
        """Forget what comes after an epoch, since it is trained again."""
        self.lines = [line for line in self.lines if line["epoch"] <= epoch]
        with whole_file(self.folder / "reports.jsonl") as out:
            out.writelines(json.dumps(line) + "\n" for line in self.lines)

    def add(self, line: Line) -> None:
        """Another validation."""
        self.lines.append(line)
        self._append(line)

    def finish(self) -> None:
        """Nothing comes after this."""
        self.done = True
        self._append({"done": True})

    def _append(self, line: object) -> None:
        with open(self.folder / "reports.jsonl", "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")

    def best(self, bigger: bool) -> Line | None:
        """The first of the best scores, with the settings that made it."""
        sign = 1 if bigger else -1
        return max(self.lines, key=lambda line: sign * line["score"], default=None)
