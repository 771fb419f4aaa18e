"""Sums over all of a user's items."""

from __future__ import annotations

import torch

from recbole_hns.kernels.torch.base import chunks


def negatives_above(
    scores: torch.Tensor, first: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Negatives above each positive, ties one half; ties; and items that take part per user."""
    n_pos = first.diff()
    users = torch.repeat_interleave(torch.arange(len(scores), device=scores.device), n_pos)
    own = scores.new_full((len(scores), int(n_pos.max())), -torch.inf)  # the positives' scores
    own[users, torch.arange(len(users), device=scores.device) - first[users]] = values
    greater, at_least = _count(scores, users, values) - _count(own, users, values)
    n_items = (scores > -torch.inf).sum(dim=1)
    n_items = n_items.masked_fill(torch.isnan(scores).any(dim=1), -1)
    return (greater + at_least) / 2, at_least - greater, n_items


def _count(scores: torch.Tensor, users: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """How many of a row are greater, and at least as great, (2, P)."""
    found = torch.empty(2, len(values), dtype=torch.float64, device=scores.device)
    for part in chunks(len(values), scores.shape[1]):
        rows, value = scores[users[part]], values[part, None]
        found[0, part], found[1, part] = (rows > value).sum(dim=1), (rows >= value).sum(dim=1)
    return found


def bpr_over_all(r_ci: torch.Tensor, scores: torch.Tensor, owner: torch.Tensor) -> None:
    """None: the loss's own loop over the pairs is as good."""
    return None
