"""The surrogate loss ℓ and the objective built on it."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def logistic(violation: torch.Tensor) -> torch.Tensor:
    """ℓ(t) = log(1 + e^−t), the loss of BPR, as a function of the violation −t = r_cj − r_ci."""
    return F.softplus(violation)


def hinge(violation: torch.Tensor) -> torch.Tensor:
    """max(0, 1 − t), the loss of WARP, likewise."""
    return F.relu(1 + violation)


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


# AllPairsLoss works on rows of scores in chunks of this many numbers: some three such tensors at once.
CHUNK_NUMBERS = 1 << 23


class AllPairsLoss(torch.autograd.Function):
    """1/|B| Σ_(c,i) w_c Σ_j ℓ(r_ci − r_cj) over every item j that the context's user did not take.

    The gradient is found on the way, chunk by chunk, so that no (B, n_items) tensor is kept. ``taken``
    are the pairs of the batch, ascending, and the items that are no negatives of theirs; item 0, the
    padding, is nobody's.
    """

    @staticmethod
    def forward(ctx, context, items, rows, positives, taken, weight):
        B = len(rows)
        grad_context, grad_items = torch.zeros_like(context), torch.zeros_like(items)
        loss = context.new_zeros((), dtype=torch.float64)
        step = max(1, CHUNK_NUMBERS // len(items))
        taken_before = torch.searchsorted(taken[0], torch.arange(0, B + step, step, device=rows.device))
        for n, first in enumerate(range(0, B, step)):
            part = slice(first, first + step)
            C, w, i = context[rows[part]], weight[part, None] / B, positives[part]
            own = slice(taken_before[n], taken_before[n + 1])
            scores = C @ items.T  # (b, n_items)
            violation = scores.sub_(scores.gather(1, i[:, None]))
            violation[taken[0][own] - first, taken[1][own]] = -torch.inf
            violation[:, 0] = -torch.inf
            loss += (logistic(violation).sum(dim=1, keepdim=True) * w).sum()
            g = violation.sigmoid_().mul_(w)
            grad_ci = -g.sum(dim=1, keepdim=True)
            grad_context.index_add_(0, rows[part], g @ items + grad_ci * items[i])
            grad_items.addmm_(g.T, C)
            grad_items.index_add_(0, i, grad_ci * C)
        ctx.gradients = grad_context, grad_items
        return loss.to(context.dtype)

    @staticmethod
    def backward(ctx, grad):
        gradients = [gradient.mul_(grad) for gradient in ctx.gradients]
        ctx.gradients = None  # spent, as above
        return (*gradients, None, None, None, None)
