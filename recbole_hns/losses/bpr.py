"""BPR, the loss of the paper."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from recbole_hns.losses.base import Gradients, SeparableLoss
from recbole_hns.settings.registry import register


@register
class BPR(SeparableLoss, frozen=True):
    """ℓ(t) = log(1 + e^−t), t = r_ci − r_cj (eq. 1)."""

    def of(self, v: torch.Tensor) -> torch.Tensor:
        """log(1 + e^v)."""
        return F.softplus(v)

    def slope_(self, v: torch.Tensor) -> torch.Tensor:
        """σ(v)."""
        return v.sigmoid_()

    def over_all(
        self,
        r_ci: torch.Tensor,
        scores: torch.Tensor,
        owner: torch.Tensor,
        n: torch.Tensor,
        backend: Any = None,
    ) -> Gradients:
        """By a kernel where there is one: e^r_cj is computed once for all positives of a user."""
        found = None if backend is None else backend.bpr_over_all(r_ci, scores, owner)
        if found is None:
            return super().over_all(r_ci, scores, owner, n)
        values, sums, G = found
        return (values / n).sum(), -sums / n[owner], G.div_(n[:, None])
