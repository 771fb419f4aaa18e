"""Scores and gradients of candidates that blocks of pairs share: small matrix products.

A block of G pairs has N candidates in common, so its scores are one (G, d) × (d, N) product. The few
slots in which a pair has a candidate of its own are put right one by one. Both backends use this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

import torch
import torch.nn.functional as F

from recbole_hns.kernels import Candidates, SharedCandidates

CHUNK_NUMBERS = 1 << 19


def score(
    context: torch.Tensor, rows: torch.Tensor, items: torch.Tensor, candidates: Candidates
) -> torch.Tensor:
    """r_cj for every candidate, (B, N)."""
    shared = candidates.shared
    C = _in_blocks(context.index_select(0, rows), shared)  # (n_blocks, G, d)
    scores = C.new_empty((*C.shape[:2], shared.ids.shape[1]))
    for part in _chunks(shared, items):
        V = _vectors(items, shared.ids[part])  # (chunk, N, d)
        torch.bmm(C[part], V.transpose(1, 2), out=scores[part])
    scores = scores.flatten(0, 1)[: len(rows)]
    c, v = _replaced_vectors(context, rows, items, candidates)
    scores[shared.pair, shared.slot] = (c * v).sum(dim=1)
    return scores


def score_backward(
    context: torch.Tensor,
    rows: torch.Tensor,
    items: torch.Tensor,
    candidates: Candidates,
    grad: torch.Tensor,
    add_rows: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None],
    context_places: torch.Tensor,
    item_places: tuple[torch.Tensor, torch.Tensor],
    grad_context: torch.Tensor,
    grad_items: torch.Tensor,
) -> None:
    """Add the gradients of Σ grad · score to both tables; ``add_rows`` is the backend's.

    The gradients of pair b's context go to row ``context_places[b]`` of the one table, those of the
    candidates to the rows ``item_places`` of the other, in the order of :func:`gradient_rows`.
    """
    shared, (shared_places, own_places) = candidates.shared, item_places
    c, v = _replaced_vectors(context, rows, items, candidates)
    g = grad[shared.pair, shared.slot, None]
    add_rows(grad_context, context_places[shared.pair], g * v)
    add_rows(grad_items, own_places, g * c)

    common = grad.clone()
    common[shared.pair, shared.slot] = 0
    g = _in_blocks(common, shared)  # (n_blocks, G, N)
    C = _in_blocks(context.index_select(0, rows), shared)  # (n_blocks, G, d)
    grad_C = torch.empty_like(C)
    for part in _chunks(shared, items):
        V = _vectors(items, shared.ids[part])
        torch.bmm(g[part], V, out=grad_C[part])
        torch.bmm(g[part].transpose(1, 2), C[part], out=V)
        add_rows(grad_items, shared_places[part].flatten(), V.flatten(0, 1))
    add_rows(grad_context, context_places, grad_C.flatten(0, 1)[: len(rows)])


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


def _replaced_vectors(context, rows, items, candidates):
    pair, slot = candidates.shared.pair, candidates.shared.slot
    return context[rows[pair]], items[candidates.ids[pair, slot]]  # (R, d) each


def _in_blocks(pairs: torch.Tensor, shared: SharedCandidates) -> torch.Tensor:
    """(B, k) to (n_blocks, G, k), the last block filled up with zeros."""
    missing = len(shared.ids) * shared.G - len(pairs)
    padded = F.pad(pairs, (0, 0, 0, missing)) if missing else pairs
    return padded.view(len(shared.ids), shared.G, -1)
