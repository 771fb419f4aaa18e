"""The paper's question: is a method better than the best baseline, beyond chance?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from scipy.stats import ttest_ind, ttest_rel

from recbole_hns.report.groups import Group
from recbole_hns.report.measures import sign

ALPHA = 0.05


@dataclass(frozen=True)
class Comparison:
    """A group against its best baseline, on one metric."""

    baseline: Group
    p: float  # two-sided
    paired: bool
    better: bool

    @property
    def significant(self) -> bool:
        """Whether the group is better than its baseline beyond chance."""
        return self.better and self.p < ALPHA


def baseline_of(
    group: Group, groups: Sequence[Group], metric: str, ours: Collection[str] = ()
) -> Group | None:
    """The best group of another method and of the same kind: refits compete with refits only.

    The methods called ``ours`` are nobody's baseline; but the original DNS, M = 1, is one even then.
    """
    rivals = []
    for other in groups:
        proposed = other.sampler in ours and not other.original
        mean = other.mean(metric)
        same_kind = other.place == group.place and other.refit == group.refit
        if mean is not None and same_kind and other.family != group.family and not proposed:
            rivals.append((sign(metric) * mean, other))
    return max(rivals, key=lambda rival: rival[0])[1] if rivals else None


def compare(
    group: Group, groups: Sequence[Group], metric: str, ours: Collection[str] = ()
) -> Comparison | None:
    """The group against its best baseline; None without one, or with a single seed."""
    baseline = baseline_of(group, groups, metric, ours)
    mean = group.mean(metric)
    if baseline is None or mean is None:
        return None
    other = baseline.mean(metric)
    p, paired = p_value(group, baseline, metric)
    if p is None or other is None:
        return None
    return Comparison(baseline, p, paired, sign(metric) * (mean - other) > 0)


def p_value(a: Group, b: Group, metric: str) -> tuple[float | None, bool]:
    """A two-sided t-test over the seeds, and whether it is paired.

    Paired where both have the same seeds, each once (in one protocol the same seed has the same split),
    otherwise Welch's. None where one of them has a single seed, or where nothing varies.
    """
    first, second = a.by_seed(metric), b.by_seed(metric)
    once = len(first) == len(a.values(metric)) and len(second) == len(b.values(metric))
    paired = once and first.keys() == second.keys()
    if min(len(a.values(metric)), len(b.values(metric))) < 2:
        return None, paired
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of differences that are all the same
        if paired:
            seeds = sorted(first)
            p = float(ttest_rel([first[s] for s in seeds], [second[s] for s in seeds]).pvalue)
        else:
            p = float(ttest_ind(a.values(metric), b.values(metric), equal_var=False).pvalue)
    return (None if math.isnan(p) else p), paired
