"""Sums over all of a user's items."""

from __future__ import annotations

import torch

from recbole_hns.kernels.torch.base import chunks


def negatives_above(
    scores: torch.Tensor, first: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Negatives that score above each positive, ties one half, and items that take part per user."""
    n_pos = first.diff()
    users = torch.repeat_interleave(torch.arange(len(scores), device=scores.device), n_pos)
    own = scores.new_full((len(scores), int(n_pos.max())), -torch.inf)  # the positives' scores
    own[users, torch.arange(len(users), device=scores.device) - first[users]] = values
    above = _count_above(scores, users, values) - _count_above(own, users, values)
    n_items = (scores > -torch.inf).sum(dim=1)
    return above, n_items.masked_fill(torch.isnan(scores).any(dim=1), -1)


def _count_above(scores: torch.Tensor, users: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    above = torch.empty(len(values), dtype=torch.float64, device=scores.device)
    for part in chunks(len(values), scores.shape[1]):
        rows, value = scores[users[part]], values[part, None]
        above[part] = ((rows > value).sum(dim=1) + (rows >= value).sum(dim=1)) / 2
    return above


def bpr_over_all(r_ci: torch.Tensor, scores: torch.Tensor, owner: torch.Tensor) -> None:
    """None: the loss's own loop over the pairs is as good."""
    return None
