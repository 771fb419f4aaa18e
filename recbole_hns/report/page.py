"""The report as one HTML page that needs nothing else: interactive, sortable, readable on a phone."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from itertools import count

import plotly.graph_objects as go
from plotly.colors import sample_colorscale
from plotly.offline import get_plotlyjs

from recbole_hns.report.groups import Group
from recbole_hns.report.measures import metric_name
from recbole_hns.report.sections import Section
from recbole_hns.report.sweeps import Curve, Sweep, families
from recbole_hns.report.tables import Cell, Table, mean_and_std, note, p_and_kind
from recbole_hns.sampling import methods

STYLE = """
:root { color-scheme: light; font-family: system-ui, sans-serif; line-height: 1.45; color: #222; }
body { max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin-top: 2.6rem; }
h3 { font-size: 1.05rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.92rem; }
th, td { padding: 0.35rem 0.7rem; text-align: right; white-space: nowrap; }
td { border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
thead th { cursor: pointer; border-bottom: 2px solid #555; background: #fff; }
thead th::after { content: " ↕"; color: #999; }
thead th[data-order="1"]::after { content: " ↑"; color: #222; }
thead th[data-order="-1"]::after { content: " ↓"; color: #222; }
.best { font-weight: 700; } .second { text-decoration: underline; }
.note { color: #555; font-size: 0.88rem; }
.plot { width: 100%; height: 24rem; }
@media (max-width: 40rem) { body { padding: 0.6rem; } .plot { height: 20rem; } }
"""

SORT = """
document.querySelectorAll("table.sortable thead").forEach(head => {
  head.querySelectorAll("th").forEach((th, column) => th.addEventListener("click", () => {
    const order = th.dataset.order === "-1" ? 1 : -1;
    head.querySelectorAll("th").forEach(other => delete other.dataset.order);
    th.dataset.order = order;
    const body = head.parentElement.tBodies[0];
    const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const number = value => value === "" ? -Infinity : Number(value);
    [...body.rows].sort((a, b) => {
      const x = key(a), y = key(b);
      return order * (isNaN(number(x)) || isNaN(number(y)) ? x.localeCompare(y) : number(x) - number(y));
    }).forEach(row => body.appendChild(row));
  }));
});
"""


def make_page(title: str, sections: Sequence[Section]) -> str:
    """The whole page."""
    parts = [f"<h1>{html.escape(title)}</h1>"]
    plots = count()
    for section in sections:
        parts += _section(section, plots)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head><body>\n"
        + "\n".join(parts)
        + f"\n<script>{SORT}</script></body></html>\n"
    )


def _section(section: Section, plots: Iterator[int]) -> Iterator[str]:
    yield f"<h2>{html.escape(section.heading)}</h2>"
    if section.table:
        yield _table(section.table)
    yield from (f"<p class='note'>{html.escape(remark)}</p>" for remark in section.remarks)
    for one in section.strategies:
        yield f"<h3>{html.escape(one.title)}</h3>{_plot(_bars(one.groups, one.metrics), next(plots))}"
    for sweep, curves in section.effects:
        yield f"<h3>{html.escape(sweep.title)}</h3>"
        yield '<p class="note">Each curve relative to its own maximum, which a star marks.</p>'
        for family in families(curves):
            own = [curve for curve in curves if curve.metric == family]
            yield _plot(_effect(sweep, own, family), next(plots))
    yield f"<h3>All runs</h3>{_runs(section.groups, section.shown)}"


def _table(table: Table) -> str:
    heads = [f"{dataset} {metric_name(metric)}" for dataset, metric in table.columns]
    rows = [
        f"<td>{html.escape(method)}</td>" + "".join(map(_cell, table.row(method)))
        for method in table.methods
    ]
    return f"{_sortable(['method', *heads], rows)}<p class='note'>{html.escape(note(table))}</p>"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td data-value=''></td>"
    kind = {1: " class='best'", 2: " class='second'"}.get(cell.place, "")
    test = ""
    if cell.comparison:
        words = f"against {cell.comparison.baseline.label}: p = {p_and_kind(cell.comparison)}"
        test = f" title='{html.escape(words)}'"
    star = "**" if cell.significant else ""
    return f"<td{kind}{test} data-value='{cell.mean}'>{mean_and_std(cell)}{star}</td>"


def _runs(groups: Sequence[Group], metrics: Sequence[str]) -> str:
    """Every setting that was tried, with what it gave."""
    settings = list(dict.fromkeys(key for group in groups for key, _ in group.settings))
    varied = [key for key in settings if len({str(group.values_of.get(key)) for group in groups}) > 1]
    heads = ["method", "data set", *varied, "seeds", "on", *map(metric_name, metrics)]
    rows = []
    for group in groups:
        values = [group.values_of.get(key) for key in varied]
        means = [group.mean(metric) for metric in metrics]
        cells = [group.label, group.dataset, *("" if value is None else str(value) for value in values)]
        cells += [str(len(group.runs)), "test" if group.tested else "validation"]
        cells += ["" if mean is None else f"{mean:.4f}" for mean in means]
        rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells))
    return _sortable(heads, rows)


def _sortable(heads: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f"<div class='scroll'><table class='sortable'><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _plot(figure: go.Figure, number: int) -> str:
    figure.update_layout(
        margin={"l": 50, "r": 15, "t": 40, "b": 50},
        template="plotly_white",
        legend={"orientation": "h", "y": -0.25},
    )
    text: str = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=f"plot-{number}",
        config={"responsive": True, "displaylogo": False, "displayModeBar": False},
        default_height="24rem",
        default_width="100%",
    )
    return text


def _effect(sweep: Sweep, curves: Sequence[Curve], family: str) -> go.Figure:
    figure = go.Figure()
    for curve in sorted(curves, key=lambda c: c.K):
        sizes = [9] * len(curve.x)
        symbols = ["circle"] * len(curve.x)
        sizes[curve.best], symbols[curve.best] = 18, "star"
        figure.add_scatter(
            x=[f"{x:g}" for x in curve.x],
            y=curve.y,
            mode="lines+markers",
            name=f"K = {curve.K}",
            marker={"size": sizes, "symbol": symbols},
        )
    key = html.escape(methods.symbol(sweep.key))
    figure.update_layout(title=family, xaxis_title=key, yaxis_title="relative")
    figure.update_xaxes(type="category")
    return figure


def _bars(groups: Sequence[Group], metrics: Sequence[str]) -> go.Figure:
    figure = go.Figure()
    # As in the figure: plotly's own ten colours begin anew, and the paper's table has 13 samplers.
    colours = sample_colorscale("Viridis", [0.15 + 0.7 * n / len(groups) for n in range(len(groups))])
    for group, colour in zip(groups, colours):
        figure.add_bar(
            marker_color=colour,
            x=[metric_name(metric) for metric in metrics],
            y=[group.mean(metric) for metric in metrics],
            error_y={"type": "data", "array": [group.std(metric) for metric in metrics]},
            name=html.escape(group.label),  # plotly reads tags
        )
    figure.update_layout(barmode="group")
    return figure
