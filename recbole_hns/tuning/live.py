"""What a search shows while it runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray.tune import Callback
from tqdm import tqdm

from recbole_hns.runs.config import HNSConfig
from recbole_hns.tuning.plan import SearchPlan

if TYPE_CHECKING:
    from ray.tune.experiment import Trial


class LiveTable(Callback):
    """A line for every finished trial, and a bar with the best so far."""

    def __init__(self, plan: SearchPlan, config: HNSConfig, trials: int, progress: bool):
        self.keys, self.progress, self.trials = list(plan.space), progress, trials
        self.metric, self.bigger = config["valid_metric"], config["valid_metric_bigger"]
        self.best: float | None = None
        self.bar: tqdm[Any] | None = None
        self.began = self.ended = time.perf_counter()
        self.first_start: float | None = None  # of a trial

    def __enter__(self) -> LiveTable:
        self.bar = tqdm(total=self.trials, desc="trials", disable=not self.progress)
        trained = "trained" if "epochs" in self.keys else "epochs"
        self._line([*self.keys, trained, self.metric, "seconds", ""])
        return self

    def __exit__(self, *error: object) -> None:
        self.ended = time.perf_counter()
        if self.bar is not None:
            self.bar.close()

    def __getstate__(self) -> dict[str, Any]:
        """Ray saves callbacks with the search; a bar cannot be saved."""
        return {**self.__dict__, "bar": None}

    @property
    def startup_seconds(self) -> float:
        """Until the first trial began: Ray's workers load the libraries."""
        return (self.first_start or self.began) - self.began

    @property
    def seconds(self) -> float:
        """Since then."""
        return self.ended - self.began - self.startup_seconds

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Called by Ray when a trial's process is ready."""
        if self.first_start is None:
            self.first_start = time.perf_counter()

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        """Called by Ray for every report."""
        score = result.get("best_score")
        if score is not None and self._better(score):
            self.best = score
            if self.bar is not None:
                self.bar.set_postfix_str(f"best {self.metric} {score:.4f}")

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Called by Ray at the end of a trial."""
        result = trial.last_result or {}
        score = result.get("best_score")
        note = "best so far" if score is not None and score == self.best else ""
        self._trial_line(trial, result, note)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Called by Ray when a trial has failed."""
        file = getattr(trial, "error_file", None)
        text = Path(file).read_text("utf-8") if file and Path(file).is_file() else ""
        self._trial_line(trial, trial.last_result or {}, f"failed: {reason_of(text)}")

    def _trial_line(self, trial: Trial, result: dict[str, Any], note: str) -> None:
        values = [trial.config["trial"].get(key) for key in self.keys]
        values += [result.get("epoch"), result.get("best_score"), result.get("seconds"), note]
        self._line(values)
        if self.bar is not None:
            self.bar.update(1)

    def _line(self, values: list[Any]) -> None:
        if self.progress:
            tqdm.write("  ".join(_cell(value) for value in values).rstrip())

    def _better(self, score: float) -> bool:
        if self.best is None:
            return True
        return score > self.best if self.bigger else score < self.best


def reason_of(error: str) -> str:
    """The last line of a trial's error, which says what went wrong."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return lines[-1] if lines else "unknown reason"


def _cell(value: Any) -> str:
    if value is None:
        value = ""
    return f"{value:<12.5g}" if isinstance(value, float) else f"{value!s:<12}"
