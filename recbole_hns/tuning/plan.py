"""What a search is to do: everything that decides what it finds, kept in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.trainer import Trainer
from recbole.utils import get_trainer

from recbole_hns.bridge.config import read_layer
from recbole_hns.errors import Error
from recbole_hns.files import write_json
from recbole_hns.runs.config import HNSConfig
from recbole_hns.settings.kinds import convert, whole, word
from recbole_hns.settings.layers import Layer
from recbole_hns.training.plain import plain_setting
from recbole_hns.tuning.space import Domain, Space, check_space, named_space, points, space_of

SCHEDULERS = ("none", "asha", "median", "pbt")
FILE = "search.json"
MOST_SAMPLES = 100_000  # that a file may ask for
ModelClass = type[AbstractRecommender]


@dataclass(frozen=True)
class SearchPlan:
    """A search. Property files are in it with their content: other machines need not have them."""

    model: str
    dataset: str
    below: tuple[str, dict[str, Any]]  # the file beside the data, and what is in it
    files: tuple[tuple[str, dict[str, Any]], ...]  # the user's property files
    typed: dict[str, Any]  # what was typed, the same in all trials
    space: dict[str, tuple[str, tuple[Any, ...]]]
    num_samples: int = 1
    scheduler: str = "none"
    seeds: int = 5
    refit: bool = False

    @classmethod
    def read(cls, folder: Path) -> SearchPlan:
        """The plan of a search that was begun."""
        file = folder / FILE
        try:
            plan = msgspec.convert(json.loads(file.read_text("utf-8")), cls)
            named_space({key: {kind: values} for key, (kind, values) in plan.space.items()})
            convert("num_samples", plan.num_samples, whole(1, MOST_SAMPLES))
            return plan
        except (OSError, ValueError, ArithmeticError, RecursionError) as error:
            raise Error(
                f"resume={folder} is not the folder of a search of this version: it has no {FILE} that can "
                "be read."
            ) from error

    def is_as(self, other: SearchPlan) -> bool:
        """Whether both are kept in the same words."""
        return json.dumps(asdict(self)) == json.dumps(asdict(other))

    def write(self, folder: Path) -> None:
        """Keep it, for ``--resume``."""
        write_json(asdict(self), folder / FILE)

    @property
    def domains(self) -> Space:
        """What is searched."""
        return {key: Domain(kind, tuple(values)) for key, (kind, values) in self.space.items()}

    def config(
        self, searched: Mapping[str, Any] | None = None, model: ModelClass | None = None
    ) -> HNSConfig:
        """A configuration of the search; what is searched and not given has the first of its values."""
        first = {key: domain.examples[0] for key, domain in self.domains.items()}
        return HNSConfig(
            model or self.model,
            self.dataset,
            [Layer(*file) for file in self.files],
            {**self.typed, **first, **(searched or {})},
            below=Layer(*self.below),
        )

    def points(self) -> list[dict[str, Any]]:
        """The settings that every trial begins with."""
        return points(self.domains, self.num_samples, self.config()["seed"])

    def given(self) -> dict[str, Any]:
        """What is the same in all trials, as the user gave it."""
        return {**{k: v for _, values in self.files for k, v in values.items()}, **self.typed}


def make_plan(
    model: str | ModelClass,
    dataset: str,
    typed: Mapping[str, Any],
    search: object = None,
    config_files: Sequence[str | Path] = (),
    **options: Any,
) -> SearchPlan:
    """A plan whose every setting has been tried on the configuration.

    Args:
        model: a RecBole model's name, or a model class.
        dataset: a RecBole data set.
        typed: settings that are the same in all trials.
        search: a search file, ``paper``, a mapping of settings to values, or None for the default.
        config_files: property files.
        options: ``num_samples``, ``scheduler``, ``seeds`` and ``refit`` of :class:`SearchPlan`.
    """
    own = model if isinstance(model, type) else None
    files = [read_layer(file) for file in config_files]
    typed = {key: plain_setting(value) for key, value in typed.items()}
    first = {key: domain.examples[0] for key, domain in named_space(search).items()}
    one = HNSConfig(model, dataset, files, {**first, **typed})
    space = space_of(search, one)
    both = sorted(set(space) & set(typed))
    if both:
        raise Error(f"{both[0]} is both given and searched: leave one of them out.")
    plan = SearchPlan(
        model=str(one["model"]),
        dataset=dataset,
        below=(one.beside_the_data.origin, dict(one.beside_the_data.values)),
        files=tuple((file.origin, dict(file.values)) for file in files),
        typed={**({} if "sampler" in space else {"sampler": one.sampler}), **typed},
        space={key: (domain.kind, domain.values) for key, domain in space.items()},
        **options,
    )
    if search is None:
        plan = _without_impossible(plan, own)
    _check(plan, own)
    return plan


def _without_impossible(plan: SearchPlan, model: ModelClass | None) -> SearchPlan:
    """The default domains without values that other settings rule out, such as M above N."""
    space = {}
    for key, domain in plan.domains.items():
        alone = SearchPlan(**{**vars(plan), "space": {}})
        possible = tuple(value for value in domain.values if _is_possible(alone, {key: value}, model))
        space[key] = (domain.kind, possible or domain.values)
    return SearchPlan(**{**vars(plan), "space": space})


def _is_possible(plan: SearchPlan, settings: dict[str, Any], model: ModelClass | None) -> bool:
    try:
        plan.config(settings, model)
    except Error:
        return False
    return True


def _check(plan: SearchPlan, model: ModelClass | None) -> None:
    convert("num_samples", plan.num_samples, whole(1))
    convert("seeds", plan.seeds, whole(0))
    convert("scheduler", plan.scheduler, word(*SCHEDULERS))
    if plan.refit and not plan.seeds:
        raise Error("seeds=0 tests nothing, so there is nothing to refit: leave out --refit.")
    config = plan.config(model=model)
    check_space(plan.domains, lambda searched: plan.config(searched, model))
    if config["refit"]:
        raise Error("refit=True leaves a search nothing to validate on: give --refit, without a value.")
    for key in ("eval_step", "epochs"):
        if config[key] == 0:
            raise Error(f"{key}=0 leaves a search nothing to choose by: it must be at least 1.")
    if get_trainer(config["MODEL_TYPE"], config["model"]).fit is not Trainer.fit:
        raise Error(f"{config['model']} trains by a procedure of its own, which a search cannot follow.")
    if plan.scheduler == "pbt" and not changeable(plan, config):
        known = ", ".join(_in_training(config))
        raise Error(f"scheduler=pbt changes {known} during training: search one of them.")


def changeable(plan: SearchPlan, config: HNSConfig) -> Space:
    """What population-based training may change while a trial trains."""
    return {key: domain for key, domain in plan.domains.items() if key in _in_training(config)}


def _in_training(config: HNSConfig) -> list[str]:
    return [*config.method.rule.settings, "learning_rate", "weight_decay", "reg_weight"]
