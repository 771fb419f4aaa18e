"""Scores of candidates, and the hardest of them."""

from __future__ import annotations

import numpy as np
import torch

from recbole_hns.kernels import blocks
from recbole_hns.kernels.numba.base import Job, arrays_of, inline, jit, split
from recbole_hns.kernels.types import Candidates, Vectors


def score(v: Vectors, candidates: Candidates) -> torch.Tensor:
    """r_cj for every candidate, (B, n)."""
    if candidates.shared is not None:
        return blocks.score(v, candidates.ids, candidates.shared)
    ids = candidates.ids.numpy()
    scores = torch.empty(candidates.ids.shape, dtype=torch.float32)
    split(Job(_score_rows, len(ids), (arrays_of(v), ids, scores.numpy())), work=ids.size)
    return scores


def top(v: Vectors, candidates: Candidates, M: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The M hardest candidates of each pair and their scores, hardest first."""
    B, drawn = len(candidates.ids), candidates.ids.numpy()
    ids = torch.empty((B, M), dtype=torch.int32)
    scores = torch.empty((B, M), dtype=torch.float32)
    out = (ids.numpy(), scores.numpy())
    if candidates.shared is None:
        split(Job(_top_rows, B, (arrays_of(v), drawn, *out)), work=drawn.size)
    else:
        every = blocks.score(v, candidates.ids, candidates.shared).numpy()
        split(Job(_top_scores, B, (every, drawn, *out)), work=drawn.size)
    return ids, scores


@inline
def score_row(c, items, ids, scores):
    """⟨c, items[j]⟩ for one row of candidates, four at a time to share the loop's cost."""
    N, d = ids.shape[0], c.shape[0]
    whole = N - N % 4
    for n in range(0, whole, 4):
        v0, v1 = items[ids[n]], items[ids[n + 1]]
        v2, v3 = items[ids[n + 2]], items[ids[n + 3]]
        r0 = r1 = r2 = r3 = np.float32(0)
        for i in range(d):
            r0 += c[i] * v0[i]
            r1 += c[i] * v1[i]
            r2 += c[i] * v2[i]
            r3 += c[i] * v3[i]
        scores[n], scores[n + 1], scores[n + 2], scores[n + 3] = r0, r1, r2, r3
    for n in range(whole, N):
        v, r = items[ids[n]], np.float32(0)
        for i in range(d):
            r += c[i] * v[i]
        scores[n] = r


@jit
def _score_rows(first, last, v, ids, scores):
    for b in range(first, last):
        score_row(v.context[v.rows[b]], v.items, ids[b], scores[b])


@inline
def _top_of(scores, ids, best, places, top_ids, top_scores):
    """The highest of one row, descending; NaN counts as hardest."""
    M = best.shape[0]
    best[:] = -np.inf
    places[:] = 0
    lowest = np.float32(-np.inf)
    for n in range(scores.shape[0]):
        r = scores[n]
        if not (r <= lowest):
            m = M - 1
            while m > 0 and (best[m - 1] < r or r != r):
                best[m], places[m] = best[m - 1], places[m - 1]
                m -= 1
            best[m], places[m] = r, n
            lowest = best[M - 1]
    for m in range(M):
        top_scores[m], top_ids[m] = best[m], ids[places[m]]


@jit
def _top_rows(first, last, v, ids, top_ids, top_scores):
    N, M = ids.shape[1], top_ids.shape[1]
    scores = np.empty(N, dtype=np.float32)
    best, places = np.empty(M, dtype=np.float32), np.empty(M, dtype=np.int64)
    for b in range(first, last):
        # Scores first: a loop with nothing to mispredict keeps many items under way at once.
        score_row(v.context[v.rows[b]], v.items, ids[b], scores)
        _top_of(scores, ids[b], best, places, top_ids[b], top_scores[b])


@jit
def _top_scores(first, last, scores, ids, top_ids, top_scores):
    M = top_ids.shape[1]
    best, places = np.empty(M, dtype=np.float32), np.empty(M, dtype=np.int64)
    for b in range(first, last):
        _top_of(scores[b], ids[b], best, places, top_ids[b], top_scores[b])
