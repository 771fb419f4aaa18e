"""How strongly OPAUC(β) and the Top-K metrics go together on random rankings, the paper's simulation.

A ranking is a row of labels, best position first: 1 for a positive, 0 for a negative.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from recbole_hns.errors import Error
from recbole_hns.files import whole_file

Floats = NDArray[np.float64]
Labels = NDArray[np.uint8]

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

    betas: Floats  # (G,), ascending; the last is 1
    topk: list[int]
    correlations: dict[str, Floats]  # metric -> (len(topk), G)
    auc: dict[str, Floats]  # metric -> (len(topk),); AUC is OPAUC(1)

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
        with whole_file(path, newline="") as file:
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


def topk_values(labels: Labels, topk: Sequence[int]) -> dict[str, Floats]:
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


def opauc_values(labels: Labels, b: Sequence[int]) -> Floats:
    """The non-normalised OPAUC(b/N₋) of rankings (R, N₊ + N₋), as (R, len(b)).

    1/(N₊ N₋) Σ_(j ≤ b) |positives above the j-th negative|.
    """
    n_pos = int(labels[0].sum())
    n_neg = labels.shape[1] - n_pos
    _, position = np.nonzero(labels == 0)
    positives_above = position.reshape(-1, n_neg) - np.arange(n_neg)
    return np.cumsum(positives_above, axis=1)[:, np.asarray(b) - 1] / (n_pos * n_neg)


class _Moments:
    """Sums from which the correlations of the columns of X with those of Y follow.

    Values are taken relative to the first row, which keeps the sums small and makes the variance of
    a constant column exactly 0.
    """

    def __init__(self) -> None:
        self.n = 0

    def add(self, X: Floats, Y: Floats) -> None:
        """More rows of both."""
        Z = np.hstack((X, Y))
        if self.n == 0:
            self.columns, self.first = X.shape[1], Z[0].copy()
            self.sum, self.products = np.zeros(len(Z[0])), np.zeros((len(Z[0]), len(Z[0])))
        Z -= self.first
        self.n += len(Z)
        self.sum += Z.sum(axis=0)
        self.products += Z.T @ Z

    def correlation(self) -> Floats:
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
