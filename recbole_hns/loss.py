"""The surrogate loss ℓ and the objective built on it."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def logistic(violation: torch.Tensor) -> torch.Tensor:
    """ℓ(t) = log(1 + e^−t), the loss of BPR, as a function of the violation −t = r_cj − r_ci."""
    return F.softplus(violation)


def weighted_pair_loss(r_ci: torch.Tensor, r_cj: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """1/|B| Σ_(c,i) Σ_j p_cij ℓ(r_ci − r_cj), for r_ci (B,) and r_cj, p (B, n)."""
    L = logistic(r_cj - r_ci[:, None])
    return torch.dot(p.flatten(), L.flatten()) / len(p)
