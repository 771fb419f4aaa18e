"""Scores and gradients of candidates that blocks of pairs share: small matrix products.

A block of G pairs has N candidates in common, so its scores are one (G, d) × (d, N) product. The few
slots in which a pair has a candidate of its own are put right one by one. Both backends use this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F

from recbole_hns.kernels.types import Candidates, SharedCandidates, Vectors

CHUNK_NUMBERS = 1 << 19


class Gradients(NamedTuple):
    """Where the gradients of a batch are added up: all rows of the two tables, or those touched."""

    context: torch.Tensor  # (R, d)
    items: torch.Tensor  # (S, d)
    places: torch.Tensor  # (B,) the row of ``context`` that pair b's gradient belongs to


def score(v: Vectors, ids: torch.Tensor, shared: SharedCandidates) -> torch.Tensor:
    """r_cj for every candidate, (B, N)."""
    C = _in_blocks(v.context.index_select(0, v.rows), shared)  # (n_blocks, G, d)
    scores = C.new_empty((*C.shape[:2], shared.ids.shape[1]))
    for part in _chunks(shared, v.items):
        V = _vectors(v.items, shared.ids[part])  # (chunk, N, d)
        torch.bmm(C[part], V.transpose(1, 2), out=scores[part])
    scores = scores.flatten(0, 1)[: len(v.rows)]
    c, w = _replaced_vectors(v, ids, shared)
    scores[shared.pair, shared.slot] = (c * w).sum(dim=1)
    return scores


def score_backward(
    v: Vectors,
    ids: torch.Tensor,
    shared: SharedCandidates,
    grad: torch.Tensor,
    item_places: tuple[torch.Tensor, ...],
    out: Gradients,
    add_rows: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None],
) -> None:
    """Add the gradients of Σ grad · score to both tables; ``add_rows`` is the backend's.

    Those of the candidates go to the rows ``item_places``, in the order of :func:`gradient_rows`.
    """
    shared_places, own_places = item_places
    c, w = _replaced_vectors(v, ids, shared)
    g = grad[shared.pair, shared.slot, None]
    add_rows(out.context, out.places[shared.pair], g * w)
    add_rows(out.items, own_places, g * c)

    common = grad.clone()
    common[shared.pair, shared.slot] = 0
    g = _in_blocks(common, shared)  # (n_blocks, G, N)
    C = _in_blocks(v.context.index_select(0, v.rows), shared)  # (n_blocks, G, d)
    grad_C = torch.empty_like(C)
    for part in _chunks(shared, v.items):
        V = _vectors(v.items, shared.ids[part])
        torch.bmm(g[part], V, out=grad_C[part])
        torch.bmm(g[part].transpose(1, 2), C[part], out=V)
        add_rows(out.items, shared_places[part].flatten(), V.flatten(0, 1))
    add_rows(out.context, out.places, grad_C.flatten(0, 1)[: len(v.rows)])


def gradient_rows(candidates: Candidates) -> tuple[torch.Tensor, ...]:
    """The items whose gradients candidates have a share in.

    Of candidates that blocks share: the items of the blocks, and those of single pairs. Where all pairs
    of a block have replaced the shared item, that of one pair stands in for it: nothing falls on it.
    """
    shared = candidates.shared
    if shared is None:
        return (candidates.ids,)
    replaced = torch.zeros_like(shared.ids)
    replaced.index_put_((shared.pair // shared.G, shared.slot), replaced.new_ones(()), accumulate=True)
    firsts = torch.arange(0, len(candidates.ids), shared.G, device=replaced.device)
    pairs = (len(candidates.ids) - firsts).clamp(max=shared.G)  # in each block
    used = torch.where(replaced < pairs[:, None], shared.ids, candidates.ids[firsts])
    return used, candidates.ids[shared.pair, shared.slot]


def _chunks(shared: SharedCandidates, items: torch.Tensor) -> Iterator[slice]:
    """Few blocks at a time: their candidates' vectors stay in the cache, and memory small."""
    step = max(1, CHUNK_NUMBERS // (shared.ids.shape[1] * items.shape[1]))
    for first in range(0, len(shared.ids), step):
        yield slice(first, first + step)


def _vectors(items: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return items.index_select(0, ids.flatten()).view(*ids.shape, -1)


def _replaced_vectors(
    v: Vectors, ids: torch.Tensor, shared: SharedCandidates
) -> tuple[torch.Tensor, torch.Tensor]:
    """The vectors of the pairs and of the candidates that are a pair's own, (R, d) each."""
    return v.context[v.rows[shared.pair]], v.items[ids[shared.pair, shared.slot]]


def _in_blocks(pairs: torch.Tensor, shared: SharedCandidates) -> torch.Tensor:
    """(B, k) to (n_blocks, G, k), the last block filled up with zeros."""
    missing = len(shared.ids) * shared.G - len(pairs)
    padded = F.pad(pairs, (0, 0, 0, missing)) if missing else pairs
    return padded.view(len(shared.ids), shared.G, -1)
