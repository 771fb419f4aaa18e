"""How strongly OPAUC(β) and the Top-K metrics go together on random rankings, the paper's simulation.

A ranking is a row of labels, best position first: 1 for a positive, 0 for a negative.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from recbole_hns.errors import Error

METRICS = ("Precision", "Recall", "NDCG")
# Labels that are shuffled at a time: some ten megabytes with all that is computed from them.
CHUNK = 1_000_000
# What a patient person waits for: an hour, some gigabytes.
MOST = {"n_pos": 10**6, "n_neg": 10**6, "n_betas": 10**4, "permutations": 10**8}


@dataclass
class CorrelationResult:
    """Pearson's correlation of every metric@K with OPAUC(β), for every β of a grid.

    OPAUC_norm(β) is an increasing affine function of OPAUC(β), so its correlations are the same.
    """

    betas: np.ndarray  # (G,), ascending; the last is 1
    topk: list[int]
    correlations: dict[str, np.ndarray]  # metric -> (len(topk), G)
    auc: dict[str, np.ndarray]  # metric -> (len(topk),); AUC is OPAUC(1)

    def best(self, metric: str, k: int) -> tuple[float, float]:
        """The β whose OPAUC(β) correlates most with metric@K, and that correlation."""
        curve = self.correlations[metric][self.topk.index(k)]
        g = int(np.argmax(curve))
        return float(self.betas[g]), float(curve[g])

    def rows(self) -> list[tuple[str, int, float, float, float]]:
        """(metric, K, best β, correlation with OPAUC(best β), correlation with AUC), for a table."""
        return [
            (metric, k, *self.best(metric, k), float(self.auc[metric][row]))
            for metric in self.correlations
            for row, k in enumerate(self.topk)
        ]

    def write_csv(self, path: str | Path) -> None:
        """All points of all curves, one a line: metric, K, beta, correlation."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("metric", "K", "beta", "correlation"))
            for metric, curves in self.correlations.items():
                for k, curve in zip(self.topk, curves.tolist()):
                    writer.writerows((metric, k, beta, r) for beta, r in zip(self.betas.tolist(), curve))


def correlation(
    n_pos: int = 200,
    n_neg: int = 800,
    permutations: int = 100_000,
    topk: Sequence[int] = (5, 10, 20, 50, 100, 200),
    n_betas: int = 40,
    seed: int = 0,
    progress: bool = True,
) -> CorrelationResult:
    """Correlations over uniformly random permutations of N₊ positives and N₋ negatives.

    β runs over integers b/N₋, about evenly on a logarithmic scale from 1/N₋ to 1. There are
    ``n_betas`` of them, less those that rounding makes equal.
    """
    _check(n_pos, n_neg, permutations, topk, n_betas)
    topk = [int(k) for k in topk]
    b = np.unique(np.logspace(0, np.log10(n_neg), n_betas).round().astype(int))
    rng = np.random.default_rng(seed)
    ranking = np.repeat(np.array([1, 0], np.uint8), (n_pos, n_neg))
    chunk = max(1, CHUNK // len(ranking))
    moments = _Moments()
    with tqdm(total=permutations, desc="permutations", disable=not progress) as bar:
        for start in range(0, permutations, chunk):
            rows = min(chunk, permutations - start)
            labels = np.tile(ranking, (rows, 1))
            rng.permuted(labels, axis=1, out=labels)
            moments.add(np.hstack(list(topk_values(labels, topk).values())), opauc_values(labels, b))
            bar.update(rows)
    curves = dict(zip(METRICS, np.split(moments.correlation(), len(METRICS))))
    return CorrelationResult(b / n_neg, topk, curves, {metric: r[:, -1] for metric, r in curves.items()})


def topk_values(labels: np.ndarray, topk: Sequence[int]) -> dict[str, np.ndarray]:
    """Precision@K, Recall@K and NDCG@K of rankings (R, N₊ + N₋), each (R, len(topk)).

    |top K ∩ positives| / K, the same / N₊, and Σ_(positives at rank r ≤ K) 1/log₂(r + 1) divided by
    the greatest possible such sum, over r ≤ min(N₊, K).
    """
    n_pos = int(labels[0].sum())
    K = np.asarray(topk)
    r = np.arange(1, K.max() + 1)
    head = labels[:, : K.max()].astype(np.float64)
    in_topk = r[:, None] <= K  # (max K, len(topk))
    discount = 1 / np.log2(r + 1)
    hits = head @ in_topk.astype(np.float64)
    dcg = head @ (in_topk * discount[:, None])
    ideal = np.cumsum(discount)[np.minimum(n_pos, K) - 1]
    return {"Precision": hits / K, "Recall": hits / n_pos, "NDCG": dcg / ideal}


def opauc_values(labels: np.ndarray, b: Sequence[int]) -> np.ndarray:
    """The non-normalised OPAUC(b/N₋) of rankings (R, N₊ + N₋), as (R, len(b)).

    1/(N₊ N₋) Σ_(j ≤ b) |positives above the j-th negative|.
    """
    n_pos = int(labels[0].sum())
    n_neg = labels.shape[1] - n_pos
    _, position = np.nonzero(labels == 0)
    positives_above = position.reshape(-1, n_neg) - np.arange(n_neg)
    return np.cumsum(positives_above, axis=1)[:, np.asarray(b) - 1] / (n_pos * n_neg)


def plot_correlation(result: CorrelationResult, path: str | Path) -> None:
    """The paper's figure as a PNG: a panel for each metric, a curve for each K, its maximum marked."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Error("The figure needs matplotlib: pip install matplotlib.") from error

    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.75, len(result.topk)))
    with matplotlib.rc_context({"font.size": 12}):
        # A Figure of its own, without pyplot, draws with Agg and leaves the caller's backend alone.
        figure = Figure(figsize=(12, 4.4), dpi=150, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.1)
        panels = figure.subplots(1, len(result.correlations), sharey=True, squeeze=False)[0]
        for axes, metric in zip(panels, result.correlations):
            _draw_panel(axes, result, metric, colours)
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=8, frameon=False
        )
        figure.savefig(path, format="png")


def _draw_panel(axes, result: CorrelationResult, metric: str, colours: np.ndarray) -> None:
    """The curves of one metric."""
    for k, curve, colour in zip(result.topk, result.correlations[metric], colours):
        axes.plot(result.betas, curve, color=colour, linewidth=1.8, label=f"K = {k}")
    left, right = result.betas[0] * 0.8, result.betas[-1] * 1.25
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


class _Moments:
    """Sums from which the correlations of the columns of X with those of Y follow.

    Values are taken relative to the first row, which keeps the sums small and makes the variance of
    a constant column exactly 0.
    """

    def __init__(self):
        self.n = 0

    def add(self, X: np.ndarray, Y: np.ndarray) -> None:
        """More rows of both."""
        Z = np.hstack((X, Y))
        if self.n == 0:
            self.columns, self.first = X.shape[1], Z[0].copy()
            self.sum, self.products = np.zeros(len(Z[0])), np.zeros((len(Z[0]), len(Z[0])))
        Z -= self.first
        self.n += len(Z)
        self.sum += Z.sum(axis=0)
        self.products += Z.T @ Z

    def correlation(self) -> np.ndarray:
        """Pearson's r, (columns of X, columns of Y); 0 where a column is constant."""
        covariance = self.products - np.outer(self.sum, self.sum) / self.n
        deviation = np.sqrt(np.maximum(0, np.diag(covariance)))
        scale = np.outer(deviation, deviation)
        r = np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0)
        return r[: self.columns, self.columns :]


def _check(n_pos: int, n_neg: int, permutations: int, topk: Sequence[int], n_betas: int) -> None:
    """Refuse what cannot be simulated."""
    sizes = {"n_pos": (n_pos, 1), "n_neg": (n_neg, 1), "n_betas": (n_betas, 2)}
    for name, (value, least) in {**sizes, "permutations": (permutations, 2)}.items():
        if value < least:
            raise Error(f"{name}={value} is too small: it must be at least {least}.")
        if value > MOST[name]:
            raise Error(f"{name}={value} is too large: it must be at most {MOST[name]}.")
    if len(topk) == 0:
        raise Error("topk=[] is not possible: at least one K is needed.")
    for k in topk:
        if not 1 <= k <= n_pos + n_neg:
            raise Error(f"topk={list(topk)} is not possible: {k} is not in 1 … {n_pos + n_neg} items.")
