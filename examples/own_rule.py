"""A rule of one's own: recbole-hns --import=own_rule --sampler=temperate --heat=0.5 …"""

from typing import Annotated

import recbole_hns as hns
from recbole_hns.settings import Positive, setting


@hns.register
class Temperate(hns.Rule, frozen=True):
    """p_cij ∝ exp(ℓ(r_ci − r_cj)/heat)."""

    heat: Annotated[Positive, setting("the temperature; larger is milder", search=(0.5, 1, 2, 4))] = 2.0

    def weigh(self, s):
        return (s.ell / self.heat).softmax(1)
