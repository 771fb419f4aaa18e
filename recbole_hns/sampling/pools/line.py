"""Pools that draw by fixed weights, whatever the model thinks: items on a line."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch

from recbole_hns.errors import Error
from recbole_hns.kernels import Candidates, Line
from recbole_hns.sampling.pools.base import Pool, Source
from recbole_hns.sampling.positives import Ids
from recbole_hns.sampling.query import Query
from recbole_hns.sampling.world import World
from recbole_hns.settings.registry import name_of


class LinePool(Pool, frozen=True):
    """A pool that says only which weights the items have."""

    gives: ClassVar[frozenset[str]] = frozenset({"ids", "q", "line", "blocks"})

    def weights(self, world: World) -> Ids | None:
        """Whole numbers ∝ q, (n_items,), zero for padding; None where all are equal."""
        raise NotImplementedError

    def open(self, world: World, block: int = 1) -> LineSource:
        """Independent draws from q, restricted to each user's negatives I_c⁻."""
        weights = self.weights(world)
        if weights is None:
            return LineSource(world, world.line, block)
        line = world.weighted_line(weights)
        empty = np.flatnonzero(line.mass.cpu().numpy() == 0)
        if len(empty):
            raise Error(
                f"pool={name_of(self)} cannot draw for {world.name_users(empty)}, who took every item "
                "that has a count: use pool=uniform, or filter with user_inter_num_interval."
            )
        with np.errstate(divide="ignore"):
            log_weights = torch.from_numpy(np.log(weights)).float()
        return LineSource(world, line, block, log_weights.to(world.device))


class LineSource(Source):
    """Draws exactly and without rejection, however many positives a user has."""

    def __init__(
        self, world: World, line: Line, block: int = 1, log_weights: torch.Tensor | None = None
    ):
        super().__init__(world)
        self.line, self.block, self.log_weights = line, block, log_weights

    def draw(self, users: torch.Tensor, N: int, query: Query | None = None) -> Candidates:
        """N independent draws for each user; within a block of pairs candidates are dependent."""
        candidates = self.world.backend.draw(self.line, users, N, self.block, self.generator)
        if self.log_weights is not None:
            candidates.log_q = self.log_q(users, candidates, candidates)
        return candidates

    def log_q(self, users: torch.Tensor, drawn: Candidates, chosen: Candidates) -> torch.Tensor:
        """log q(j | c) of the draw, restricted to the user's negatives, (B, n), or (B, 1) if uniform."""
        if chosen.log_q is not None:
            return chosen.log_q
        shared, log_mass = chosen.shared, self.line.mass[users].double().log().float()
        if self.log_weights is None:
            return -log_mass[:, None]
        if shared is None:
            log_w = self._log_weights_of(chosen.ids)
        else:  # a block's weights are looked up once, and a pair's own put in
            log_w = self._log_weights_of(shared.ids).repeat_interleave(shared.G, dim=0)[: len(users)]
            own = chosen.ids[shared.pair, shared.slot]
            log_w[shared.pair, shared.slot] = self._log_weights_of(own)
        return log_w.sub_(log_mass[:, None])

    def _log_weights_of(self, ids: torch.Tensor) -> torch.Tensor:
        if self.log_weights is None:
            raise NotImplementedError
        return self.log_weights.index_select(0, ids.flatten()).view(ids.shape)
