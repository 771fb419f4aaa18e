"""The report as one HTML page that needs nothing else: interactive, sortable, readable on a phone."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.colors import sample_colorscale
from plotly.offline import get_plotlyjs

from recbole_hns.report.collect import Group, Sweep, metric_name
from recbole_hns.report.figures import Curve, effect_title, families, symbol
from recbole_hns.report.tables import Cell, Table, mean_and_std, note

STYLE = """
:root { color-scheme: light; font-family: system-ui, sans-serif; line-height: 1.45; color: #222; }
body { max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
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


def make_page(
    title: str,
    tables: Sequence[Table],
    effects: Sequence[tuple[Sweep, list[Curve]]],
    strategies: Sequence[tuple[str, list[Group]]],
    metrics: Sequence[str],
    groups: Sequence[Group],
) -> str:
    """The whole page."""
    parts = [f"<h1>{html.escape(title)}</h1>"]
    for table in tables:
        parts += [f"<h2>{html.escape(table.model)}: test results</h2>", _table(table)]
    plots = 0
    for heading, compared in strategies:
        parts += [f"<h2>{html.escape(heading)}</h2>", _plot(_bars(compared, metrics), plots)]
        plots += 1
    for sweep, curves in effects:
        parts.append(f"<h2>{html.escape(effect_title(sweep))}</h2>")
        parts.append('<p class="note">Each curve relative to its own maximum, which a star marks.</p>')
        for family in families(curves):
            own = [curve for curve in curves if curve.metric == family]
            parts.append(_plot(_effect(sweep, own, family), plots))
            plots += 1
    parts += ["<h2>All runs</h2>", _runs(groups, metrics)]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head><body>\n"
        + "\n".join(parts)
        + f"\n<script>{SORT}</script></body></html>\n"
    )


def _table(table: Table) -> str:
    heads = "".join(f"<th>{html.escape(f'{d} {metric_name(m)}')}</th>" for d, m in table.columns())
    rows = []
    for method in table.methods:
        cells = "".join(_cell(table.cells.get((method, *column))) for column in table.columns())
        rows.append(f"<tr><td>{html.escape(method)}</td>{cells}</tr>")
    return (
        f"<div class='scroll'><table class='sortable'><thead><tr><th>method</th>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div><p class='note'>{html.escape(note(table))}</p>"
    )


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td data-value=''></td>"
    kind = {1: " class='best'", 2: " class='second'"}.get(cell.place, "")
    star = "**" if cell.significant else ""
    return f"<td{kind} data-value='{cell.mean}'>{mean_and_std(cell)}{star}</td>"


def _runs(groups: Sequence[Group], metrics: Sequence[str]) -> str:
    """Every setting that was tried, with what it gave."""
    settings = list(dict.fromkeys(key for group in groups for key, _ in group.settings))
    varied = [k for k in settings if len({str(dict(g.settings).get(k)) for g in groups}) > 1]
    heads = ["method", "data set", "model", *varied, "seeds", "on", *map(metric_name, metrics)]
    rows = []
    for group in groups:
        values = dict(group.settings)
        cells = [group.label, group.dataset, group.model]
        cells += ["" if values.get(key) is None else f"{values[key]}" for key in varied]
        cells += [str(len(group.runs)), "test" if group.tested else "validation"]
        cells += ["" if group.mean(m) is None else f"{group.mean(m):.4f}" for m in metrics]
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    return (
        f"<div class='scroll'><table class='sortable'><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _plot(figure: go.Figure, number: int) -> str:
    figure.update_layout(
        margin={"l": 50, "r": 15, "t": 40, "b": 50},
        template="plotly_white",
        legend={"orientation": "h", "y": -0.25},
    )
    return figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=f"plot-{number}",
        config={"responsive": True, "displaylogo": False, "displayModeBar": False},
        default_height="24rem",
        default_width="100%",
    )


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
    figure.update_layout(title=family, xaxis_title=symbol(sweep.key), yaxis_title="relative")
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
            name=group.label,
        )
    figure.update_layout(barmode="group")
    return figure
