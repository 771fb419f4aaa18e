"""``run_recbole_hns``: train a model with a sampler and test it, as RecBole's ``run_recbole``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from logging import getLogger
from pathlib import Path
from typing import Any

import torch
from recbole.data.dataset import Dataset
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.utils import get_environment, set_color

from recbole_hns.files import cannot_be_written
from recbole_hns.runs.config import HNSConfig
from recbole_hns.runs.pipeline import Loaders, Ready, make_ready
from recbole_hns.runs.result import Metrics, make_result, plain, write_result
from recbole_hns.runs.resume import held_run, rebuild_config
from recbole_hns.runs.run_log import run_log
from recbole_hns.training.checkpoint import Content
from recbole_hns.training.history import seconds_of
from recbole_hns.training.trainer import HNSTrainerMixin, make_trainer

State = tuple[Content, Path]  # what a checkpoint holds, and its file
Reporter = Callable[[HNSTrainerMixin, int, float], None]  # of the epoch and its score


@dataclass
class Outcome:
    """A finished run."""

    config: HNSConfig
    trainer: HNSTrainerMixin
    best_valid_score: float
    best_valid_result: dict[str, float] | None
    test_result: dict[str, float] | None
    record: dict[str, Any]  # what result.json holds
    file: Path | None  # where it is

    def as_recbole(self) -> dict[str, Any]:
        """What RecBole's ``run_recbole`` returns, with the sampler and the record's file."""
        return {
            "best_valid_score": self.best_valid_score,
            "valid_score_bigger": self.config["valid_metric_bigger"],
            "best_valid_result": self.best_valid_result,
            "test_result": self.test_result,
            "sampler": self.config.settings,
            "result_file": None if self.file is None else str(self.file),
        }


def run_recbole_hns(
    model: str | type[AbstractRecommender] | None = None,
    dataset: str | None = None,
    sampler: str | None = None,
    config_file_list: Sequence[str] | None = None,
    config_dict: dict[str, Any] | None = None,
    saved: bool = True,
    command_line: Sequence[str] = (),
    resume: str | Path | None = None,
    trust_checkpoint: bool = False,
    dataset_class: type[Dataset] | None = None,
) -> dict[str, Any]:
    """Train and test a RecBole model with a negative sampler.

    Args:
        model: a RecBole model's name (``MF`` means ``BPR``) or a model class of your own.
        dataset: the name of a RecBole data set.
        sampler: a name that ``recbole-hns samplers`` lists, or one of your own (``register``).
        config_file_list: property files, as for RecBole.
        config_dict: settings, as for RecBole; they win over the files.
        saved: whether to save the best model and test that one.
        command_line: ``--key=value`` arguments; they win over everything.
        resume: a file of a run that was killed or stopped, or a folder, whose newest run is meant. It
            goes on with its own settings, to the same end as if nothing had happened. What is given
            besides must not contradict them; ``epochs`` and ``stopping_step`` may be more.
        trust_checkpoint: whether pickles may be read (``resume``, saved data sets), which can run code
            of whoever wrote them.
        dataset_class: a class of your own for the data set, where the model takes one.

    Returns:
        What RecBole's ``run_recbole`` returns, ``best_valid_score``, ``valid_score_bigger``,
        ``best_valid_result`` and ``test_result``; under ``sampler`` its name and all its settings; and
        under ``result_file`` where the run's ``result.json`` is, None where ``result_dir`` is None.

    Raises:
        Error: for anything that you can put right, in one sentence.
        RunStopped: a KeyboardInterrupt, after SIGINT or SIGTERM, once the run is saved.
    """
    given = dict(config_dict or {})
    if sampler is not None:
        given["sampler"] = sampler
    if resume is None:
        config = HNSConfig(model, dataset, config_file_list, given, command_line)
        config.dataset_class = dataset_class
        return train_and_test(config, saved, trust=trust_checkpoint).as_recbole()
    with held_run(resume, trust_checkpoint) as run:
        config = rebuild_config(
            *run, model, dataset, config_file_list, given, command_line, config_class=HNSConfig
        )
        config.dataset_class = dataset_class
        return train_and_test(config, saved, run, trust_checkpoint).as_recbole()


def train_and_test(
    config: HNSConfig, saved: bool = True, run: State | None = None, trust: bool = False
) -> Outcome:
    """The whole pipeline for one configuration."""
    return finish(config, make_ready(config, trust=trust), saved, run, trust)


def finish(
    config: HNSConfig,
    ready: Ready,
    saved: bool = True,
    run: State | None = None,
    trust: bool = False,
    reporter: Reporter | None = None,
) -> Outcome:
    """Train what is ready, test it where there is a test set, and write the record.

    ``reporter`` is called after every validation.
    """
    start = time.perf_counter()
    with run_log(config):
        ready.held.hand_over()
        _save_data(config, ready)
        _log_begin(config, ready)
        trainer = make_trainer(config, ready.model, trust)
        if run is not None:
            trainer.resume(*run)
            start -= seconds_of(trainer.history)
        with trainer.alone(saved):
            score, valid, test = _train(trainer, ready.loaders, saved, reporter)
            record = make_result(config, trainer, valid, test, time.perf_counter() - start)
            _log_end(config, valid, test)
            file = None
            if config["result_dir"] and (config["local_rank"] == 0 or config["single_spec"]):
                file = write_result(record, config["result_dir"], again=run is not None)
                getLogger().info(set_color("written", "yellow") + f": {file}")
            trainer.mark_finished()
    if not config["single_spec"]:
        torch.distributed.destroy_process_group()
    return Outcome(config, trainer, score, valid, test, record, file)


def _train(
    trainer: HNSTrainerMixin, loaders: Loaders, saved: bool, reporter: Reporter | None
) -> tuple[float, dict[str, float] | None, dict[str, float] | None]:
    """Train and test; a signal to stop is granted between two batches."""
    progress = bool(trainer.config["show_progress"])
    callback = None if reporter is None else partial(reporter, trainer)
    # Without files there is nothing to save, and one process of several cannot stop alone.
    with trainer.stop if saved and trainer.config["single_spec"] else nullcontext():
        score, valid = trainer.fit(
            loaders.train, loaders.valid, saved=saved, show_progress=progress, callback_fn=callback
        )
        test = None
        if loaders.test is not None:
            test = trainer.evaluate(loaders.test, load_best_model=saved, show_progress=progress)
    return score, valid, test


def _save_data(config: HNSConfig, ready: Ready) -> None:
    """What RecBole's ``save_dataset`` and ``save_dataloaders`` ask for."""
    try:
        ready.save()
    except OSError as error:
        raise cannot_be_written(error.filename or config["checkpoint_dir"], error) from error


def _log_begin(config: HNSConfig, ready: Ready) -> None:
    logger = getLogger()
    logger.info(sys.argv)
    logger.info(config)
    if ready.data is not None:
        logger.info(ready.data)
    named = ", ".join(f"{k}={v}" for k, v in config.method.settings.items())
    logger.info(set_color("sampler", "pink") + f": {config.sampler}({named})")
    logger.info(ready.model)


def _log_end(config: HNSConfig, valid: Metrics, test: Metrics) -> None:
    logger = getLogger()
    logger.info(f"The running environment is as follows:\n{get_environment(config).draw()}")
    logger.info(set_color("best valid ", "yellow") + f": {plain(valid)}")
    logger.info(set_color("test result", "yellow") + f": {plain(test)}")
