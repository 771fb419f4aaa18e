"""Settings that were varied alone, and their effect on the Top-K metrics (the paper's curves)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recbole_hns.report.groups import Group
from recbole_hns.report.measures import metric_name, sign
from recbole_hns.sampling import methods


@dataclass(frozen=True)
class Sweep:
    """Groups that differ in one setting only: its effect."""

    key: str
    groups: tuple[Group, ...]  # by the setting's value

    @property
    def first(self) -> Group:
        """One of the groups, for what they have in common."""
        return self.groups[0]

    @property
    def values(self) -> list[float]:
        """The values of the setting."""
        return [_number(group.values_of[self.key]) for group in self.groups]

    @property
    def title(self) -> str:
        """What is shown, and on which part of the data."""
        part = "test" if self.first.tested else "validation"
        what = f"{methods.symbol(self.key)} in {methods.title(self.first.sampler)}"
        return f"The effect of {what}: {self.first.model} on {self.first.dataset}, {part}"


@dataclass(frozen=True)
class Curve:
    """A Top-K metric against a setting, relative to the curve's maximum."""

    metric: str  # NDCG, Recall, …
    K: int
    x: list[float]
    y: list[float]

    @property
    def best(self) -> int:
        """The place of the maximum."""
        return self.y.index(max(self.y))


def sweeps(groups: Sequence[Group], at_least: int = 3) -> list[Sweep]:
    """Every setting that was varied alone, over ``at_least`` values or more.

    Groups that were tested and trials that were only validated do not share a curve. Where a setting was
    varied at several values of the others, the widest curve is taken, of equals the best validated.
    """
    curves: dict[tuple[object, str], dict[float, Group]] = {}
    for group in groups:
        for key, value in group.settings:
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                others = tuple(pair for pair in group.settings if pair[0] != key)
                name = (*group.place, group.sampler, key, group.tested, others)
                curves.setdefault((name, key), {})[value] = group
    found: dict[object, Sweep] = {}
    for (_, key), curve in curves.items():
        if len(curve) < at_least:
            continue
        sweep = Sweep(key, tuple(curve[value] for value in sorted(curve)))
        what = (*sweep.first.place, sweep.first.sampler, key)
        if what not in found or _rank(sweep) > _rank(found[what]):
            found[what] = sweep
    return list(found.values())


def _rank(sweep: Sweep) -> tuple[int, float]:
    return len(sweep.groups), max(group.score for group in sweep.groups)


def _number(value: object) -> float:
    assert isinstance(value, (int, float))
    return value


def effect_curves(sweep: Sweep, metrics: Sequence[str]) -> list[Curve]:
    """A curve for every K of NDCG and Recall, or of what else there is and is to be large."""
    main = [name for name in metrics if name.startswith(("ndcg@", "recall@"))]
    metrics = main or [name for name in metrics if sign(name) > 0]
    curves = []
    for name in metrics:
        family, _, K = name.partition("@")
        found = [group.mean(name) for group in sweep.groups]
        means = [mean for mean in found if mean is not None]
        if K.isdigit() and len(means) == len(found) and max(means) > 0:
            curves.append(
                Curve(metric_name(family), int(K), sweep.values, [mean / max(means) for mean in means])
            )
    return curves


def families(curves: Sequence[Curve]) -> list[str]:
    """The metrics that have a curve."""
    return list(dict.fromkeys(curve.metric for curve in curves))
