"""WARP: draw until a negative violates the margin."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch

from recbole_hns.errors import Error
from recbole_hns.kernels import Candidates
from recbole_hns.losses import Hinge
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.pools.line import LineSource
from recbole_hns.sampling.query import Query, vectors_of
from recbole_hns.sampling.rules.base import Rule
from recbole_hns.sampling.sampler import Sampler
from recbole_hns.settings.kinds import Count, setting
from recbole_hns.settings.registry import register


class WARPSampler(Sampler):
    """One negative per pair, weighed by Φ of the positive's estimated rank."""

    @torch.no_grad()
    def select(self, users: torch.Tensor, query: Query) -> Negatives:
        """The first violator of each pair."""
        source, rule, loss = self.source, self.method.rule, self.method.loss
        if not (isinstance(source, LineSource) and isinstance(rule, WARP) and isinstance(loss, Hinge)):
            raise Error("WARP draws from items on a line and learns by the hinge loss.")
        ids, scores, trials = self.world.backend.first_above(
            source.line,
            users,
            vectors_of(query),
            query.r_ci - loss.margin,
            rule.max_trials,
            self.generator,
        )
        return Negatives(Candidates(ids), self.weights(users, trials)[:, None], scores)

    def weights(self, users: torch.Tensor, trials: torch.Tensor) -> torch.Tensor:
        """Φ(⌊n₋ / t⌋), and 0 where no violator was found, t = 0."""
        rank = self.world.line.negatives_of(users) // trials.clamp(min=1)
        return torch.where(trials > 0, self.Phi[rank], 0.0)

    @property
    def Phi(self) -> torch.Tensor:
        """Φ(0), Φ(1), …"""
        if not hasattr(self, "_Phi"):
            ranks = torch.arange(self.world.n_items + 1, dtype=torch.float64)
            harmonic = torch.where(ranks > 0, 1 / ranks, 0).cumsum(0)
            self._Phi = harmonic.float().to(self.world.device)
        return self._Phi


@register
class WARP(Rule, frozen=True):
    """Φ(⌊n₋ / t⌋) max(0, margin − r_ci + r_cj) for the first violator j, found in the t-th draw.

    Weston, Bengio and Usunier 2011, margin 1. A negative violates if r_cj > r_ci − margin; the fewer
    draws it took, the lower the positive ranks, ⌊n₋ / t⌋ by estimate, and the more the pair weighs:
    Φ(k) = Σ_{m ≤ k} 1/m. No violator in ``max_trials`` draws, no loss for the pair. The paper stops after
    all items.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"line"})
    loss: ClassVar[str] = "hinge"
    takes_N: ClassVar[bool] = False
    sums_to_one: ClassVar[bool] = False
    hides_q: ClassVar[bool] = True
    needs_vectors: ClassVar[str] = "weighs each pair's loss by a rank"
    needs_pair_loss: ClassVar[str] = "weighs each pair's loss by a rank"

    max_trials: Annotated[
        Count, setting("how many draws may look for a violator", search=(10, 50, 200))
    ] = 200

    @classmethod
    def sampler(cls) -> type[Sampler]:
        """One of its own."""
        return WARPSampler
