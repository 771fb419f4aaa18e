"""``run_recbole_hns``: the whole pipeline, as RecBole's ``run_recbole``."""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from logging import getLogger
from pathlib import Path
from typing import Any, Callable

import torch
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.data.dataset import Dataset
from recbole.data.utils import save_split_dataloaders
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.utils import get_environment, init_logger, init_seed, set_color

from recbole_hns.bridge.config import HNSConfig, split_seed
from recbole_hns.data.loader import positives_only
from recbole_hns.data.locate import ensure_dataset
from recbole_hns.data.refit import join_validation
from recbole_hns.errors import Error
from recbole_hns.runs.checks import (
    check_files,
    check_fit,
    check_model,
    check_parts,
    recbole_says,
    rehearse,
)
from recbole_hns.runs.held_log import HeldLog, held_log
from recbole_hns.runs.launching import check_group
from recbole_hns.runs.result import make_result, plain, seconds_of, write_result
from recbole_hns.runs.resume import find_run, read_given, rebuild_config
from recbole_hns.training.trainer import make_trainer


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
) -> dict[str, Any]:
    """Train and test a RecBole model with a negative sampler.

    Args:
        model: a RecBole model's name (``MF`` means ``BPR``) or a model class of your own.
        dataset: the name of a RecBole data set.
        sampler: a name that ``recbole-hns samplers`` lists, or one of your own (``register_sampler``).
        config_file_list: property files, as for RecBole.
        config_dict: settings, as for RecBole; they win over the files.
        saved: whether to save the best model and test that one.
        command_line: ``--key=value`` arguments; they win over everything.
        resume: a file of a run that was killed or stopped, or a folder, whose newest run is meant. It
            goes on with its own settings, to the same end as if nothing had happened. What is given
            besides must not contradict them; ``epochs`` and ``stopping_step`` may be more.
        trust_checkpoint: whether ``resume`` may be a pickle, which can run code of whoever wrote it.

    Returns:
        What RecBole's ``run_recbole`` returns, ``best_valid_score``, ``valid_score_bigger``,
        ``best_valid_result`` and ``test_result``; under ``sampler`` its name and all its settings; and
        under ``result_file`` where the run's ``result.json`` is, None where ``result_dir`` is None.

    Raises:
        Error: for anything that you can put right, in one sentence.
        RunStopped: a KeyboardInterrupt, after SIGINT or SIGTERM, once the run is saved.
    """
    config_dict = dict(config_dict or {})
    if sampler is not None:
        config_dict["sampler"] = sampler
    if trust_checkpoint:
        config_dict["trust_checkpoint"] = True
    run = None
    if resume is None:
        config = HNSConfig(model, dataset, config_file_list, config_dict, command_line)
    else:
        run = find_run(resume, trust_checkpoint)
        given = read_given(config_file_list, config_dict, command_line)
        config = rebuild_config(*run, model, dataset, given)
    ensure_dataset(config)
    return _train_and_test(config, _make_ready(config), saved, run)


@dataclass
class Ready:
    """A run that can begin: everything is checked, nothing is written."""

    data: Dataset
    loaders: tuple[Any, Any, Any]  # of training, validation and test
    model: torch.nn.Module
    held: HeldLog  # what was logged so far
    save: Callable[[], None]  # what RecBole's save_dataset and save_dataloaders ask for


def _make_ready(config: HNSConfig) -> Ready:
    name = f"data set {config['dataset']}"
    asked = {key: config[key] for key in ("save_dataset", "save_dataloaders")}
    config.final_config_dict.update(save_dataset=False, save_dataloaders=False)
    with held_log() as held:
        init_seed(split_seed(config), config["reproducibility"])
        data = load_dataset(config)
        check_fit(config, data)
        unsplit = copy.deepcopy(data) if asked["save_dataset"] else None
        with recbole_says(f"{name} cannot be prepared"):
            parts = data_preparation(config, data)
        check_parts(config, *(part._dataset for part in parts))
        loaders = (positives_only(config, parts[0]), *parts[1:])
        model = _build(config, parts[0]._dataset)
        check_model(config, model, data)
        rehearse(config, model, loaders[0])
    config.final_config_dict.update(asked)

    def save() -> None:
        if asked["save_dataset"]:
            vars(unsplit).pop("build", None)  # of refit: a function of this run
            unsplit.save()
        if asked["save_dataloaders"]:
            save_split_dataloaders(config, parts)

    return Ready(data, loaders, model, held, save)


def load_dataset(config: Config) -> Dataset:
    """The data set, or a sentence about what is wrong with it."""
    with recbole_says(f"data set {config['dataset']} cannot be loaded"):
        check_files(config)
        data = create_dataset(config)
    if config["refit"]:
        join_validation(data)
    return data


def _build(config: HNSConfig, train_set: Dataset) -> torch.nn.Module:
    init_seed(config["seed"] + config["local_rank"], config["reproducibility"])
    if config.own_model:  # an error in it is its author's
        return config.model_class(config, train_set).to(config["device"])
    with recbole_says(f"{config['model']} cannot be built"):
        return config.model_class(config, train_set).to(config["device"])


def _train_and_test(
    config: HNSConfig, ready: Ready, saved: bool, run: tuple[dict[str, Any], Path] | None
) -> dict[str, Any]:
    start = time.perf_counter()
    (train_data, valid_data, test_data), model = ready.loaders, ready.model
    init_logger(config)
    ready.held.hand_over()
    ready.save()
    logger = getLogger()
    logger.info(sys.argv)
    logger.info(config)
    logger.info(ready.data)
    logger.info(set_color("sampler", "pink") + f": {config.spec}")
    if config.ignored_neg_sample_args is not None:
        logger.warning(
            f"train_neg_sample_args={config.ignored_neg_sample_args} is not used: `sampler` decides "
            "which negatives a model is trained with."
        )
    logger.info(model)

    trainer = make_trainer(config, model)
    if run is not None:
        trainer.resume(*run)
        start -= seconds_of(trainer.history)
    progress = config["show_progress"]
    # Without files there is nothing to save, and one process of several cannot stop alone.
    with trainer.stop if saved and config["single_spec"] else nullcontext():
        best_valid_score, best_valid_result = trainer.fit(
            train_data, valid_data, saved=saved, show_progress=progress
        )
        test_result = trainer.evaluate(test_data, load_best_model=saved, show_progress=progress)

    logger.info(f"The running environment is as follows:\n{get_environment(config).draw()}")
    logger.info(set_color("best valid ", "yellow") + f": {plain(best_valid_result)}")
    logger.info(set_color("test result", "yellow") + f": {plain(test_result)}")
    file = None
    if config["result_dir"] and (config["local_rank"] == 0 or config["single_spec"]):
        seconds = time.perf_counter() - start
        record = make_result(config, trainer, best_valid_result, test_result, seconds)
        file = write_result(record, config["result_dir"], again=run is not None)
        logger.info(set_color("written", "yellow") + f": {file}")
    trainer.mark_finished()
    if not config["single_spec"]:
        torch.distributed.destroy_process_group()
    return {
        "best_valid_score": best_valid_score,
        "valid_score_bigger": config["valid_metric_bigger"],
        "best_valid_result": best_valid_result,
        "test_result": test_result,
        "sampler": config.spec.settings,
        "result_file": None if file is None else str(file),
    }


def launch(
    model: str | None,
    dataset: str | None,
    config_file_list: Sequence[str] | None,
    command_line: Sequence[str],
    nproc: int = 1,
    world_size: int = -1,
    ip: str = "localhost",
    port: str = "5678",
    group_offset: int = 0,
    resume: str | Path | None = None,
    trust_checkpoint: bool = False,
) -> dict[str, Any] | None:
    """Run here, or in ``nproc`` processes of a group as RecBole's ``run`` does."""
    if nproc == 1 and world_size == -1:
        return run_recbole_hns(
            model,
            dataset,
            config_file_list=config_file_list,
            command_line=command_line,
            resume=resume,
            trust_checkpoint=trust_checkpoint,
        )
    if resume is not None:
        raise Error("resume goes on in one process: leave out nproc and world_size.")
    # Mistakes are told once, here, and not by every process.
    check_group(nproc, world_size, ip, port, group_offset)
    ensure_dataset(HNSConfig(model, dataset, config_file_list, {"nproc": nproc}, command_line))
    group = {
        "world_size": nproc if world_size == -1 else world_size,
        "ip": ip,
        "port": port,
        "nproc": nproc,
        "offset": group_offset,
    }
    queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
    torch.multiprocessing.spawn(
        _run_process,
        args=(model, dataset, config_file_list, list(command_line), group, queue),
        nprocs=nproc,
    )
    return None if queue.empty() else queue.get()


def _run_process(rank, model, dataset, config_file_list, command_line, group, queue):
    result = run_recbole_hns(
        model,
        dataset,
        config_file_list=config_file_list,
        config_dict={**group, "local_rank": rank},
        command_line=command_line,
    )
    if rank == 0:
        queue.put(result)
