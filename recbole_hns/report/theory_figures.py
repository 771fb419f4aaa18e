"""The paper's two simulation figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recbole_hns.report.figures import save
from recbole_hns.theory.correlation import CorrelationResult
from recbole_hns.theory.sampling import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_correlation(result: CorrelationResult, file: Path) -> None:
    """The paper's figure as a PNG: a panel for each metric, a curve for each K, its maximum marked."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.75, len(result.topk)))
    with matplotlib.rc_context({"font.size": 12}):
        # A Figure of its own, without pyplot, draws with Agg and leaves the caller's backend alone.
        figure = Figure(figsize=(12, 4.4), dpi=150, layout=ConstrainedLayoutEngine(w_pad=0.1))
        panels = figure.subplots(1, len(result.correlations), sharey=True, squeeze=False)[0]
        for axes, metric in zip(panels, result.correlations):
            _draw_panel(axes, result, metric, colours)
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=8, frameon=False
        )
        save(figure, file)


def _draw_panel(
    axes: Axes, result: CorrelationResult, metric: str, colours: NDArray[np.float64]
) -> None:
    """The curves of one metric."""
    for k, curve, colour in zip(result.topk, result.correlations[metric], colours):
        axes.plot(result.betas, curve, color=colour, linewidth=1.8, label=f"K = {k}")
    left, right = result.betas[0] * 0.8, result.betas[-1] * 1.25
    _mark_maxima(axes, result, metric, colours, (left, right))
    axes.set_xscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(min(0, axes.get_ylim()[0]), 1.2)
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.tick_params(labelleft=True)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3)
    axes.set_title(f"{metric}@K")
    axes.set_xlabel("β of OPAUC(β)")
    axes.set_ylabel(f"correlation with {metric}@K")


def _mark_maxima(
    axes: Axes,
    result: CorrelationResult,
    metric: str,
    colours: NDArray[np.float64],
    limits: tuple[float, float],
) -> None:
    """A point at the maximum of each curve, with its β beside those of the others."""
    left, right = limits
    maxima = sorted((*result.best(metric, k), row) for row, k in enumerate(result.topk))
    free = 0.0  # where the labels so far end, as a fraction of the panel's width
    for beta, r, row in maxima:
        axes.plot(beta, r, "o", color=colours[row], markersize=6)
        x = max(free, np.log(beta / left) / np.log(right / left))
        free = x + 0.06
        axes.annotate(
            f"{beta:#.2g}",
            (x, r),
            xycoords=("axes fraction", "data"),
            xytext=(0, 7),
            textcoords="offset points",
            rotation=55,
            rotation_mode="anchor",
            fontsize=10.5,
            color=colours[row],
        )


def plot_sampling(curves: Sequence[Curve], file: Path) -> None:
    """The paper's figure as a PNG: a panel for each parameter, the exact form a thin dashed line."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys(curve.panel for curve in curves))
    figure = Figure(figsize=(4 * len(panels), 4.4))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for axis, panel in zip(axes[0], panels):
        own = [curve for curve in curves if curve.panel == panel]
        colours = colormaps["viridis"](np.linspace(0.2, 0.9, max(1, len(own) - 1)))
        for n, curve in enumerate(own):
            rank = np.arange(1, len(curve.simulated) + 1)
            colour = "grey" if curve.reference else colours[n - 1]
            axis.plot(rank, curve.simulated, color=colour, lw=2.5, label=curve.label)
            if curve.exact is not None:
                label = "exact" if n == len(own) - 1 or own[n + 1 :][0].exact is None else None
                axis.plot(rank, curve.exact, color="black", lw=0.9, ls="--", label=label)
        axis.set_xscale("log")
        axis.set_title(f"the effect of {panel}", fontsize=12)
        axis.set_xlabel("rank of the negative, hardest first", fontsize=11)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=10, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncol=2, frameon=False)
    axes[0][0].set_ylabel("cumulative sampling probability", fontsize=11)
    figure.tight_layout()
    save(figure, file)
