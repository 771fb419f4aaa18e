"""The paper's table from finished runs, in Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recbole_hns.report.collect import Group, metric_name, p_value

ALPHA = 0.05


@dataclass(frozen=True)
class Cell:
    """A metric of a method on a data set."""

    mean: float
    std: float
    n: int
    place: int  # 1 for the best, 2 for the second, 0 for all others
    p: float | None  # of the best against the second

    @property
    def significant(self) -> bool:
        """Whether the best is better than the second beyond chance."""
        return self.p is not None and self.p < ALPHA


@dataclass(frozen=True)
class Table:
    """Methods by data sets and metrics."""

    model: str
    datasets: list[str]
    metrics: list[str]
    methods: list[str]
    cells: dict[tuple[str, str, str], Cell]  # by method, data set and metric

    def columns(self) -> list[tuple[str, str]]:
        """(data set, metric) pairs."""
        return [(dataset, metric) for dataset in self.datasets for metric in self.metrics]


def make_tables(groups: Sequence[Group], metrics: Sequence[str]) -> list[Table]:
    """A table for each model."""
    tables = []
    for model in dict.fromkeys(group.model for group in groups):
        own = [group for group in groups if group.model == model]
        datasets = list(dict.fromkeys(group.dataset for group in own))
        methods = list(dict.fromkeys(_method(group, own) for group in own))
        cells = {}
        for dataset in datasets:
            here = [group for group in own if group.dataset == dataset]
            for metric in metrics:
                cells.update(_ranked(here, own, dataset, metric))
        tables.append(Table(model, datasets, list(metrics), methods, cells))
    return tables


def _method(group: Group, groups: Sequence[Group]) -> str:
    """The label with its settings, unless they differ between data sets."""
    labels = {other.label for other in groups if other.method == group.method}
    return group.label if len(labels) == 1 else re.sub(r"\(.*\)", "", group.label)


def _ranked(here, own, dataset, metric):
    scored = [group for group in here if group.mean(metric) is not None]
    order = sorted(scored, key=lambda group: -group.mean(metric))
    for place, group in enumerate(order, 1):
        p = p_value(order[0], order[1], metric) if place == 1 and len(order) > 1 else None
        cell = Cell(
            group.mean(metric),
            group.std(metric),
            len(group.values(metric)),
            place if place <= 2 and len(order) > 1 else 0,
            p,
        )
        yield (_method(group, own), dataset, metric), cell


def markdown(table: Table) -> str:
    """Best bold, second underlined, ``**`` where the best beats the second significantly."""
    head = ["method", *(f"{dataset} {metric_name(metric)}" for dataset, metric in table.columns())]
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    for method in table.methods:
        cells = [table.cells.get((method, *column)) for column in table.columns()]
        lines.append("| " + " | ".join([method, *map(_markdown_cell, cells)]) + " |")
    return "\n".join(lines) + "\n\n" + note(table) + "\n"


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    text = mean_and_std(cell)
    if cell.place == 1:
        text = f"**{text}**" + ("\\*\\*" if cell.significant else "")
    return f"<u>{text}</u>" if cell.place == 2 else text


def mean_and_std(cell: Cell, plus_minus: str = " ± ") -> str:
    """0.1234 ± 0.0056; without the second where there is one seed."""
    return f"{cell.mean:.4f}" + (f"{plus_minus}{cell.std:.4f}" if cell.n > 1 else "")


def latex(table: Table) -> str:
    """The same as a ``tabular`` for booktabs."""
    width = len(table.metrics)
    heads = " & ".join(f"\\multicolumn{{{width}}}{{c}}{{{_tex(d)}}}" for d in table.datasets)
    metrics = " & ".join(_tex(metric_name(metric)) for _, metric in table.columns())
    lines = [
        f"\\begin{{tabular}}{{l{'c' * len(table.columns())}}}",
        "\\toprule",
        f"Method & {heads} \\\\",
        f" & {metrics} \\\\",
        "\\midrule",
    ]
    for method in table.methods:
        cells = [table.cells.get((method, *column)) for column in table.columns()]
        lines.append(" & ".join([_tex(method), *map(_latex_cell, cells)]) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}", f"% {note(table)}"]
    return "\n".join(lines) + "\n"


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    text = mean_and_std(cell, " $\\pm$ ")
    if cell.place == 1:
        return f"\\textbf{{{text}{'**' if cell.significant else ''}}}"
    return f"\\underline{{{text}}}" if cell.place == 2 else text


def _tex(text: str) -> str:
    for character in "\\&%$#_{}":
        text = text.replace(character, "\\" + character)
    return text


def note(table: Table) -> str:
    """What the marks mean, with every p."""
    tests = []
    for dataset, metric in table.columns():
        column = [c for key, c in table.cells.items() if key[1:] == (dataset, metric)]
        tests += [f"{dataset} {metric_name(metric)} p = {c.p:.2g}" for c in column if c.p is not None]
    text = "Mean ± standard deviation over seeds on the test set. Best bold, second underlined."
    if tests:
        text += (
            " ** marks a best that differs from the second by Welch's two-sided t-test over seeds at "
            f"p < {ALPHA:g}: {'; '.join(tests)}."
        )
    else:
        text += " No significance is given: that takes two seeds or more of the best two methods."
    return text
