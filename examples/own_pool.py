"""A pool of one's own: recbole-hns --import=own_pool --pool=long_tail …"""

from typing import Annotated

import numpy as np

import recbole_hns as hns
from recbole_hns.settings import NotNegative, setting


@hns.register
class LongTail(hns.pools.LinePool, frozen=True):
    """q(j | c) ∝ (1 + count_j)^−power: what few have taken."""

    power: Annotated[NotNegative, setting("how much the tail is preferred")] = 1.0

    def weights(self, world):
        w = np.rint(1e6 * (1.0 + world.counts) ** -self.power).astype(np.int64)
        w[: world.positives.first] = 0  # padding
        return w
