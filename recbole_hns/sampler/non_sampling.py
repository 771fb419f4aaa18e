"""No sampling: every negative of the user, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from recbole_hns.loss import AllPairsLoss, PairLoss
from recbole_hns.sampler.method import Method
from recbole_hns.sampler.pool import Pool
from recbole_hns.sampler.sampler import NegativeSampler


@dataclass(frozen=True)
class NonSampling(Method):
    """p_cij = 1/n₋ for all n₋ negatives of the context: the loss itself, and its exact gradient.

    The paper's Non-Sampling strategy (section 1). A step costs matrix products of B × items.
    """

    takes = ()
    needs_vectors = needs_pair_loss = "ranks against all items at once"
    dense_gradient = True

    def beta(self, N: None) -> float:
        """1: the full BPR loss optimises AUC."""
        return 1.0


class AllNegatives:
    """All negatives of each pair: :class:`~.negatives.Negatives` without a list of them."""

    def __init__(self, pool: Pool, users: torch.Tensor, pairs: torch.Tensor, items: torch.Tensor):
        self.pool, self.users = pool, users
        self.pairs, self.items = pairs, items  # (P,) each: which pair's user took which item
        self.n_neg = pool.negatives_of(users).float()  # (B,)

    def loss(self, query, pair_loss: PairLoss) -> torch.Tensor:
        """The mean loss of the pairs, each with all negatives j of its context, p_cij = 1/n₋."""
        return AllPairsLoss.apply(
            query.context,
            query.items,
            query.rows,
            query.positives.ids[:, 0].long(),
            (self.pairs, self.items),
            self.n_neg,
            pair_loss,
        )

    def mass(self, n_items: int) -> torch.Tensor:
        """The weight that falls on each item, (n_items,)."""
        weight = 1 / self.n_neg
        taken = torch.zeros(n_items, device=weight.device)
        taken.index_add_(0, self.items, weight[self.pairs])
        total = weight.sum() - taken
        total[0] = 0
        return total

    def draw_one(self, generator: torch.Generator) -> torch.Tensor:
        """One negative per pair, drawn from p, for a model that wants to see one."""
        return self.pool.draw(self.users, 1).ids[:, 0].long()


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
        return AllNegatives(self.pool, users, pairs, items)
