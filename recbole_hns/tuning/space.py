"""Search files: which settings are searched, and over what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recbole_hns.bridge.config import HNSConfig, read_yaml
from recbole_hns.errors import Error
from recbole_hns.settings.checks import nearest

LISTS = ("grid", "choice")
RANGES = ("uniform", "loguniform", "randint")


@dataclass(frozen=True)
class Domain:
    """What one setting is searched over."""

    kind: str  # grid, choice, uniform, loguniform or randint
    values: tuple  # the list, or (low, high)

    @property
    def examples(self) -> tuple:
        """Values that stand for all: every one of a list, both ends of a range."""
        if self.kind == "randint":
            return (self.values[0], self.values[1] - 1)
        return self.values

    def for_ray(self) -> Any:
        """The domain as Ray Tune knows it."""
        from ray import tune

        if self.kind == "grid":
            return tune.grid_search(list(self.values))
        if self.kind == "choice":
            return tune.choice(list(self.values))
        return getattr(tune, self.kind)(*self.values)

    def for_mutation(self) -> Any:
        """The domain as population-based training draws from it."""
        return list(self.values) if self.kind in LISTS else self.for_ray()


def read_space(file: Path) -> dict[str, Domain]:
    """The domains of a search file."""
    content = read_yaml(file)
    if not content:
        raise Error(f"search file {file} searches nothing: give it lines such as M: {{grid: [1, 5]}}.")
    return {str(key): _domain(file, str(key), value) for key, value in content.items()}


def _domain(file: Path, key: str, value: Any) -> Domain:
    if not isinstance(value, dict) or len(value) != 1:
        raise Error(
            f"search file {file}: {key} needs one domain, e.g. {key}: {{grid: [1, 5]}}; there are "
            f"{', '.join((*LISTS, *RANGES))}."
        )
    ((kind, values),) = value.items()
    if kind not in (*LISTS, *RANGES):
        raise Error(
            f"search file {file}: {key} has the domain {kind}, which is unknown"
            f"{nearest(kind, (*LISTS, *RANGES))}: choose one of {', '.join((*LISTS, *RANGES))}."
        )
    if not isinstance(values, list) or not values:
        raise Error(f"search file {file}: {key} has an empty {kind}: give it a list of values.")
    if kind in RANGES:
        _check_range(file, key, kind, values)
    return Domain(kind, tuple(values))


def _check_range(file: Path, key: str, kind: str, values: list) -> None:
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    if len(values) != 2 or not numbers:
        raise Error(f"search file {file}: {key} is a {kind} and needs two numbers, low and high.")
    low, high = values
    if not low < high:
        raise Error(f"search file {file}: {key} runs from {low} to {high}: the low end comes first.")
    if kind == "loguniform" and low <= 0:
        raise Error(f"search file {file}: {key} is a loguniform from {low}: it must begin above 0.")
    if kind == "randint" and not all(isinstance(v, int) for v in values):
        raise Error(f"search file {file}: {key} is a randint and needs whole numbers.")


def check_space(space: Mapping[str, Domain], make_config) -> None:
    """Try every example value, the others at their first: a mistake shows before any trial runs."""
    for key, domain in space.items():
        if key == "seed":
            raise Error("seed is not a setting to search: --seeds repeats the winner.")
        for value in domain.examples:
            config: HNSConfig = make_config({key: value})
            if key not in config.final_config_dict:
                raise Error(f"{key} is not a setting of this run.")


def count_trials(space: Mapping[str, Domain], num_samples: int) -> int:
    """Ray repeats the whole grid for every sample."""
    sizes = [len(domain.values) for domain in space.values() if domain.kind == "grid"]
    return num_samples * math.prod(sizes)
