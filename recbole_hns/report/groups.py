"""Runs that differ in their seeds only, grouped, and of each method the group that validated best."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from recbole_hns.bridge.config import MODEL_ALIASES
from recbole_hns.report.records import Record, find_records
from recbole_hns.sampling import methods

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
# RecBole's name for matrix factorisation is that of a loss in the paper.
MODELS = {model: alias for alias, model in MODEL_ALIASES.items()}


@dataclass(frozen=True)
class Protocol:
    """What must agree for runs to be compared: the metric that chose, the split, the evaluation."""

    valid_metric: str  # as a key of the results: ndcg@10
    evaluation: str  # eval_args, as JSON
    split: str  # "files", "seed 2020", or "each seed" where every seed has a split of its own

    @classmethod
    def of(cls, run: Record) -> Protocol:
        """The protocol of a run."""
        fixed = run.config.get("split_seed")
        if run.config.get("benchmark_filename"):
            split = "files"
        elif fixed is not None or run.test is None:  # a trial's split is that of its winner's tests
            split = f"seed {run.seed if fixed is None else fixed}"
        else:
            split = "each seed"
        evaluation = json.dumps(run.config.get("eval_args"), sort_keys=True)
        return cls(run.valid_metric.strip().lower(), evaluation, split)

    def __str__(self) -> str:
        words = "" if self.evaluation == "null" else self.evaluation.replace('"', "").strip("{}")
        splits = {"files": "by files", "each seed": "by each run's seed"}
        return "; ".join(filter(None, [f"split {splits.get(self.split, f'by {self.split}')}", words]))


@dataclass
class Group:
    """Runs that differ in their seeds only."""

    model: str
    dataset: str
    sampler: str
    settings: tuple[tuple[str, object], ...]
    protocol: Protocol
    tested: bool  # trials of a search are only validated
    runs: list[Record] = field(default_factory=list)

    @property
    def place(self) -> tuple[str, str, Protocol]:
        """Where groups compete: model, data set and protocol."""
        return self.model, self.dataset, self.protocol

    def by_seed(self, metric: str) -> dict[int, float]:
        """A metric of every run that has it; of runs with one seed, the last."""
        values = {run.seed: run.values.get(metric) for run in self.runs}
        return {seed: value for seed, value in values.items() if value is not None}

    def values(self, metric: str) -> list[float]:
        """A metric of every run that has it."""
        found = (run.values.get(metric) for run in self.runs)
        return [value for value in found if value is not None]

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
        sign = 1 if self.runs[0].valid_metric_bigger else -1
        scores = [run.best.score for run in self.runs if run.best.score is not None]
        return sign * statistics.fmean(scores) if scores else float("-inf")

    @cached_property
    def values_of(self) -> dict[str, object]:
        """The settings by name."""
        return dict(self.settings)

    @property
    def pair_loss(self) -> str:
        """The loss, where it is not the one that the method is defined with; empty otherwise."""
        own = methods.own_loss(self.sampler)
        loss = str(self.values_of.get("pair_loss", own))
        return "" if loss == own else loss

    @property
    def refit(self) -> bool:
        """Whether the validation part was trained on."""
        return bool(self.values_of.get("refit"))

    @property
    def original(self) -> str:
        """``M = 1`` for the original DNS, which is a baseline of DNS(M, N); else empty."""
        return methods.original(self.sampler, self.values_of)

    @property
    def family(self) -> tuple[str, str]:
        """The method, whatever its loss and whether it is refitted."""
        return self.sampler, self.original

    @property
    def method(self) -> tuple[str, str, str, bool]:
        """What has a row of its own in a table."""
        return (*self.family, self.pair_loss, self.refit)

    @cached_property
    def label(self) -> str:
        """The method with what it was set to, as the paper writes it, and the loss if it is another."""
        return ", ".join([methods.label(self.sampler, self.values_of), *self._variant])

    @property
    def short_label(self) -> str:
        """The label without settings, for a row whose data sets have different ones."""
        name = methods.title(self.sampler, self.pair_loss)
        return ", ".join(filter(None, (name, self.original, *self._variant)))

    @property
    def _variant(self) -> list[str]:
        return list(filter(None, (self.pair_loss, "refit" if self.refit else "")))


def collect(paths: Iterable[Path]) -> list[Group]:
    """The groups of all records below the paths, in the order of the paper's table."""
    return make_groups(find_records(paths))


def make_groups(records: Iterable[Record]) -> list[Group]:
    """The groups of the records, in the order of the paper's table."""
    groups: dict[object, Group] = {}
    for run in records:
        group = Group(
            MODELS.get(run.model, run.model),
            run.dataset,
            run.method,
            _settings(run),
            Protocol.of(run),
            bool(run.test),
        )
        key = (*group.place, group.sampler, group.settings, group.tested)
        groups.setdefault(key, group).runs.append(run)
    for group in groups.values():
        group.runs.sort(key=lambda run: run.seed)
    return sorted(groups.values(), key=_order)


def _settings(run: Record) -> tuple[tuple[str, object], ...]:
    values = {key: value for key, value in run.sampler.items() if key not in NOT_SETTINGS}
    values.update({key: run.config.get(key) for key in RUN_SETTINGS})
    values["refit"] = bool(run.config.get("refit"))
    return tuple((key, _hashable(value)) for key, value in sorted(values.items()))


def _hashable(value: object) -> object:
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _order(group: Group) -> tuple[object, ...]:
    settings = [
        (key, (0, float(value), "") if isinstance(value, (int, float)) else (1, 0.0, str(value)))
        for key, value in group.settings
    ]
    name = (methods.place(group.sampler), group.sampler)
    return (*name, group.pair_loss, group.refit, settings, group.tested)


def best_settings(groups: Sequence[Group]) -> list[Group]:
    """Of each method at each place, what validated best and was tested.

    A refit has no validation of its own: that of the same settings before it counts.
    """

    def without_refit(group: Group) -> tuple[object, ...]:
        settings = tuple(pair for pair in group.settings if pair[0] != "refit")
        return (*group.place, group.sampler, settings)

    tested = [group for group in groups if group.tested]
    validated = {without_refit(group): group.score for group in tested if not group.refit}
    best: dict[object, tuple[float, Group]] = {}
    for group in tested:
        key, score = (*group.place, group.method), validated.get(without_refit(group), group.score)
        if key not in best or score > best[key][0]:
            best[key] = score, group
    return [group for _, group in best.values()]


def metrics_of(groups: Sequence[Group], every: bool = True) -> list[str]:
    """The metrics that every run has, or any: first the one that chose, then in the runs' order."""
    runs = [run for group in groups for run in group.runs]
    chose = [group.protocol.valid_metric for group in groups]
    names = dict.fromkeys([*chose, *(name for run in runs for name in run.values)])
    wanted = all if every else any
    return [name for name in names if wanted(name in run.values for run in runs)]
