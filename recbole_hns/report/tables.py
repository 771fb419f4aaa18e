"""The paper's table from finished runs, in Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from recbole_hns.report.comparison import ALPHA, Comparison, compare
from recbole_hns.report.groups import Group, Protocol
from recbole_hns.report.measures import metric_name, sign

Column = tuple[str, str]  # data set, metric


@dataclass(frozen=True)
class Cell:
    """A metric of a method on a data set."""

    mean: float
    std: float
    n: int
    place: int  # 1 for the best of its kind, 2 for the second, 0 for all others
    comparison: Comparison | None

    @property
    def significant(self) -> bool:
        """Whether the method is better than its best baseline beyond chance."""
        return self.comparison is not None and self.comparison.significant


@dataclass(frozen=True)
class Table:
    """Methods by data sets and metrics, all of one model and one protocol."""

    model: str
    protocol: Protocol
    columns: list[Column]
    methods: list[str]  # the rows
    cells: dict[tuple[str, str, str], Cell]  # by method, data set and metric
    refits: bool  # whether there are rows of both kinds
    ours: tuple[str, ...]

    def row(self, method: str) -> list[Cell | None]:
        """The cells of a method, None where it was not tested."""
        return [self.cells.get((method, *column)) for column in self.columns]


def make_table(groups: Sequence[Group], columns: Sequence[Column], ours: Collection[str] = ()) -> Table:
    """The table of groups of one model and one protocol, a row for each method."""
    rows = _rows(groups)
    cells: dict[tuple[str, str, str], Cell] = {}
    for dataset, metric in columns:
        here = [group for group in groups if group.dataset == dataset and group.values(metric)]
        for refit in (False, True):
            kind = [group for group in here if group.refit == refit]
            for group, cell in _ranked(kind, metric, ours):
                cells[rows[group.method], dataset, metric] = cell
    both = len({group.refit for group in groups}) == 2
    names, first = list(dict.fromkeys(rows.values())), groups[0]
    return Table(first.model, first.protocol, list(columns), names, cells, both, tuple(ours))


def _rows(groups: Sequence[Group]) -> dict[object, str]:
    """What the row of every method is called: with settings, unless they differ between data sets."""
    labels: dict[object, list[Group]] = {}
    for group in groups:
        labels.setdefault(group.method, []).append(group)
    return {
        method: own[0].label if len({group.label for group in own}) == 1 else own[0].short_label
        for method, own in labels.items()
    }


def _ranked(kind: Sequence[Group], metric: str, ours: Collection[str]) -> Iterator[tuple[Group, Cell]]:
    order = sorted(kind, key=lambda group: -sign(metric) * (group.mean(metric) or 0.0))
    for place, group in enumerate(order, 1):
        values = group.values(metric)
        ranked = place if place <= 2 and len(order) > 1 else 0
        comparison = compare(group, kind, metric, ours)
        yield group, Cell(group.mean(metric) or 0.0, group.std(metric), len(values), ranked, comparison)


def mean_and_std(cell: Cell, plus_minus: str = " ± ") -> str:
    """0.1234 ± 0.0056; without the second where there is one seed."""
    return f"{cell.mean:.4f}" + (f"{plus_minus}{cell.std:.4f}" if cell.n > 1 else "")


def markdown(table: Table) -> str:
    """Best bold, second underlined, ``**`` where a method beats its best baseline significantly."""
    rows = [["method", *(f"{dataset} {metric_name(metric)}" for dataset, metric in table.columns)]]
    lines = [_markdown_line(map(markdown_text, rows[0])), _markdown_line("---" for _ in rows[0])]
    for method in table.methods:
        lines.append(_markdown_line([markdown_text(method), *map(_markdown_cell, table.row(method))]))
    return "\n".join(lines) + "\n\n" + markdown_text(note(table)) + "\n"


def _markdown_line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def markdown_text(text: str) -> str:
    """A name on one line, without what Markdown or HTML would take for its own."""
    text = re.sub(r"([\\|*`\[\]])", r"\\\1", one_line(text))
    return re.sub(r"<(?=\S)", "&lt;", re.sub(r"&(?=[\w#])", "&amp;", text))


def one_line(text: str) -> str:
    """The text without line breaks and other characters that do not print."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    text, mark = mean_and_std(cell), "\\*\\*" if cell.significant else ""
    styles = {1: f"**{text}**", 2: f"<u>{text}</u>"}
    return styles.get(cell.place, text) + mark


def latex(table: Table) -> str:
    """The same as a ``tabular`` for booktabs."""
    widths: dict[str, int] = {}
    for dataset, _ in table.columns:
        widths[dataset] = widths.get(dataset, 0) + 1
    heads = " & ".join(f"\\multicolumn{{{n}}}{{c}}{{{tex(dataset)}}}" for dataset, n in widths.items())
    metrics = " & ".join(tex(metric_name(metric)) for _, metric in table.columns)
    lines = [
        f"\\begin{{tabular}}{{l{'c' * len(table.columns)}}}",
        "\\toprule",
        f"Method & {heads} \\\\",
        f" & {metrics} \\\\",
        "\\midrule",
    ]
    for method in table.methods:
        lines.append(" & ".join([tex(method), *map(_latex_cell, table.row(method))]) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}", f"% {one_line(note(table))}"]
    return "\n".join(lines) + "\n"


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    text = mean_and_std(cell, " $\\pm$ ") + ("**" if cell.significant else "")
    styles = {1: f"\\textbf{{{text}}}", 2: f"\\underline{{{text}}}"}
    return styles.get(cell.place, text)


TEX = {
    **{character: "\\" + character for character in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "†": "\\dag{}",
}


def tex(text: str) -> str:
    """A name on one line, without what LaTeX would take for its own."""
    return "".join(TEX.get(character, character) for character in one_line(text))


def note(table: Table) -> str:
    """What the marks mean, which test was made, and against which row."""
    text = "Mean ± standard deviation over seeds on the test set. Best bold, second underlined"
    text += ", refits apart. " if table.refits else ". "
    small = [metric for _, metric in table.columns if sign(metric) < 0]
    if small:
        text += f"Smaller is better for {', '.join(dict.fromkeys(map(metric_name, small)))}. "
    found = [cell.comparison for cell in table.cells.values() if cell.comparison]
    if not found:
        return text + "No significance is given: that takes a baseline, and two seeds or more of both."
    but = f" (but not of {' or '.join(table.ours)})" if table.ours else ""
    kind = ", for a refit the best refit" if table.refits else ""
    welch = "" if all(one.paired for one in found) else ", Welch's where the seeds differ"
    return text + (
        f"** marks what is better than its best baseline, the best row of another method{but}{kind}, at "
        f"p < {ALPHA:g} by a two-sided t-test, paired by seed{welch}. {'; '.join(_tests(table))}."
    )


def _tests(table: Table) -> Iterator[str]:
    """For every baseline, the rows that are better than it, with p."""
    for dataset, metric in table.columns:
        better: dict[str, list[str]] = {}  # by baseline
        for method in table.methods:
            cell = table.cells.get((method, dataset, metric))
            test = cell.comparison if cell else None
            if test and test.better:
                better.setdefault(test.baseline.label, []).append(f"{method} p = {p_and_kind(test)}")
        for baseline, rows in better.items():
            yield f"{dataset} {metric_name(metric)} against {baseline}: {', '.join(rows)}"


def p_and_kind(test: Comparison) -> str:
    """The p of a test, and its kind where that is not the usual one."""
    return f"{test.p:.2g}" + ("" if test.paired else " (Welch)")
