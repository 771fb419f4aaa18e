"""Finished runs, grouped for tables and figures. Nothing is read but ``result.json``."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from scipy.stats import ttest_ind

from recbole_hns.errors import Error
from recbole_hns.runs.result import read_result

NOT_SETTINGS = ("sampler", "hns_backend", "pool_block")  # of no account for what is compared
RUN_SETTINGS = (  # of every run, beside the sampler's own
    "learning_rate",
    "lr_step_size",
    "lr_gamma",
    "weight_decay",
    "reg_weight",
    "train_batch_size",
    "embedding_size",
    "n_layers",
)


@dataclass
class Group:
    """Runs that differ in their seeds only."""

    model: str
    dataset: str
    sampler: str
    settings: tuple[tuple[str, Any], ...]
    runs: list[dict[str, Any]] = field(default_factory=list)

    @cached_property
    def tested(self) -> bool:
        """Whether the runs were tested; trials of a search are only validated."""
        return all(run["test"] for run in self.runs)

    def values(self, metric: str, part: str | None = None) -> list[float]:
        """A metric of every run: on the test set where there is one, else on validation."""
        part = part or ("test" if self.tested else "valid")
        rows = [run["test"] if part == "test" else run["best"]["valid"] for run in self.runs]
        return [row[metric] for row in rows if row and row.get(metric) is not None]

    def mean(self, metric: str) -> float | None:
        """The mean over seeds."""
        values = self.values(metric)
        return statistics.fmean(values) if values else None

    def std(self, metric: str) -> float:
        """The standard deviation over seeds."""
        values = self.values(metric)
        return statistics.stdev(values) if len(values) > 1 else 0.0

    @cached_property
    def score(self) -> float:
        """The mean validation score, by which settings are chosen; larger is better."""
        sign = 1 if self.runs[0]["valid_metric_bigger"] else -1
        scores = [run["best"]["score"] for run in self.runs if run["best"]["score"] is not None]
        return sign * statistics.fmean(scores) if scores else float("-inf")

    @property
    def pair_loss(self) -> str:
        """The loss that is not the sampler's own; empty for BPR, and for WARP's hinge."""
        loss = dict(self.settings).get("pair_loss", "bpr")
        return "" if loss == "bpr" or self.sampler == "warp" else loss

    @property
    def refit(self) -> bool:
        """Whether the validation part was trained on."""
        return bool(dict(self.settings).get("refit"))

    @property
    def method(self) -> tuple:
        """What has a row of its own in a table. The original DNS, M = 1, is not DNS(M, N)."""
        original = self.sampler == "dns" and dict(self.settings)["M"] == 1
        return (self.sampler, original, self.pair_loss, self.refit)

    @cached_property
    def label(self) -> str:
        """The sampler with what it was set to, as the paper writes it, and the loss if it is another."""
        values = dict(self.settings)
        name = NAMES.get(self.sampler, self.sampler)
        if self.sampler == "dns":
            name = f"DNS({values['M']}, {values['N']})"
        elif self.sampler == "softmax_v":
            name = f"Softmax-v({values['rho']:g}, {values['N']})"
        elif self.sampler == "uniform" and self.pair_loss:
            name = "Uniform"
        return ", ".join([name, *filter(None, (self.pair_loss, "refit" if self.refit else ""))])


NAMES = {  # in the order of the paper's table
    "uniform": "BPR",
    "popularity": "Popularity",
    "aobpr": "AOBPR",
    "warp": "WARP",
    "irgan": "IRGAN",
    "kernel": "Kernel",
    "pris_u": "PRIS(U)",
    "pris_p": "PRIS(P)",
    "adasir_u": "AdaSIR(U)",
    "adasir_p": "AdaSIR(P)",
    "non_sampling": "Non-Sampling",
    "softmax": "Softmax",
    "dns": "DNS",
    "softmax_v": "Softmax-v",
}
MODELS = {"BPR": "MF"}  # RecBole's name for matrix factorisation is that of a loss in the paper


def collect(paths: Iterable[Path]) -> list[Group]:
    """The groups of all ``result.json`` below the paths, in the order of the paper's table."""
    groups: dict[tuple, Group] = {}
    for path in paths:
        if not path.exists():
            raise Error(f"{path} does not exist.")
        files = [path] if path.is_file() else sorted(path.rglob("result.json"))
        if not files:
            raise Error(f"{path} holds no result.json: name the folder of a run or of a search.")
        for file in files:
            run = read_result(file)
            key = (
                MODELS.get(run["model"], run["model"]),
                run["dataset"],
                run["sampler"]["sampler"],
                _settings(run),
            )
            # A trial and the repeated test of its settings are not the same thing.
            groups.setdefault((*key, bool(run["test"])), Group(*key)).runs.append(run)
    order = {name: place for place, name in enumerate(NAMES)}
    return sorted(
        groups.values(), key=lambda g: (order.get(g.sampler, len(order)), g.pair_loss, g.refit)
    )


def _settings(run: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    values = {k: v for k, v in run["sampler"].items() if k not in NOT_SETTINGS}
    values.update({key: run["config"].get(key) for key in RUN_SETTINGS})
    values["refit"] = bool(run["config"].get("refit"))
    return tuple(sorted(values.items()))


def best_settings(groups: Sequence[Group]) -> list[Group]:
    """Of each method on each model and data set, what validated best and was tested.

    A refit has no validation of its own: that of the same settings before it counts.
    """

    def place(group: Group) -> tuple:
        settings = tuple(pair for pair in group.settings if pair[0] != "refit")
        return group.model, group.dataset, group.sampler, settings

    validated = {place(group): group.score for group in groups if group.tested and not group.refit}
    best: dict[tuple, tuple[float, Group]] = {}
    for group in groups:
        key, score = (group.model, group.dataset, group.method), validated.get(place(group), group.score)
        if group.tested and (key not in best or score > best[key][0]):
            best[key] = score, group
    return [group for _, group in best.values()]


def metric_name(key: str) -> str:
    """ndcg@10 as NDCG@10, recall@10 as Recall@10."""
    family, at, K = key.partition("@")
    names = {"recall": "Recall", "hit": "Hit", "precision": "Precision"}
    return names.get(family, family.upper()) + at + K


def metrics_of(groups: Sequence[Group]) -> list[str]:
    """The metrics that every run has, in the runs' order."""
    common = None
    for group in groups:
        for run in group.runs:
            names = list(run["test"] or run["best"]["valid"] or {})
            common = names if common is None else [name for name in common if name in names]
    return common or []


@dataclass(frozen=True)
class Sweep:
    """Groups that differ in one setting only: its effect."""

    model: str
    dataset: str
    sampler: str
    key: str
    groups: tuple[Group, ...]  # by the setting's value
    others: tuple[tuple[str, Any], ...]  # what they have in common

    @property
    def values(self) -> list[float]:
        """The values of the setting."""
        return [dict(group.settings)[self.key] for group in self.groups]


def sweeps(groups: Sequence[Group], at_least: int = 3) -> list[Sweep]:
    """Every setting that was varied alone, over ``at_least`` values or more.

    Groups that were tested and trials that were only validated do not share a curve. Where a setting was
    varied at several values of the others, the widest curve is taken, of equals the best validated.
    """
    curves: dict[tuple, dict[Any, Group]] = {}
    for group in groups:
        for key, value in group.settings:
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                others = tuple(pair for pair in group.settings if pair[0] != key)
                name = (group.model, group.dataset, group.sampler, key, group.tested, others)
                curves.setdefault(name, {})[value] = group
    found: dict[tuple, Sweep] = {}
    for (model, dataset, sampler, key, _, others), curve in curves.items():
        if len(curve) < at_least:
            continue
        sweep = Sweep(model, dataset, sampler, key, tuple(curve[v] for v in sorted(curve)), others)
        name, rank = (model, dataset, sampler, key), _rank(sweep)
        if name not in found or rank > _rank(found[name]):
            found[name] = sweep
    return list(found.values())


def _rank(sweep: Sweep) -> tuple:
    return (len(sweep.groups), max(group.score for group in sweep.groups))


def p_value(a: Group, b: Group, metric: str) -> float | None:
    """Welch's two-sided t-test over the seeds; None where one of them has a single seed."""
    first, second = a.values(metric), b.values(metric)
    if min(len(first), len(second)) < 2:
        return None
    p = float(ttest_ind(first, second, equal_var=False).pvalue)
    return p if p == p else None
