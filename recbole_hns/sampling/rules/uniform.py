"""All candidates alike."""

from __future__ import annotations

import torch

from recbole_hns.sampling.rules.base import Rule
from recbole_hns.sampling.scored import Scored
from recbole_hns.settings.registry import register


@register
class Uniform(Rule, frozen=True):
    """p_cij = 1/N: plain BPR with N negatives (Rendle et al. 2009), no scores needed."""

    def weigh(self, s: Scored) -> torch.Tensor:
        """1/N."""
        B, N = s.shape
        return torch.full((B, N), 1 / N, device=s.device)

    def beta(self, N: int | None) -> float:
        """1: BPR with uniform negatives optimises AUC."""
        return 1.0
