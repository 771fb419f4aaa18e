"""The one way from settings to a model: load, split, build, train, test.

Every command goes through these functions, so that equal settings give equal data, loaders and
validation in all of them. A trial of a search is a run with a reporter and without a test set.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from logging import getLogger

import torch
from recbole.data import create_dataset
from recbole.data.dataloader import KnowledgeBasedDataLoader, TrainDataLoader
from recbole.data.dataloader.abstract_dataloader import AbstractDataLoader
from recbole.data.dataset import Dataset
from recbole.data.utils import create_samplers, get_dataloader, save_split_dataloaders
from recbole.sampler import KGSampler, RepeatableSampler, Sampler
from recbole.sampler.sampler import AbstractSampler
from recbole.utils import ModelType, init_seed

from recbole_hns.bridge.config import LayeredConfig, split_seed, tell_notes
from recbole_hns.bridge.says import recbole_says
from recbole_hns.bridge.world import PoolSampler
from recbole_hns.data.loader import TrainLoader, positives_only
from recbole_hns.data.locate import ensure_dataset
from recbole_hns.data.marks import without_marks
from recbole_hns.data.refit import join_validation
from recbole_hns.runs.checks import check_files, check_fit, check_model, check_parts, rehearse
from recbole_hns.runs.config import HNSConfig
from recbole_hns.runs.held_log import HeldLog, held_log
from recbole_hns.runs.needs import check_memory_to_load
from recbole_hns.sampling import pools

NOWHERE = os.path.join(os.devnull, "none")  # a file that is never there


@dataclass(frozen=True)
class Parts:
    """The split data set. A search is given one without a test set."""

    train: Dataset
    valid: Dataset
    test: Dataset | None

    def without_test(self) -> Parts:
        """What may be looked at as long as something is being chosen."""
        return replace(self, test=None)


@dataclass(frozen=True)
class Loaders:
    """RecBole's loaders over the parts; the training one brings positives only."""

    train: TrainLoader
    valid: AbstractDataLoader
    test: AbstractDataLoader | None


@dataclass
class Ready:
    """A run that can begin: everything is checked, nothing is written."""

    data: Dataset | None
    loaders: Loaders
    model: torch.nn.Module
    held: HeldLog  # what was logged so far
    save: Callable[[], None]  # what RecBole's save_dataset asks for


def load(config: HNSConfig, trust: bool = False, dataset_class: type[Dataset] | None = None) -> Dataset:
    """The data set, downloaded if need be and RecBole knows where from.

    RecBole's saved data sets are pickles, and are read only with ``trust``. ``dataset_class`` is for models
    whose data set is of a class of their own; the configuration keeps it.
    """
    if dataset_class is not None:
        config.dataset_class = dataset_class
    own = getattr(config, "dataset_class", None)
    ensure_dataset(config)
    if isinstance(config, LayeredConfig):
        tell_notes(config)
    refused = recbole_says(f"data set {config['dataset']} cannot be loaded")
    with refused, _saved_files(config, trust), without_marks(config):
        check_files(config)
        check_memory_to_load(config)
        data = create_dataset(config) if own is None else own(config)
    return data


def split(config: HNSConfig, data: Dataset) -> Parts:
    """The parts of a data set that the settings fit; where they are random, by ``split_seed``."""
    init_seed(split_seed(config), config["reproducibility"])
    is_ours = isinstance(config, LayeredConfig)  # not that of a checkpoint of RecBole's own
    if is_ours:
        check_fit(config, data)
    if config["refit"]:
        join_validation(data)
    with recbole_says(f"data set {config['dataset']} cannot be prepared"):
        parts = Parts(*data.build())
    if is_ours:
        check_parts(config, parts.train, parts.valid, parts.test)
    return parts


def make_loaders(config: HNSConfig, parts: Parts) -> Loaders:
    """The loaders of a run, made anew from the parts. Nothing of the test set enters a validation."""
    with recbole_says(f"data set {config['dataset']} cannot be prepared"):
        return Loaders(
            train=positives_only(config, _train_loader(config, parts.train)),
            valid=_eval_loader(config, "valid", [parts.train, parts.valid]),
            test=None
            if parts.test is None
            else _eval_loader(config, "test", [parts.train, parts.valid, parts.test]),
        )


def _train_loader(config: HNSConfig, train: Dataset) -> TrainDataLoader | KnowledgeBasedDataLoader:
    loader = get_dataloader(config, "train")
    if config["MODEL_TYPE"] != ModelType.KNOWLEDGE:
        return loader(config, train, None, shuffle=config["shuffle"])
    args = config["train_neg_sample_args"]
    kg_sampler = KGSampler(train, args["distribution"], args.get("alpha", 1.0))
    sampler = RepeatableSampler(["train"], train, "uniform").set_phase("train")
    return loader(config, train, sampler, kg_sampler, shuffle=True)


def _eval_loader(config: HNSConfig, phase: str, sets: list[Dataset]) -> AbstractDataLoader:
    phases = ["train", "valid", "test"][: len(sets)]
    args = config[f"{phase}_neg_sample_args"]
    distribution, alpha = args["distribution"], args.get("alpha", 1.0)
    sampler: AbstractSampler | None = None
    if config["repeatable"]:
        if distribution != "none":
            sampler = RepeatableSampler(phases, sets[0], distribution, alpha).set_phase(phase)
    elif config["eval_args"]["mode"][phase] == "full":
        # What was taken is all that is asked for: a CSR matrix tells without a set per user.
        sampler = PoolSampler(phases, sets, pools.Uniform(), config["hns_backend"]).set_phase(phase)
    elif distribution != "none":
        sampler = Sampler(phases, sets, distribution, alpha).set_phase(phase)
    return get_dataloader(config, phase)(config, sets[-1], sampler, shuffle=False)


def _recboles_loaders(config: HNSConfig, data: Dataset, parts: Parts) -> tuple[AbstractDataLoader, ...]:
    """What RecBole's ``save_dataloaders`` saves: loaders that bring RecBole's negatives."""
    sets = [parts.train, parts.valid, parts.test]
    phases, samplers = ("train", "valid", "test"), create_samplers(config, data, sets)
    return tuple(
        get_dataloader(config, phase)(
            config, part, sampler, shuffle=phase == "train" and config["shuffle"]
        )
        for phase, part, sampler in zip(phases, sets, samplers)
    )


def build(config: HNSConfig, train: Dataset) -> torch.nn.Module:
    """The model as it begins."""
    init_seed(config["seed"] + config["local_rank"], config["reproducibility"])
    model: torch.nn.Module
    if config.own_model:  # an error in it is its author's
        model = config.model_class(config, train).to(config["device"])
        return model
    with recbole_says(f"{config['model']} cannot be built"):
        model = config.model_class(config, train).to(config["device"])
    return model


def make_ready(config: HNSConfig, parts: Parts | None = None, trust: bool = False) -> Ready:
    """Everything up to the first step of training; a search brings its parts along."""
    data = unsplit = None
    with held_log() as held:
        if parts is None:
            data = load(config, trust)
            unsplit = copy.deepcopy(data) if config["save_dataset"] else None
            parts = split(config, data)
        loaders = make_loaders(config, parts)
        model = build(config, parts.train)
        check_model(config, model, parts.train)
        rehearse(config, model, loaders.train)

    def save() -> None:
        if unsplit is not None:
            unsplit.save()
        if config["save_dataloaders"] and data is not None and parts is not None:
            save_split_dataloaders(config, _recboles_loaders(config, data, parts))

    return Ready(data, loaders, model, held, save)


@contextmanager
def _saved_files(config: HNSConfig, trust: bool) -> Iterator[None]:
    """Let RecBole neither read nor write the pickles that it keeps of data sets."""
    final = config.final_config_dict
    asked = {key: final[key] for key in ("save_dataset", "dataset_save_path")}
    if asked["dataset_save_path"] and not trust:
        getLogger().warning(
            f"dataset_save_path={asked['dataset_save_path']} is a pickle, which can run code of its "
            "writer, and is not read: give --trust_checkpoint if you know where it comes from."
        )
    final["save_dataset"] = False
    if not trust:
        final["dataset_save_path"] = NOWHERE
    try:
        yield
    finally:
        final.update(asked)
