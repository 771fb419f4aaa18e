"""What a sampler hands to the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from recbole_hns.kernels import Candidates
from recbole_hns.losses import Loss, mean_loss
from recbole_hns.sampling.query import DotQuery


class Chosen(Protocol):
    """What a sampler hands to a scorer: weighted negatives, :class:`Negatives` or not listed at all."""

    def loss(self, query: DotQuery, loss: Loss) -> torch.Tensor:
        """The mean loss of the pairs, with the gradient of the query's scores."""

    def mass(self, n_items: int) -> torch.Tensor:
        """The weight that falls on each item, (n_items,)."""

    def draw_one(self, generator: torch.Generator) -> torch.Tensor:
        """One negative per pair, drawn from p."""


@dataclass
class Negatives:
    """n weighted negatives for each pair of the batch; what is known of them is not computed again."""

    candidates: Candidates  # ids (B, n)
    weights: torch.Tensor  # (B, n) p_cij, no gradient
    r_cj: torch.Tensor | None = None  # (B, n)
    ell: torch.Tensor | None = None  # (B, n) ℓ(r_ci, r_cj)
    log_q: torch.Tensor | None = None  # (B, n) or (B, 1), for a loss that corrects for q

    @property
    def ids(self) -> torch.Tensor:
        """The negatives' item ids, (B, n)."""
        return self.candidates.ids

    def loss(self, query: DotQuery, loss: Loss) -> torch.Tensor:
        """The mean loss of the pairs, with the gradient of the query's scores."""
        r_ci, r_cj = query.pair_scores(self.candidates, self.r_cj)
        return mean_loss(loss, r_ci, r_cj, self.weights, self.log_q, self.ell)

    def mass(self, n_items: int) -> torch.Tensor:
        """The weight that falls on each item, (n_items,)."""
        total = torch.zeros(n_items, device=self.weights.device)
        return total.index_add_(0, self.ids.flatten(), self.weights.flatten())

    def draw_one(self, generator: torch.Generator) -> torch.Tensor:
        """One negative per pair, drawn from p: an unbiased estimate for a loss that takes one."""
        if self.ids.shape[1] == 1:
            return self.ids[:, 0].long()
        return self.ids.gather(1, draw_places(self.weights, generator))[:, 0].long()


def draw_places(weights: torch.Tensor, generator: torch.Generator, n: int = 1) -> torch.Tensor:
    """n columns of each row, (B, n), drawn with replacement in proportion to the weights.

    By inversion: a tenth of the time of ``torch.multinomial``.
    """
    edges = weights.cumsum(dim=1)
    shape, device = (len(weights), n), weights.device
    point = torch.rand(shape, generator=generator, device=device) * edges[:, -1:]
    return torch.searchsorted(edges, point, right=True).clamp(max=weights.shape[1] - 1)
