"""The hinge, or triplet, loss."""

from __future__ import annotations

from typing import Annotated

import torch
import torch.nn.functional as F

from recbole_hns.losses.base import SeparableLoss
from recbole_hns.settings.kinds import Positive, setting
from recbole_hns.settings.registry import register


@register
class Hinge(SeparableLoss, frozen=True):
    """ℓ(t) = max(0, margin − t): the triplet loss, which BPR is a soft version of.

    Only negatives within the margin of the positive, or above it, have a gradient, and all of them the
    same: a smaller margin leaves fewer and harder ones, as a smaller M does in DNS(M, N).
    """

    margin: Annotated[
        Positive, setting("how far a positive must stand above a negative; smaller is harder")
    ] = 1.0

    def of(self, v: torch.Tensor) -> torch.Tensor:
        """max(0, margin + v)."""
        return F.relu(v + self.margin)

    def slope_(self, v: torch.Tensor) -> torch.Tensor:
        """1 within the margin."""
        return v.add_(self.margin).gt(0).to(v.dtype)
