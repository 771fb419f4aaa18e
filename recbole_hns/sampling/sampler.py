"""A sampler: what turns a batch into its negatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from recbole_hns.sampling.negatives import Chosen
from recbole_hns.sampling.query import Query
from recbole_hns.sampling.scored import Scored
from recbole_hns.sampling.world import World

if TYPE_CHECKING:
    from recbole_hns.sampling.methods import Method


class Sampler:
    """Draws N candidates from the pool and lets the rule weigh them.

    All randomness derives from the world's seed and rank, and the epoch, so a run that resumes at an epoch
    draws what an uninterrupted one would have drawn. A sampler that learns, or remembers anything from one
    batch to the next, puts what it knows into its state.
    """

    def __init__(self, method: Method, world: World):
        self.method, self.world = method, world
        self.source = method.pool.open(world, method.block)
        self.start_epoch(0)

    @property
    def generator(self) -> torch.Generator:
        """The source of this sampler's randomness."""
        return self.world.generator

    def start_epoch(self, epoch: int) -> None:
        """Begin the random stream of an epoch."""
        self.world.start_epoch(epoch)
        self.source.start_epoch(epoch)

    @torch.no_grad()
    def select(self, users: torch.Tensor, query: Query) -> Chosen:
        """The weighted negatives of a batch; no gradient flows through the choice."""
        method = self.method
        candidates = self.source.draw(users, method.N or 1, query)
        negatives = method.rule.choose(Scored(query, candidates, method.loss))
        if "q" in method.loss.needs:
            negatives.log_q = self.source.log_q(users, candidates, negatives.candidates)
        return negatives

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold, beside the generator, to go on after any batch."""
        return self.source.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.source.load_state_dict(state)
