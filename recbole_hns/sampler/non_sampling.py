"""No sampling: every negative of the user, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from recbole_hns.loss import AllPairsLoss
from recbole_hns.sampler.method import Method
from recbole_hns.sampler.sampler import NegativeSampler


@dataclass(frozen=True)
class NonSampling(Method):
    """p_cij = 1/n₋ for all n₋ negatives of the context: the BPR loss itself, and its exact gradient.

    The paper's Non-Sampling strategy (section 1). A step costs matrix products of B × items.
    """

    takes = ()
    needs_vectors = "ranks against all items at once"

    def beta(self, N: None) -> float:
        """1: the full BPR loss optimises AUC."""
        return 1.0


class AllNegatives:
    """All negatives of each pair: :class:`~.negatives.Negatives` without a list of them."""

    def __init__(self, pairs: torch.Tensor, items: torch.Tensor, n_neg: torch.Tensor):
        self.pairs, self.items = pairs, items  # (P,) each: which pair's user took which item
        self.weight = 1 / n_neg  # (B,)

    def loss(self, query) -> torch.Tensor:
        """1/|B| Σ_(c,i) 1/n₋ Σ_j ℓ(r_ci − r_cj) over all negatives j of c."""
        return AllPairsLoss.apply(
            query.context,
            query.items,
            query.rows,
            query.positives.ids[:, 0].long(),
            (self.pairs, self.items),
            self.weight,
        )

    def mass(self, n_items: int) -> torch.Tensor:
        """The weight that falls on each item, (n_items,)."""
        taken = torch.zeros(n_items, device=self.weight.device)
        taken.index_add_(0, self.items, self.weight[self.pairs])
        total = self.weight.sum() - taken
        total[0] = 0
        return total


class NonSamplingSampler(NegativeSampler):
    """Chooses nothing."""

    @torch.no_grad()
    def select(self, users: torch.Tensor, query) -> AllNegatives:
        """All negatives."""
        tables = self.pool.tables
        first, n_pos = tables.indptr[users], tables.indptr[users + 1] - tables.indptr[users]
        pairs = torch.repeat_interleave(torch.arange(len(users), device=users.device), n_pos)
        place = torch.arange(len(pairs), device=users.device) - (n_pos.cumsum(0) - n_pos)[pairs]
        items = tables.items[first[pairs] + place].long()
        return AllNegatives(pairs, items, self.pool.negatives_of(users).float())
