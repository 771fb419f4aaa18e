"""The package in Python: ``train``, ``load``, ``tune``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recbole_hns.errors import Error
from recbole_hns.runs.artifact import Artifact
from recbole_hns.runs.config import HNSConfig
from recbole_hns.runs.run import train_and_test
from recbole_hns.sampling.methods import Method, Named, all_methods
from recbole_hns.settings.registry import adopt
from recbole_hns.training.checkpoint import read_checkpoint

if TYPE_CHECKING:
    from recbole.data.dataset import Dataset
    from recbole.model.abstract_recommender import AbstractRecommender


def train(
    model: str | type[AbstractRecommender],
    dataset: str,
    sampler: str | None = None,
    *,
    method: Method | None = None,
    config_files: Sequence[str | Path] = (),
    dataset_class: type[Dataset] | None = None,
    trust: bool = False,
    **settings: Any,
) -> Artifact:
    """Train and test a RecBole model with a negative sampler.

    ``train("LightGCN", "ml-100k", "softmax_v", rho=0.1)``; parts of your own, or a combination that has no
    name, as objects: ``train("MF", "ml-100k", method=Method(pools.Uniform(), rules.DNS(M=5), N=100))``.

    Args:
        model: a RecBole model's name (``MF`` means ``BPR``) or a model class of your own.
        dataset: the name of a RecBole data set.
        sampler: a name that ``recbole-hns samplers`` lists, or one that you registered.
        method: in the place of ``sampler``.
        config_files: property files, as for RecBole.
        dataset_class: a class of your own for the data set, where the model takes one.
        trust: whether pickles may be read, such as RecBole's saved data sets: they can run code.
        settings: all other settings, as for RecBole; they win over the files.

    Raises:
        Error: for anything that you can put right, in one sentence.
    """
    given = {**_sampler(sampler, method), **settings}
    config = HNSConfig(model, dataset, [str(file) for file in config_files], given)
    config.dataset_class = dataset_class
    outcome = train_and_test(config, trust=trust)
    file = Path(outcome.trainer.saved_model_file)
    own = model if isinstance(model, type) else None
    return Artifact(
        file, read_checkpoint(file), model=own, record=outcome.record, dataset_class=dataset_class
    )


def _sampler(name: str | None, method: Method | None) -> dict[str, Any]:
    """The settings that choose a sampler, so that a checkpoint of the run can be read by another process."""
    if method is None:
        return {} if name is None else {"sampler": name}
    if name is not None:
        raise Error("sampler and method are two ways to say the same: give one of them.")
    known = all_methods().items()
    # First those that have its pool by default: these have names in the paper.
    for name, one in sorted(known, key=lambda item: type(item[1].method.pool) is not type(method.pool)):
        found = _spelled(method, one)
        if found is not None:
            return {"sampler": name, **found}
    numbers = [int(name[6:]) for name, _ in known if name.startswith("method") and name[6:].isdecimal()]
    name = f"method{max(numbers, default=0) + 1}"
    adopt([("method", name, method)])
    return {"sampler": name}


def _spelled(method: Method, one: Named) -> dict[str, Any] | None:
    """The settings with which a name stands for the method; None if it cannot."""
    if type(one.method.rule) is not type(method.rule):
        return None
    values = method.settings
    try:
        values = {key: values[key] for key in one.keys(values) if key in values}
        if one.build(values) != method:
            return None
    except Error:  # a part of yours that has no name
        return None
    if type(method.loss) is type(one.method.loss):
        del values["pair_loss"]  # not chosen; a model with a loss of its own has no use for it
    return values


def tune(
    model: str | type[AbstractRecommender],
    dataset: str,
    sampler: str | None = None,
    *,
    method: Method | None = None,
    search: str | Path | Mapping[str, Any] | None = None,
    config_files: Sequence[str | Path] = (),
    num_samples: int = 1,
    scheduler: str = "none",
    seeds: int = 5,
    refit: bool = False,
    storage: str | Path = "tuning",
    name: str | None = None,
    cpus: float = 1,
    gpus: float = 0,
    ray_address: str | None = None,
    max_failures: int = 1,
    progress: bool = True,
    trust: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """Search settings on the validation set with Ray Tune, and test the winner.

    ``tune("MF", "ml-100k", "dns", search={"M": [1, 5, 20]}, epochs=50)``

    Args:
        model: a RecBole model's name (``MF`` means ``BPR``) or a model class of your own.
        dataset: the name of a RecBole data set.
        sampler: a name that ``recbole-hns samplers`` lists, or one that you registered.
        method: in the place of ``sampler``.
        search: what is searched: settings and their values, a search file, ``"paper"`` for the paper's
            grids; by default the sampler's own settings and the model's regulariser.
        config_files: property files, the same in all trials.
        num_samples: draws from the random domains.
        scheduler: none, asha, median or pbt.
        seeds: how often the winner is tested.
        refit: whether to test once more after training on training + validation.
        storage: the folder of searches; ``name`` is the search's folder in it.
        cpus, gpus: what a trial is given.
        ray_address: an existing Ray cluster, host:port; this machine by default.
        max_failures: restarts of a trial that fails.
        progress: whether to show the trials as they end.
        trust: whether pickles may be read, such as RecBole's saved data sets: they can run code.
        settings: all other settings, the same in all trials.

    Returns:
        What the folder's ``summary.json`` holds, and under ``folder`` where that is.

    Raises:
        Error: for anything that you can put right, in one sentence.
    """
    from recbole_hns.tuning import Machines, make_plan, new_folder, run_search
    from recbole_hns.tuning.space import named_space

    searched = named_space(search)
    chosen = {k: v for k, v in _sampler(sampler, method).items() if k not in searched}
    options = {"num_samples": num_samples, "scheduler": scheduler, "seeds": seeds, "refit": refit}
    plan = make_plan(model, dataset, {**chosen, **settings}, search, config_files, **options)
    folder = new_folder(plan, Path(storage), name)
    machines = Machines(cpus, gpus, ray_address, max_failures)
    own = model if isinstance(model, type) else None
    return {**run_search(plan, folder, machines, progress, own, trust), "folder": str(folder)}
