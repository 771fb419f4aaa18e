"""Softmax-v(ρ, N), the paper's second sampler."""

from __future__ import annotations

import math
from typing import Annotated

import torch

from recbole_hns.sampling.rules.base import Rule
from recbole_hns.sampling.scored import Scored
from recbole_hns.settings.kinds import Positive, setting
from recbole_hns.settings.registry import register


@register
class SoftmaxV(Rule, frozen=True):
    """p_cij ∝ exp(ℓ(r_ci − r_cj)/τ), τ = √(Var_j ℓ / 2ρ) (eq. 17, Algorithm 2).

    ℓ is that of the loss, the variance the population's, over the pool; τ adapts so that β = e^−ρ
    stays the same while training goes on. The larger ρ, the harder the negatives. Where all losses are
    equal no candidate is harder than another and the weights are uniform. With MF and ``reg_weight``
    validation chose 0.3 on ml-100k, 0.6 on yelp2018 and 1 on Gowalla; 0.5 was less than 2 % below on ml-100k.
    """

    rho: Annotated[
        Positive, setting("the hardness, β = e^−ρ; larger is harder", "ρ", (0.1, 0.3, 0.5, 1.0, 2.0))
    ] = 0.5

    def beta(self, N: int | None) -> float:
        """e^−ρ (theorem 2)."""
        return math.exp(-self.rho)

    def weigh(self, s: Scored) -> torch.Tensor:
        """Softmax of the losses at the adaptive temperature."""
        L = s.ell
        centred = L - L.mean(dim=1, keepdim=True)
        # √Var_j as a norm: torch.var would take five times as long.
        deviation = torch.linalg.vector_norm(centred, dim=1, keepdim=True) / L.shape[1] ** 0.5
        inverse_tau = torch.where(deviation > 0, (2 * self.rho) ** 0.5 / deviation, 0.0)
        return torch.softmax(centred.mul_(inverse_tau), dim=1)
