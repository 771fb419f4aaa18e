"""A loss of one's own, with autograd's gradient: recbole-hns --import=own_loss --pair_loss=squared_hinge …"""

from typing import Annotated

import recbole_hns as hns
from recbole_hns.settings import Positive, setting


@hns.register
class SquaredHinge(hns.Loss, frozen=True):
    """Σ_j p_cij max(0, gap − r_ci + r_cj)²."""

    gap: Annotated[Positive, setting("how far a positive must stand above a negative")] = 1.0

    def pair(self, r_ci, r_cj, p, log_q):
        return (p * (self.gap - r_ci[:, None] + r_cj).clamp(min=0) ** 2).sum(dim=1)
