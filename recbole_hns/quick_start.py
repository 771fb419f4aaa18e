"""RecBole's step-by-step way, under the names that RecBole's users know.

.. code-block:: python

    from recbole_hns.quick_start import Config, create_dataset, data_preparation, get_model, get_trainer
    from recbole_hns.quick_start import init_seed

    config = Config("BPR", "ml-100k", config_dict={"sampler": "dns", "M": 5})
    dataset = create_dataset(config)
    train_data, valid_data, test_data = data_preparation(config, dataset)
    init_seed(config["seed"], config["reproducibility"])
    model = get_model(config["model"])(config, train_data.dataset).to(config["device"])
    trainer = get_trainer(config)(config, model)
    trainer.fit(train_data, valid_data)
    print(trainer.evaluate(test_data))

This gives what ``run_recbole_hns`` gives. RecBole's own functions of these names work with our ``Config``
too, but for ``get_trainer``: a trainer of RecBole's would not use the sampler, and says so. What is saved
is read by ``load_data_and_model`` from here, since RecBole's own asks for a pickle:

.. code-block:: python

    from recbole.utils.case_study import full_sort_topk
    from recbole_hns.quick_start import load_data_and_model

    config, model, dataset, train_data, valid_data, test_data = load_data_and_model("saved/….pth")
    users = dataset.token2id(dataset.uid_field, ["196", "186"])
    scores, items = full_sort_topk(users, model, test_data, k=10, device=config["device"])
    print(dataset.id2token(dataset.iid_field, items.cpu()))
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from recbole.data.dataloader.abstract_dataloader import AbstractDataLoader
from recbole.data.dataset import Dataset
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.utils import get_model, init_logger, init_seed

from recbole_hns.data.loader import TrainLoader
from recbole_hns.runs import artifact, pipeline
from recbole_hns.runs.config import HNSConfig as Config
from recbole_hns.runs.run import run_recbole_hns
from recbole_hns.training.trainer import HNSTrainerMixin, make_trainer

__all__ = [
    "Config",
    "create_dataset",
    "data_preparation",
    "get_model",
    "get_trainer",
    "init_logger",
    "init_seed",
    "load_data_and_model",
    "run_recbole_hns",
]


def create_dataset(config: Config, dataset_class: type[Dataset] | None = None) -> Dataset:
    """The data set, downloaded if RecBole knows where from; of a class of your own if you say so."""
    return pipeline.load(config, dataset_class=dataset_class)


def data_preparation(
    config: Config, dataset: Dataset
) -> tuple[TrainLoader, AbstractDataLoader, AbstractDataLoader]:
    """The loaders of training, validation and test; the first brings positives, the sampler the rest."""
    loaders = pipeline.make_loaders(config, pipeline.split(config, dataset))
    return loaders.train, loaders.valid, loaders.test


def get_trainer(config: Config) -> Callable[[Config, AbstractRecommender], HNSTrainerMixin]:
    """RecBole's trainer for the model, with the sampler of the configuration."""
    return make_trainer


def load_data_and_model(
    model_file: str | Path,
    trust_checkpoint: bool = False,
    model: type[AbstractRecommender] | None = None,
    dataset_class: type[Dataset] | None = None,
) -> tuple[Config, AbstractRecommender, Dataset, TrainLoader, AbstractDataLoader, AbstractDataLoader]:
    """Configuration, model, data set and the three loaders of a saved run, as RecBole's gives them.

    A checkpoint of RecBole's own is a pickle, which can run code, and takes ``trust_checkpoint``.
    ``model`` and ``dataset_class`` are the run's, where they are classes of your own.
    """
    found = artifact.load(model_file, trust_checkpoint, model, dataset_class)
    loaders = pipeline.make_loaders(found.config, found.parts)
    return found.config, found.model, found.data, loaders.train, loaders.valid, loaders.test
