"""One trial of a search: a training run that reports its validation after every epoch."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # torch's optimisers load it when the first is made: better while a worker starts
from ray import tune
from recbole.utils import early_stopping, init_seed

from recbole_hns.bridge.config import HNSConfig
from recbole_hns.runs.result import make_result, plain, seconds_of, write_json
from recbole_hns.training.checkpoint import read_checkpoint, write_checkpoint
from recbole_hns.training.trainer import make_trainer
from recbole_hns.tuning.data import SearchData
from recbole_hns.tuning.search import SearchPlan

CHECKPOINT_SECONDS = 10  # at least this long between two checkpoints of a trial


@dataclass(frozen=True)
class Study:
    """What all trials of a search have in common."""

    plan: SearchPlan
    threads: int
    results: str  # where the trials' result.json go

    def config(self, searched: dict[str, Any]) -> HNSConfig:
        """The configuration of a trial."""
        return self.plan.config({**searched, "show_progress": False, "state": "ERROR"})


class Trial(tune.Trainable):
    """Trains with one choice of settings. It is never given a test set, so it cannot report one.

    A step is as many epochs as lie between two validations (``eval_step``).
    """

    def setup(self, config: dict[str, Any], study: Study, data: SearchData) -> None:
        """Called by Ray in a new process."""
        self.study, self.data = study, data
        self.build(config)

    def build(self, config: dict[str, Any]) -> None:
        """Make model, sampler and loaders."""
        study, data = self.study, self.data
        torch.set_num_threads(study.threads)
        logging.getLogger().setLevel(logging.ERROR)
        self.hns = study.config({**config, "checkpoint_dir": "."})
        os.chdir(self.logdir)  # RecBole's trainer opens its TensorBoard folder where it stands
        init_seed(self.hns["seed"], self.hns["reproducibility"])
        self.train_data, self.valid_data = data.loaders(self.hns)
        model = self.hns.model_class(self.hns, data.train).to(self.hns["device"])
        self.trainer = make_trainer(self.hns, model)
        self.trainer.eval_collector.data_collect(self.train_data)
        self.trainer.prepare(self.train_data)
        self.epoch, self.best, self.best_result = 0, {}, {}
        self.saved_at = time.monotonic()

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """The next trial in the same process; where that fails, Ray tries it in a new one."""
        try:
            self.build(new_config)
        except Exception:  # Ray 2.6 would wait for ever
            return False
        return True

    def step(self) -> dict[str, Any]:
        """Train up to the next validation and report it."""
        trainer = self.trainer
        for _ in range(min(trainer.eval_step, trainer.epochs - self.epoch)):
            loss = trainer._train_epoch(self.train_data, self.epoch)
            self.epoch += 1
        score, result = trainer._valid_epoch(self.valid_data)
        trainer.best_valid_score, trainer.cur_step, stop, better = early_stopping(
            score,
            trainer.best_valid_score,
            trainer.cur_step,
            max_step=trainer.stopping_step,
            bigger=trainer.valid_metric_bigger,
        )
        if better:
            self.best = {"best_score": score, "best_epoch": self.epoch - 1}
            self.best.update({f"best_{name}": value for name, value in result.items()})
            self.best_result = result
        self.write_result()
        due = time.monotonic() - self.saved_at > CHECKPOINT_SECONDS
        return {
            "epoch": self.epoch,
            "train_loss": float(sum(loss) if isinstance(loss, tuple) else loss),
            "score": score,
            **self.best,
            "done": bool(stop or self.epoch >= trainer.epochs),
            "should_checkpoint": due,
        }

    def write_result(self) -> None:
        """The trial so far, as a result without a test."""
        seconds = seconds_of(self.trainer.history)
        record = make_result(self.hns, self.trainer, self.best_result, None, seconds)
        folder = Path(self.study.results) / self.trial_id
        folder.mkdir(parents=True, exist_ok=True)
        write_json(record, folder / "result.json")

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Everything that the next epoch depends on."""
        state = self.trainer.run_state(self.epoch)
        own = {"best": plain(self.best), "best_result": plain(self.best_result)}
        write_checkpoint({**state, **own}, Path(checkpoint_dir) / "trial.pth")
        self.saved_at = time.monotonic()

    def load_checkpoint(self, checkpoint_dir: str) -> None:
        """Go on from a checkpoint, with this trial's own settings (population-based training)."""
        trainer = self.trainer
        state = read_checkpoint(Path(checkpoint_dir) / "trial.pth")
        trainer.load_run_state(state)
        self.epoch, self.best, self.best_result = state["epoch"], state["best"], state["best_result"]
        for group in trainer.optimizer.param_groups:
            group["lr"], group["weight_decay"] = trainer.learning_rate, trainer.weight_decay
