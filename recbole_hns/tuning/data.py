"""The data of a search: prepared once, and handed to every trial without its test set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recbole.data import create_dataset
from recbole.data.dataset import Dataset
from recbole.data.utils import create_samplers, get_dataloader
from recbole.utils import ModelType, init_seed

from recbole_hns.bridge.config import HNSConfig, split_seed
from recbole_hns.data.loader import PositiveLoader, positives_only
from recbole_hns.data.locate import ensure_dataset
from recbole_hns.errors import Error
from recbole_hns.runs.checks import check_files, check_fit, recbole_says
from recbole_hns.sampling.pools import UniformPool


@dataclass
class SearchData:
    """Training and validation set. There is nothing of the test set in it."""

    train: Dataset
    valid: Dataset

    def loaders(self, config: HNSConfig) -> tuple[Any, Any]:
        """A trial's loaders, made anew from the shared sets."""
        if config["MODEL_TYPE"] == ModelType.GENERAL and not config["repeatable"]:
            # Our pool is a RecBole sampler that is built in a fraction of the time.
            sampler = UniformPool(["train", "valid"], [self.train, self.valid]).set_phase("valid")
            train_data = PositiveLoader(config, self.train, config["shuffle"])
        else:
            # In the place of the test set RecBole is given the validation set once more.
            samplers = create_samplers(config, self.train, [self.train, self.valid, self.valid])
            train_data = get_dataloader(config, "train")(config, self.train, samplers[0], shuffle=True)
            train_data, sampler = positives_only(config, train_data), samplers[1]
        valid_data = get_dataloader(config, "valid")(config, self.valid, sampler, shuffle=False)
        return train_data, valid_data


def prepare_search(config: HNSConfig) -> SearchData:
    """Load and split as a run does, and drop the test set."""
    ensure_dataset(config)
    init_seed(split_seed(config), config["reproducibility"])
    with recbole_says(f"data set {config['dataset']} cannot be loaded"):
        check_files(config)
        data = create_dataset(config)
    check_fit(config, data)
    with recbole_says(f"data set {config['dataset']} cannot be prepared"):
        train, valid, _ = data.build()
    if len(valid) == 0:
        raise Error("the validation set is empty, and a search selects on it: see eval_args.")
    return SearchData(train, valid)
