"""What a report says, in sections within which everything is comparable."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recbole_hns.errors import Error
from recbole_hns.report.groups import Group, best_settings, metrics_of
from recbole_hns.report.measures import metric_name
from recbole_hns.report.sweeps import Curve, Sweep, effect_curves, sweeps
from recbole_hns.report.tables import Table, make_table

FEW = 4  # metrics that a table or a figure of bars shows unless told otherwise


@dataclass(frozen=True)
class Strategies:
    """Methods that were tested on one model and data set, for bars side by side."""

    title: str
    groups: list[Group]
    metrics: list[str]


@dataclass(frozen=True)
class Section:
    """The groups of one model that were measured alike, and all that is made of them."""

    heading: str
    groups: list[Group]
    shown: list[str]  # metrics
    table: Table | None  # None where nothing was tested
    strategies: list[Strategies]
    effects: list[tuple[Sweep, list[Curve]]]
    remarks: list[str]  # what is not in the table, and why


def make_sections(
    groups: Sequence[Group], metrics: Sequence[str] | None = None, ours: Collection[str] = ()
) -> list[Section]:
    """A section for each model and protocol."""
    wanted = None if metrics is None else [name.strip().lower() for name in metrics]
    known = metrics_of(groups, every=False)
    for name in wanted or ():
        if name not in known:
            raise Error(f"metric {name} is in no run: they have {', '.join(known)}.")
    for name in ours:
        if name not in {group.sampler for group in groups}:
            raise Error(f"ours={name} is no sampler of these runs: name the methods that are compared.")
    apart: dict[object, list[Group]] = {}
    for group in groups:
        apart.setdefault((group.model, group.protocol), []).append(group)
    sections = sorted(apart.values(), key=lambda own: not any(group.tested for group in own))
    return [_section(head, own, wanted, ours) for head, own in zip(_headings(sections), sections)]


def _headings(sections: Sequence[Sequence[Group]]) -> list[str]:
    """What tells the sections apart: the metric that chose, and the split where that is not enough."""
    short = []
    for groups in sections:
        datasets = ", ".join(dict.fromkeys(group.dataset for group in groups))
        chose = metric_name(groups[0].protocol.valid_metric)
        short.append(f"{groups[0].model} on {datasets}, chosen by {chose}")
    return [
        heading if short.count(heading) == 1 else f"{heading}; {groups[0].protocol}"
        for heading, groups in zip(short, sections)
    ]


def _section(
    heading: str, groups: list[Group], wanted: Sequence[str] | None, ours: Collection[str]
) -> Section:
    best = best_settings(groups)
    shown: dict[str, list[str]] = {}  # by data set
    for dataset in dict.fromkeys(group.dataset for group in groups):
        own = [group for group in groups if group.dataset == dataset]
        shown[dataset] = _shown(wanted, [group for group in best if group.dataset == dataset] or own)
    columns = [
        (dataset, metric)
        for dataset in dict.fromkeys(group.dataset for group in best)
        for metric in shown[dataset]
    ]
    curves = ((sweep, effect_curves(sweep, metrics_of(sweep.groups))) for sweep in sweeps(groups))
    return Section(
        heading,
        groups,
        list(dict.fromkeys(metric for metrics in shown.values() for metric in metrics)),
        make_table(best, columns, ours) if best else None,
        _strategies(best, shown),
        [(sweep, drawn) for sweep, drawn in curves if drawn],
        _remarks(groups, best, wanted),
    )


def _shown(wanted: Sequence[str] | None, groups: Sequence[Group]) -> list[str]:
    """The metric that chose, and what was asked for; unless asked, NDCG and Recall at the ends of K."""
    some, common = metrics_of(groups, every=False), metrics_of(groups)
    Ks = sorted({int(K) for name in common for K in [name.partition("@")[2]] if K.isdigit()})
    ends = dict.fromkeys([*Ks[:1], *Ks[-1:]])
    preferred = [f"{family}@{K}" for K in ends for family in ("ndcg", "recall")]
    usual = [name for name in preferred if name in common] or common[:FEW]
    chose = groups[0].protocol.valid_metric
    return [name for name in dict.fromkeys([chose, *(wanted or usual)]) if name in some]


def _strategies(best: Sequence[Group], shown: dict[str, list[str]]) -> list[Strategies]:
    """The methods of each data set with two or more of them.

    Runs before and after a refit are not compared: where all were refitted, the refits are.
    """
    found = []
    for dataset, metrics in shown.items():
        here = [group for group in best if group.dataset == dataset]
        refits = [group for group in here if group.refit]
        compared = refits if 2 * len(refits) == len(here) else here
        if len(compared) > 1:
            title = f"Sampling strategies: {here[0].model} on {dataset}"
            found.append(Strategies(title, compared, metrics))
    return found


def _remarks(groups: Sequence[Group], best: Sequence[Group], wanted: Sequence[str] | None) -> list[str]:
    """What a reader of the table would miss."""
    remarks = []
    for dataset in dict.fromkeys(group.dataset for group in groups):
        here = [group for group in groups if group.dataset == dataset]
        known = metrics_of(here, every=False)
        missing = [metric_name(name) for name in wanted or () if name not in known]
        if missing:
            has = ", ".join(map(metric_name, known))
            remarks.append(f"The runs on {dataset} have no {' and no '.join(missing)}: they have {has}.")
        if not any(group.tested for group in here):
            remarks.append(f"Nothing was tested on {dataset}: {len(here)} settings were validated only.")
    others = sum(group.tested for group in groups) - len(best)
    if others:
        remarks.append(
            f"Of a method, the settings that validated best are shown; tested beside them: {others}."
        )
    return remarks
