"""The surrogate loss ℓ and the objective built on it."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def logistic(violation: torch.Tensor) -> torch.Tensor:
    """ℓ(t) = log(1 + e^−t), the loss of BPR, as a function of the violation −t = r_cj − r_ci."""
    return F.softplus(violation)


def weighted_pair_loss(
    r_ci: torch.Tensor,
    r_cj: torch.Tensor,
    p: torch.Tensor,
    L: torch.Tensor | None = None,
) -> torch.Tensor:
    """1/|B| Σ_(c,i) Σ_j p_cij ℓ(r_ci − r_cj), for r_ci (B,) and r_cj, p (B, n).

    ``L`` are the losses ℓ(r_ci − r_cj), (B, n), where they have been computed already.
    """
    return WeightedLogistic.apply(r_ci, r_cj, p, L)


class WeightedLogistic(torch.autograd.Function):
    """The objective with its gradient in closed form, p_cij σ(r_cj − r_ci) / |B|.

    Autograd would keep four (B, n) tensors for the backward pass and make as many more in it; this
    keeps one, and hands it on.
    """

    @staticmethod
    def forward(ctx, r_ci, r_cj, p, L):
        violation = r_cj - r_ci[:, None]
        L = logistic(violation) if L is None else L
        ctx.gradient = violation.sigmoid_().mul_(p)
        return torch.dot(p.flatten(), L.flatten()) / len(p)

    @staticmethod
    def backward(ctx, grad):
        g = ctx.gradient.mul_(grad / len(ctx.gradient))
        ctx.gradient = None  # spent: a second backward pass fails instead of giving wrong numbers
        return -g.sum(dim=1), g, None, None
