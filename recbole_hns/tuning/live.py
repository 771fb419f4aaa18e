"""What a search shows while it runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ray.tune import Callback
from tqdm import tqdm

from recbole_hns.tuning.space import count_trials


class LiveTable(Callback):
    """A line for every finished trial, and a bar with the best so far."""

    def __init__(self, plan, config, progress: bool):
        self.keys, self.progress = list(plan.space), progress
        self.metric, self.bigger = config["valid_metric"], config["valid_metric_bigger"]
        self.total = count_trials(plan.domains, plan.num_samples)
        self.best: float | None = None
        self.started = False
        self.bar = None
        self.first_start = time.perf_counter()  # until a trial starts

    def __enter__(self) -> LiveTable:
        self.bar = tqdm(total=self.total, desc="trials", disable=not self.progress)
        trained = "trained" if "epochs" in self.keys else "epochs"
        self._line([*self.keys, trained, self.metric, "seconds", ""])
        return self

    def __exit__(self, *error) -> None:
        self.bar.close()

    def __getstate__(self) -> dict[str, Any]:
        """Ray saves callbacks with the search; a bar cannot be saved."""
        return {**self.__dict__, "bar": None}

    def on_trial_start(self, iteration, trials, trial, **info) -> None:
        """Called by Ray when a trial's process is ready."""
        if not self.started:
            self.started, self.first_start = True, time.perf_counter()

    def on_trial_result(self, iteration, trials, trial, result, **info) -> None:
        """Called by Ray for every report."""
        score = result.get("best_score")
        if score is not None and self._better(score):
            self.best = score
            if self.bar is not None:
                self.bar.set_postfix_str(f"best {self.metric} {score:.4f}")

    def on_trial_complete(self, iteration, trials, trial, **info) -> None:
        """Called by Ray at the end of a trial."""
        result = trial.last_result or {}
        score = result.get("best_score")
        note = "best so far" if score is not None and score == self.best else ""
        self._trial_line(trial, result, note)

    def on_trial_error(self, iteration, trials, trial, **info) -> None:
        """Called by Ray when a trial has failed."""
        from recbole_hns.tuning.search import reason_of

        file = getattr(trial, "error_file", None)
        text = Path(file).read_text("utf-8") if file and Path(file).is_file() else "unknown reason"
        self._trial_line(trial, trial.last_result or {}, f"failed: {reason_of(text)}")

    def _trial_line(self, trial, result, note) -> None:
        values = [trial.config.get(key) for key in self.keys]
        values += [result.get("epoch"), result.get("best_score"), result.get("time_total_s"), note]
        self._line(values)
        if self.bar is not None:
            self.bar.update(1)

    def _line(self, values) -> None:
        if self.progress:
            tqdm.write("  ".join(_cell(value) for value in values).rstrip())

    def _better(self, score: float) -> bool:
        if self.best is None:
            return True
        return score > self.best if self.bigger else score < self.best


def _cell(value: Any) -> str:
    if value is None:
        value = ""
    return f"{value:<12.5g}" if isinstance(value, float) else f"{value!s:<12}"
