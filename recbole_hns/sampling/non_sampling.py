"""No sampling: every negative of the user, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from recbole_hns.losses import AllPairsLoss, PairLoss
from recbole_hns.sampling.method import Method
from recbole_hns.sampling.pools import Pool
from recbole_hns.sampling.sampler import NegativeSampler


@dataclass(frozen=True)
class NonSampling(Method):
    """p_cij = 1/n₋ for all n₋ negatives of the context: the loss itself, and its exact gradient.

    The paper's Non-Sampling strategy (section 1). A step costs matrix products of its users × items, so
    its batches hold all pairs of a user together: the more pairs a user has in one, the fewer users.
    """

    takes = ()
    needs_vectors = needs_pair_loss = "ranks against all items at once"
    dense_gradient = by_user = True

    def beta(self, N: None) -> float:
        """1: the full BPR loss optimises AUC."""
        return 1.0


class AllNegatives:
    """All negatives of each pair: :class:`~.negatives.Negatives` without a list of them."""

    def __init__(self, pool: Pool, users: torch.Tensor):
        self.pool, self.users = pool, users
        self.n_neg = pool.negatives_of(users).float()  # (B,)

    def taken(self, users: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Places in ``users`` and the items that the user there took, both (P,)."""
        tables, device = self.pool.tables, users.device
        first, n_pos = tables.indptr[users], tables.indptr[users + 1] - tables.indptr[users]
        places = torch.repeat_interleave(torch.arange(len(users), device=device), n_pos)
        nth = torch.arange(len(places), device=device) - (n_pos.cumsum(0) - n_pos)[places]
        return places, tables.items[first[places] + nth].long()

    def loss(self, query, pair_loss: PairLoss) -> torch.Tensor:
        """The mean loss of the pairs, each with all negatives j of its context, p_cij = 1/n₋."""
        return AllPairsLoss.apply(
            query.context,
            query.items,
            query.rows,
            query.positives.ids[:, 0].long(),
            self.users,
            self.n_neg,
            self.taken,
            pair_loss,
            query.kernels,
        )

    def mass(self, n_items: int) -> torch.Tensor:
        """The weight that falls on each item, (n_items,)."""
        weight = 1 / self.n_neg
        places, items = self.taken(self.users)
        total = weight.sum() - torch.zeros(n_items, device=weight.device).index_add_(
            0, items, weight[places]
        )
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
        return AllNegatives(self.pool, users)
