"""Which settings are searched, and over what."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recbole_hns.bridge.keys import OURS
from recbole_hns.bridge.properties import PROPERTIES
from recbole_hns.errors import Error
from recbole_hns.files import a_path
from recbole_hns.runs.config import HNSConfig
from recbole_hns.settings.dialect import read_yaml
from recbole_hns.settings.kinds import about_of, is_number, is_whole
from recbole_hns.settings.words import nearest

if TYPE_CHECKING:
    from ray.tune.search.sample import Domain as RayDomain

LISTS = ("grid", "choice")
RANGES = ("uniform", "loguniform", "randint")
PAPER = "paper"  # the value of --search that means the paper's grids


@dataclass(frozen=True)
class Domain:
    """What one setting is searched over."""

    kind: str  # grid, choice, uniform, loguniform or randint
    values: tuple[Any, ...]  # the list, or (low, high)

    @property
    def examples(self) -> tuple[Any, ...]:
        """Values that stand for all: every one of a list, both ends of a range."""
        if self.kind == "randint":
            return (self.values[0], self.values[1] - 1)
        return self.values

    def draw(self, rng: np.random.Generator) -> Any:
        """A value at random."""
        if self.kind in LISTS:
            return self.values[rng.integers(len(self.values))]
        low, high = self.values
        if self.kind == "randint":
            return int(rng.integers(low, high))
        if self.kind == "loguniform":
            return math.exp(rng.uniform(math.log(low), math.log(high)))
        return rng.uniform(low, high)

    def for_mutation(self) -> list[Any] | RayDomain:
        """The domain as population-based training draws from it."""
        from ray import tune

        if self.kind in LISTS:
            return list(self.values)
        ranges: dict[str, Callable[..., RayDomain]] = {
            "uniform": tune.uniform,
            "loguniform": tune.loguniform,
            "randint": tune.randint,
        }
        return ranges[self.kind](*self.values)

    def clip(self, value: Any) -> Any:
        """The value, or the end of the range that it has passed."""
        if self.kind in LISTS:
            return value
        return min(max(value, self.examples[0]), self.examples[1])

    def place(self, value: Any) -> Any:
        """Where a value stands in its list, or on its range."""
        return self.values.index(value) if self.kind in LISTS else value

    def is_end(self, value: Any) -> bool:
        """Whether better values may lie outside: the value is the least or the greatest of several."""
        numbers = [one for one in self.examples if is_number(one)]
        if self.kind == "choice" or self.kind == "grid":
            several = len(numbers) == len(self.values) > 1
            return several and value in (min(numbers), max(numbers))
        low, high = self.values
        return bool(value - low < 0.02 * (high - low) or high - value < 0.02 * (high - low))


Space = dict[str, Domain]


# ----------------------------------------------------------------------------------- where it comes from


def named_space(search: object) -> Space:
    """The domains of a search file, or of a mapping from settings to values; none where none are named."""
    if search is None or search == PAPER:
        return {}
    if isinstance(search, Mapping):
        lists = {k: v if isinstance(v, Mapping) else {"grid": v} for k, v in search.items()}
        return _domains(lists, "search")
    file = a_path(str(search))
    if not file.exists():
        raise Error(f"search file {file} does not exist: give a search file, or --search={PAPER}.")
    return _domains(read_yaml(file, "search file"), f"search file {file}")


def space_of(search: object, config: HNSConfig) -> Space:
    """What is searched; ``config`` is that of a run with the settings that are the same in all trials."""
    return named_space(search) or (paper_space(config) if search == PAPER else default_space(config))


def default_space(config: HNSConfig) -> Space:
    """The sampler's own settings and the regulariser that the model takes, over what they declare."""
    found = {k: Domain("grid", tuple(v)) for k, v in config.named.searched().items()}
    if is_number(config["reg_weight"]):
        found["reg_weight"] = Domain("grid", about_of(OURS["reg_weight"]).search)
    else:
        found["weight_decay"] = _paper("every")["weight_decay"]
    return _without_given(found, config)


def paper_space(config: HNSConfig) -> Space:
    """The paper's grids: its samplers' settings × the weight decay, without our regulariser."""
    found = {**_paper(config.sampler), **_paper("every")}
    if not is_number(config["reg_weight"]):
        del found["reg_weight"]
    return _without_given(found, config)


def _paper(part: str) -> Space:
    file = PROPERTIES / "search" / f"{PAPER}.yaml"
    content = read_yaml(file).get(part, {})
    return {key: _domain(f"search file {file}", key, value) for key, value in content.items()}


def _without_given(space: Space, config: HNSConfig) -> Space:
    """What was typed for the search is the same in all trials."""
    left = {key: domain for key, domain in space.items() if key not in config.given.typed()}
    if not left:
        raise Error(
            "nothing is left to search, since every setting of the default search is given: leave one "
            "out, or name others with --search=FILE."
        )
    return left


def _domains(content: Mapping[str, Any], origin: str) -> Space:
    if not content:
        raise Error(f"{origin} searches nothing: give it lines such as M: {{grid: [1, 5]}}.")
    return {str(key): _domain(origin, str(key), value) for key, value in content.items()}


def _domain(origin: str, key: str, value: Any) -> Domain:
    known = (*LISTS, *RANGES)
    if not isinstance(value, Mapping) or len(value) != 1:
        raise Error(
            f"{origin}: {key} needs one domain, e.g. {key}: {{grid: [1, 5]}}; there are {', '.join(known)}."
        )
    ((kind, values),) = value.items()
    if kind not in known:
        raise Error(
            f"{origin}: {key} has the domain {kind}, which is unknown{nearest(kind, known)}: choose one of "
            f"{', '.join(known)}."
        )
    if not isinstance(values, (list, tuple)) or not values:
        raise Error(f"{origin}: {key} has an empty {kind}: give it a list of values.")
    if kind in RANGES:
        _check_range(origin, key, kind, list(values))
    return Domain(kind, tuple(values))


def _check_range(origin: str, key: str, kind: str, values: list[Any]) -> None:
    if len(values) != 2 or not all(map(is_number, values)):
        raise Error(f"{origin}: {key} is a {kind} and needs two numbers, low and high.")
    low, high = values
    if not low < high:
        raise Error(f"{origin}: {key} runs from {low} to {high}: the low end comes first.")
    if kind == "loguniform" and low <= 0:
        raise Error(f"{origin}: {key} is a loguniform from {low}: it must begin above 0.")
    if kind == "randint" and not all(map(is_whole, values)):
        raise Error(f"{origin}: {key} is a randint and needs whole numbers.")


# ----------------------------------------------------------------------------------- what comes of it


def check_space(space: Space, make_config: Callable[[dict[str, Any]], HNSConfig]) -> None:
    """Try every example value, the others at their first: a mistake shows before any trial runs."""
    if "seed" in space:
        raise Error("seed is not a setting to search: --seeds repeats the winner.")
    for key, domain in space.items():
        for value in domain.examples:
            make_config({key: value})


def points(space: Space, num_samples: int, seed: int) -> list[dict[str, Any]]:
    """The settings of every trial: the whole grid for each of the samples, in order."""
    rng = np.random.default_rng(seed)
    grids = {key: domain.values for key, domain in space.items() if domain.kind == "grid"}
    found = []
    for _ in range(num_samples):
        for combination in itertools.product(*grids.values()):
            fixed = dict(zip(grids, combination))
            found.append({k: fixed[k] if k in fixed else d.draw(rng) for k, d in space.items()})
    return found
