"""WARP: draw until a negative violates the margin."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from recbole_hns.kernels import Candidates
from recbole_hns.sampling.method import Method
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.sampler import NegativeSampler
from recbole_hns.settings.checks import setting


@dataclass(frozen=True)
class WARP(Method):
    """Φ(⌊n₋ / t⌋) max(0, margin − r_ci + r_cj) for the first violator j, found in the t-th draw.

    Weston, Bengio and Usunier 2011, margin 1. A negative violates if r_cj > r_ci − margin; the fewer
    draws it took, the lower the positive ranks, ⌊n₋ / t⌋ by estimate, and the more the pair weighs:
    Φ(k) = Σ_{m ≤ k} 1/m. No violator in ``max_trials`` draws, no loss for the pair.
    """

    takes = ("pool", "pool_alpha")
    needs_vectors = needs_pair_loss = "weighs each pair's loss by a rank"
    pair_loss = "hinge"

    max_trials: int = setting("how many draws may look for a violator")


class WARPSampler(NegativeSampler):
    """One negative per pair, weighed by Φ of the positive's estimated rank."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        ranks = torch.arange(self.pool.item_num, dtype=torch.float64)
        harmonic = torch.where(ranks > 0, 1 / ranks, 0).cumsum(0)
        self.Phi = harmonic.float().to(self.pool.tables.mass.device)  # Φ(0), Φ(1), …

    @torch.no_grad()
    def select(self, users: torch.Tensor, query) -> Negatives:
        """The first violator of each pair."""
        vectors = (query.context, query.rows, query.items)
        bar = query.positive_scores() - self.pair_loss.margin
        ids, scores, trials = self.pool.kernels.first_above(
            self.pool.tables, users, *vectors, bar, self.method.max_trials, self.generator
        )
        return Negatives(Candidates(ids), self.weights(users, trials)[:, None], scores)

    def weights(self, users: torch.Tensor, trials: torch.Tensor) -> torch.Tensor:
        """Φ(⌊n₋ / t⌋), and 0 where no violator was found, t = 0."""
        rank = self.pool.negatives_of(users) // trials.clamp(min=1)
        return torch.where(trials > 0, self.Phi[rank], 0.0)
