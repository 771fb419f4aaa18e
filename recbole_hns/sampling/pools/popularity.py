"""Popular candidates."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from recbole_hns.sampling.pools.line import LinePool
from recbole_hns.sampling.positives import Ids
from recbole_hns.sampling.world import World
from recbole_hns.settings.kinds import NotNegative, setting
from recbole_hns.settings.registry import register

# Weights are whole numbers, so that draws are exact; those that are not are scaled up to this total.
TOTAL = 1 << 40


@register
class Popularity(LinePool, frozen=True):
    """q(j | c) ∝ count_j^α over the user's negatives, count_j how often j was taken."""

    alpha: Annotated[NotNegative, setting("the power of an item's count", "α", (0.5, 0.75, 1.0))] = (
        msgspec.field(default=1.0, name="pool_alpha")
    )

    def weights(self, world: World) -> Ids:
        """count_j^α as whole numbers; items nobody took are never drawn (α = 0 makes all equal)."""
        counts = world.counts.astype(np.float64)
        with np.errstate(over="ignore"):
            weights = counts**self.alpha
        padding = slice(world.positives.first)
        weights[padding] = 0
        taken = weights > 0
        total = min(TOTAL, (1 << 62) // (world.n_users + 1))
        if (weights != np.rint(weights)).any() or weights.sum() > total:
            weights = (counts / counts.max()) ** self.alpha  # at most 1, however large α is
            weights[padding] = 0
            weights *= total / weights.sum()
        return np.where(taken, np.maximum(1, np.rint(weights)), 0).astype(np.int64)
