"""Scores of candidates, and the hardest of them."""

from __future__ import annotations

import torch

from recbole_hns.kernels import blocks
from recbole_hns.kernels.torch.base import chunks
from recbole_hns.kernels.types import Candidates, Vectors


def score(v: Vectors, candidates: Candidates) -> torch.Tensor:
    """r_cj for every candidate, (B, n)."""
    ids = candidates.ids
    if candidates.shared is not None:
        return blocks.score(v, ids, candidates.shared)
    scores = torch.empty(ids.shape, dtype=v.context.dtype, device=v.context.device)
    for part in chunks(len(ids), ids.shape[1] * v.items.shape[1]):
        scores[part] = torch.einsum("bd,bnd->bn", v.context[v.rows[part]], v.items[ids[part]])
    return scores


def top(v: Vectors, candidates: Candidates, M: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The M hardest candidates of each pair and their scores, hardest first."""
    scores, positions = score(v, candidates).topk(M, dim=1)
    return candidates.ids.gather(1, positions), scores
