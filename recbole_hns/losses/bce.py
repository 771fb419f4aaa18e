"""Binary cross-entropy."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from recbole_hns.losses.base import Gradients, Loss, weighted_sum
from recbole_hns.settings.registry import register


@register
class BCE(Loss, frozen=True):
    """ℓ = −log σ(r_ci) − log σ(−r_cj): positives and negatives classified by their scores."""

    def pair(
        self, r_ci: torch.Tensor, r_cj: torch.Tensor, p: torch.Tensor, log_q: torch.Tensor | None
    ) -> torch.Tensor:
        """Σ_j p_cij (log(1 + e^−r_ci) + log(1 + e^r_cj))."""
        return (p * self.ell(r_ci, r_cj)).sum(dim=1)

    def ell(self, r_ci: torch.Tensor, r_cj: torch.Tensor) -> torch.Tensor:
        """log(1 + e^−r_ci) + log(1 + e^r_cj)."""
        return F.softplus(r_cj) + F.softplus(-r_ci)[:, None]

    def value_and_gradients(
        self,
        r_ci: torch.Tensor,
        r_cj: torch.Tensor,
        p: torch.Tensor,
        n: torch.Tensor | int,
        log_q: torch.Tensor | None = None,
        L: torch.Tensor | None = None,
    ) -> Gradients:
        """Each side has a gradient of its own."""
        total = (p * n)[:, 0] if p.shape[1] == 1 else p.sum(dim=1)  # Σ_j p_cij
        value = weighted_sum(p, F.softplus(r_cj)) + torch.dot(total, F.softplus(-r_ci))
        return value, -total * torch.sigmoid(-r_ci), torch.sigmoid(r_cj).mul_(p)
