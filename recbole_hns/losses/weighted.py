"""A pair loss as autograd sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from recbole_hns.losses.base import Loss


class WeightedPairLoss(torch.autograd.Function):
    """1/|B| of the pairs' losses; the gradient is found on the way and handed on."""

    @staticmethod
    def forward(
        ctx: Any,
        r_ci: torch.Tensor,
        r_cj: torch.Tensor,
        p: torch.Tensor,
        loss: Loss,
        log_q: torch.Tensor | None,
        L: torch.Tensor | None,
    ) -> torch.Tensor:
        value, *ctx.gradients = loss.value_and_gradients(r_ci, r_cj, p, p.shape[1], log_q, L)
        return value / len(r_ci)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        g_ci, g_cj = ctx.gradients
        ctx.gradients = None  # spent: a second backward pass fails instead of giving wrong numbers
        scale = grads[0] / len(g_ci)
        return g_ci.mul_(scale), g_cj.mul_(scale), None, None, None, None


_apply: Callable[..., torch.Tensor] = WeightedPairLoss.apply


def mean_loss(
    loss: Loss,
    r_ci: torch.Tensor,
    r_cj: torch.Tensor,
    p: torch.Tensor,
    log_q: torch.Tensor | None = None,
    L: torch.Tensor | None = None,
) -> torch.Tensor:
    """The mean loss of the pairs, with the gradient of their scores; ``L`` are known values of ℓ."""
    return _apply(r_ci, r_cj, p, loss, log_q, L)
