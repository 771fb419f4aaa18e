"""A trained model, read back from its checkpoint, with the data that it was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from logging import getLogger
from pathlib import Path
from typing import Any

import torch
from recbole.config import Config
from recbole.data import data_preparation
from recbole.data.dataset import Dataset
from recbole.evaluator import Collector, Evaluator
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.trainer import Trainer
from recbole.utils import WandbLogger, get_model, init_seed

from recbole_hns.bridge.allowed import PATH
from recbole_hns.bridge.config import split_seed
from recbole_hns.data.fingerprint import fingerprint
from recbole_hns.data.locate import ensure_dataset
from recbole_hns.errors import Error
from recbole_hns.runs.resume import rebuild_config
from recbole_hns.runs.run import load_dataset
from recbole_hns.training.checkpoint import best_file, read_checkpoint, runs_in
from recbole_hns.training.resumable import broken_score, moved


@dataclass
class Trained:
    """A model with its configuration; its data are there after :meth:`split`."""

    config: Config
    state: dict[str, Any]
    dataset: Dataset

    def split(self) -> tuple[Any, Any, Any]:
        """Split the data as the run did: RecBole's train, validation and test loaders."""
        loaders = data_preparation(self.config, self.dataset)
        expected = self.state.get("data")
        if expected not in (None, fingerprint(loaders[0]._dataset)):
            raise Error(
                f"data set {self.config['dataset']} is not the one that the checkpoint was trained on: "
                "its training set is another."
            )
        return loaders

    def model(self, train_set: Dataset) -> AbstractRecommender:
        """The model with its parameters, ready to score."""
        config, device = self.config, self.config["device"]
        init_seed(config["seed"], config["reproducibility"])
        model_class = getattr(config, "model_class", None) or get_model(config["model"])
        model = model_class(config, train_set).to(device)
        try:
            model.load_state_dict(self.state["state_dict"])
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise Error(f"the checkpoint does not fit {config['model']}: {reason}") from error
        model.load_other_parameter(moved(self.state.get("other_parameter"), device))
        return model.eval()


def find_model(where: str | Path, trust: bool = False) -> tuple[dict[str, Any], Path]:
    """What a checkpoint holds, and its file; of a folder, the best model of its newest run."""
    PATH.check("checkpoint", str(where))
    file = Path(where)
    if file.is_dir():
        newest = next(runs_in(file), None)
        if newest is None:
            raise Error(f"there is no run in {file}: name a .pth file.")
        file = best_file(newest)
    return read_checkpoint(file, trust=trust), file


def settings_of(state: dict[str, Any]) -> dict[str, Any]:
    """All settings that the run of a checkpoint had."""
    return state["final"] if "final" in state else state["recbole_config"].final_config_dict


def load_trained(
    state: dict[str, Any],
    file: Path,
    given: dict[str, Any] | None = None,
    free: set[str] | frozenset[str] = frozenset(),
    model: type[AbstractRecommender] | None = None,
) -> Trained:
    """The configuration and the data set of a checkpoint.

    ``model`` is needed for a class that RecBole does not know. ``given`` are settings that replace the
    run's own; only those of ``free``, and such as change nothing that is computed, can be other than the
    run's.
    """
    config = _config(state, file, given or {}, free, model)
    config["log_wandb"] = False
    ensure_dataset(config)
    init_seed(split_seed(config), config["reproducibility"])
    return Trained(config, state, load_dataset(config))


def _config(state: dict[str, Any], file: Path, given: dict[str, Any], free, model) -> Config:
    config = state.get("recbole_config")
    if config is None:
        return rebuild_config(state, file, model, given=given, free=free)
    for key, value in given.items():
        config[key] = str(Path(value) / config["dataset"]) if key == "data_path" else value
    config["device"] = torch.device("cuda" if torch.cuda.is_available() and config["use_gpu"] else "cpu")
    return config


class Tester(Trainer):
    """RecBole's trainer with only what evaluation needs: the whole one opens folders to write to."""

    def __init__(self, config: Config, model: AbstractRecommender):
        self.config, self.model = config, model
        self.logger, self.wandblogger = getLogger(), WandbLogger(config)
        self.device, self.test_batch_size = config["device"], config["eval_batch_size"]
        self.gpu_available = torch.cuda.is_available() and config["use_gpu"]
        self.eval_collector, self.evaluator = Collector(config), Evaluator(config)
        self.item_tensor = self.tot_item_num = None

    def _full_sort_batch_eval(self, batched_data):
        return refuse_broken_scores(super()._full_sort_batch_eval(batched_data))

    def _neg_sample_batch_eval(self, batched_data):
        return refuse_broken_scores(super()._neg_sample_batch_eval(batched_data))

    def scores(self, interaction, known: tuple[torch.Tensor, torch.Tensor], dataset: Dataset):
        """The scores of all items, −inf for ``known`` (rows, items), as in full-sort evaluation."""
        if self.item_tensor is None:
            self.item_tensor = dataset.get_item_feature().to(self.device)
            self.tot_item_num = dataset.item_num
        with torch.no_grad():
            return self._full_sort_batch_eval((interaction, known, None, None))[1]


def refuse_broken_scores(result):
    """What a batch's evaluation gave, if its scores are numbers."""
    broken = broken_score(result[1])
    if broken is not None:
        raise Error(f"a score is {broken}: the model had diverged when the checkpoint was written.")
    return result
