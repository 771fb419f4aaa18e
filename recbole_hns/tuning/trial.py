"""A trial of a search: a run with a reporter and without a test set."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from recbole_hns.files import write_json
from recbole_hns.runs.config import HNSConfig
from recbole_hns.runs.pipeline import Parts, make_ready
from recbole_hns.runs.result import make_result
from recbole_hns.runs.run import State, finish
from recbole_hns.training.checkpoint import read_checkpoint, write_checkpoint
from recbole_hns.training.history import seconds_of
from recbole_hns.training.run_files import LAST, runs_in
from recbole_hns.training.trainer import HNSTrainerMixin
from recbole_hns.tuning.ray_names import Checkpoint, get_checkpoint, report, trial_name
from recbole_hns.tuning.study import NUMBER, Line, Reports, Study, folder_of

STATE = "trial.pth"  # of a trial that another one may take over


def run_trial(config: dict[str, Any], study: Study, parts: Parts) -> None:
    """Called by Ray in a process of its own: train with one choice of settings, and report."""
    # By its name: with the settings of another trial that are taken over comes that trial's number.
    settings, folder = dict(config["trial"]), folder_of(study.folder, trial_name())
    del settings[NUMBER]
    study.enter()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)  # RecBole's trainer opens its TensorBoard folder where it stands
    hns, reports = study.config(settings), Reports.read(folder)
    state = None if reports.done else _state(hns, settings, reports)
    reporter = Reporter(hns, settings, reports, shares=study.plan.scheduler == "pbt")
    reporter.replay()
    if not reports.done:
        finish(hns, make_ready(hns, parts), run=state, reporter=reporter)
        reports.finish()
        clear(folder)


class Reporter:
    """Called after every validation: tells the disk and Ray."""

    def __init__(self, config: HNSConfig, settings: dict[str, Any], reports: Reports, shares: bool):
        self.config, self.settings, self.reports = config, settings, reports
        self.shares = shares  # whether another trial may take over this one's weights
        self.bigger = bool(config["valid_metric_bigger"])
        self._time = time.perf_counter()

    def replay(self) -> None:
        """What was seen before the search was stopped, for schedulers that compare trials."""
        lines, self.reports.lines = self.reports.lines, []
        for line in lines:
            self.reports.lines.append(line)
            if not self.shares or (self.reports.done and line is lines[-1]):
                report(self._told(line))

    def __call__(self, trainer: HNSTrainerMixin, epoch: int, score: float) -> None:
        row, now = trainer.history[-1], time.perf_counter()
        line: Line = {
            "epoch": epoch + 1,
            "score": float(score),
            "valid": {name: float(value) for name, value in row["valid"].items()},
            "train_loss": float(row["train_loss"]),
            "seconds": round(now - self._time, 3),
            "settings": self.settings,
        }
        self._time = now
        self.reports.add(line)
        best = self.reports.best(self.bigger)
        if best is not None and best["settings"] == self.settings:
            seconds = seconds_of(trainer.history)
            record = make_result(self.config, trainer, trainer.best_valid_result, None, seconds)
            write_json(record, self.reports.folder / "result.json")
        if not self.shares:
            report(self._told(line))
            return
        with tempfile.TemporaryDirectory() as folder:
            own = {"trial": {"folder": str(self.reports.folder), "settings": self.settings}}
            write_checkpoint({**trainer.run_state(epoch + 1), **own}, Path(folder) / STATE)
            report(self._told(line), checkpoint=Checkpoint.from_directory(folder))

    def _told(self, line: Line) -> dict[str, Any]:
        best = self.reports.best(self.bigger) or line
        return {
            "epoch": line["epoch"],
            "score": line["score"],
            "best_score": best["score"],
            "best_epoch": best["epoch"] - 1,
            "seconds": sum(one["seconds"] for one in self.reports.lines),
        }


# ----------------------------------------------------------------------------------- going on


def _state(config: HNSConfig, settings: dict[str, Any], reports: Reports) -> State | None:
    """What a trial goes on from: its own last state, or that of a trial which it takes over."""
    handed = get_checkpoint()
    if handed is None:
        for file in runs_in(reports.folder):
            state = read_checkpoint(file)
            reports.cut(state["epoch"])
            return state, file
        reports.cut(0)
        return None
    with handed.as_directory() as place:
        state = read_checkpoint(Path(place) / STATE)
    whose = state.pop("trial")
    if whose != {"folder": str(reports.folder), "settings": settings}:
        state = take_over(state, config)
    remove(reports.folder.glob("*.pth*"))
    file = reports.folder / f"taken{LAST}"
    write_checkpoint({**state, "best_valid_result": None}, file)
    return read_checkpoint(file), file


def take_over(state: dict[str, Any], config: HNSConfig) -> dict[str, Any]:
    """Another trial's weights under settings of one's own, whose scores are counted anew.

    What the other trial had reached was reached with its settings, and stays its own.
    """
    kept = ("epoch", "train_loss", "train_seconds")
    optimizer = dict(state["optimizer"])
    rates = {"lr": config["learning_rate"], "weight_decay": config["weight_decay"]}
    optimizer["param_groups"] = [{**group, **rates} for group in optimizer["param_groups"]]
    return {
        **state,
        "optimizer": optimizer,
        "history": [{key: row[key] for key in kept} for row in state["history"]],
        "best_valid_score": float("-inf") if config["valid_metric_bigger"] else float("inf"),
        "cur_step": 0,
    }


def clear(folder: Path) -> None:
    """Keep what is known of a trial, and not what it would go on from."""
    remove(folder.glob("*.pth*"))
    for name in ("log", "log_tensorboard"):
        shutil.rmtree(folder / name, ignore_errors=True)


def remove(files: Iterable[Path]) -> None:
    """Delete files that are not needed any more."""
    for file in files:
        file.unlink(missing_ok=True)
