"""The paper's figures from finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recbole_hns.files import whole_file
from recbole_hns.report.groups import Group
from recbole_hns.report.measures import metric_name
from recbole_hns.report.sweeps import Curve, Sweep, families
from recbole_hns.report.tables import one_line
from recbole_hns.sampling import methods

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plain(text: str) -> str:
    """A name on one line, without the dollar signs between which matplotlib would read mathematics."""
    return one_line(text).replace("$", "\\$")


def save(figure: Figure, file: Path, dpi: int = 150) -> None:
    """Write a PNG, whole or not at all."""
    with whole_file(file, "wb") as stream:
        figure.savefig(stream, format="png", dpi=dpi)


def plot_effect(sweep: Sweep, curves: Sequence[Curve], file: Path) -> None:
    """One panel per metric, one curve per K, maxima marked."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    names = families(curves)
    figure = Figure(figsize=(max(5.0, 3.6 * len(names)) + 1, 4.2))
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for axis, name in zip(axes, names):
        own = sorted((curve for curve in curves if curve.metric == name), key=lambda c: c.K)
        colours = colormaps["viridis"](np.linspace(0.15, 0.85, len(own)))
        sizes = np.linspace(24, 11, len(own))  # maxima at the same place show as stars within stars
        for curve, colour, size in zip(own, colours, sizes):
            place = np.arange(len(curve.x))
            axis.plot(place, curve.y, "o-", color=colour, ms=4, label=f"K = {curve.K}")
            best = place[curve.best], curve.y[curve.best]
            axis.plot(*best, "*", color=colour, ms=size, mec="black", mew=0.6, zorder=3, clip_on=False)
        axis.set_xticks(np.arange(len(own[0].x)), [f"{x:g}" for x in own[0].x])
        axis.set_xlabel(plain(methods.symbol(sweep.key)), fontsize=11)
        axis.set_title(name, fontsize=11)
        axis.grid(alpha=0.3)
    axes[-1].legend(fontsize=9, loc="center left", bbox_to_anchor=(1.02, 0.5))  # the same in all panels
    axes[0].set_ylabel("relative to the curve's maximum (★)", fontsize=10)
    figure.suptitle(plain(sweep.title), fontsize=11)
    figure.tight_layout()
    save(figure, file)


def plot_strategies(groups: Sequence[Group], metrics: Sequence[str], title: str, file: Path) -> None:
    """Bars of the samplers one below the other, a panel per metric (the paper's figure 1)."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.6 + 3.2 * len(metrics), 1.3 + 0.32 * len(groups)))
    axes = figure.subplots(1, len(metrics), squeeze=False, sharey=True)[0]
    colours = colormaps["viridis"](np.linspace(0.15, 0.85, len(groups)))
    place = np.arange(len(groups))
    for axis, metric in zip(axes, metrics):
        means = [group.mean(metric) or 0 for group in groups]
        axis.barh(place, means, xerr=[group.std(metric) for group in groups], color=colours, capsize=3)
        for y, mean in zip(place, means):
            axis.annotate(f"{mean:.4f}", (mean, y), (6, 0), textcoords="offset points", va="center")
        axis.set_xlim(right=1.3 * max(means) or 1)
        axis.set_title(metric_name(metric), fontsize=11)
        axis.grid(axis="x", alpha=0.3)
        axis.set_axisbelow(True)
    axes[0].set_yticks(place, [plain(group.label) for group in groups], fontsize=9)
    axes[0].invert_yaxis()
    figure.suptitle(plain(title), fontsize=11)
    figure.tight_layout()
    save(figure, file)
