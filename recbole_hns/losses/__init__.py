"""Pair losses: how the scores of a positive and of its weighted negatives become a loss.

The paper's analysis is of BPR; its appendix "Discussion" names the others. Each gives its gradient in
closed form: autograd would keep four (B, n) tensors for the backward pass and make as many more in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import torch
import torch.nn.functional as F

from recbole_hns.settings.checks import setting


class PairLoss:
    """A loss of pairs (c, i) with negatives j that weigh p_cij.

    ℓ(r_ci, r_cj), the loss of one pair with one negative, is what samplers call the loss of a candidate:
    the adaptive τ of Softmax-v and the reward of IRGAN are made of it.
    """

    needs_log_q: ClassVar[bool] = False  # whether it corrects for how often the pool draws an item

    def ell(self, r_ci: torch.Tensor, r_cj: torch.Tensor) -> torch.Tensor:
        """ℓ(r_ci, r_cj) for r_ci (B,) and r_cj (B, n), no gradient needed."""
        raise NotImplementedError

    def value_and_gradients(
        self,
        r_ci: torch.Tensor,
        r_cj: torch.Tensor,
        p: torch.Tensor,
        n: torch.Tensor | int,
        log_q: torch.Tensor | None = None,
        L: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The loss summed over all pairs, and its gradients by r_ci (B,) and by r_cj (B, n).

        A score r_cj of −∞ stands for no negative. ``p`` and ``log_q`` are (B, n), or (B, 1) where all
        negatives have the same; ``n``, the number of a pair's negatives, is a number or (B, 1); ``L``
        are the values of ℓ where they are known already.
        """
        raise NotImplementedError

    def over_all(
        self,
        r_ci: torch.Tensor,
        scores: torch.Tensor,
        owner: torch.Tensor,
        n: torch.Tensor,
        kernels: ModuleType,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The loss summed over pairs with all n₋ negatives of their user, p = 1/n₋, and its gradients.

        ``scores`` (U, n_items) are the users', −∞ for what is no negative, and may be overwritten;
        ``owner`` (P,), ascending, says whose each pair is. The gradients are by r_ci (P,) and by the
        scores, of all pairs of a user together.
        """
        value, g_ci, G = 0.0, torch.empty_like(r_ci), torch.zeros_like(scores)
        for part in torch.arange(len(r_ci), device=r_ci.device).split(len(scores)):
            rows = owner[part]
            p = 1 / n[rows, None]  # and so is q
            more, g_ci[part], g_cj = self.value_and_gradients(
                r_ci[part], scores[rows], p, n[rows, None], p.log()
            )
            value = value + more
            G.index_add_(0, rows, g_cj)
        return value, g_ci, G


class SeparableLoss(PairLoss):
    """Σ_j p_cij ℓ(r_ci − r_cj): a subclass writes ℓ and its slope as functions of v = r_cj − r_ci."""

    def of(self, v: torch.Tensor) -> torch.Tensor:
        """ℓ, by the violation v = r_cj − r_ci."""
        raise NotImplementedError

    def slope_(self, v: torch.Tensor) -> torch.Tensor:
        """dℓ/dv, which may overwrite v."""
        raise NotImplementedError

    def ell(self, r_ci, r_cj):
        """ℓ(r_ci − r_cj)."""
        return self.of(r_cj - r_ci[:, None])

    def value_and_gradients(self, r_ci, r_cj, p, n, log_q=None, L=None):
        """The sum of the weighted losses; the positive's gradient is that of all its negatives."""
        v = r_cj - r_ci[:, None]
        L = self.of(v) if L is None else L
        value = _weighted_sum(p, L)
        g_cj = self.slope_(v).mul_(p)
        return value, -g_cj.sum(dim=1), g_cj


@dataclass(frozen=True)
class BPR(SeparableLoss):
    """ℓ(t) = log(1 + e^−t), t = r_ci − r_cj (eq. 1)."""

    def of(self, v):
        """log(1 + e^v)."""
        return F.softplus(v)

    def slope_(self, v):
        """σ(v)."""
        return v.sigmoid_()

    def over_all(self, r_ci, scores, owner, n, kernels):
        """By a kernel where there is one: e^r_cj is computed once for all positives of a user."""
        if kernels.bpr_over_all is None:
            return super().over_all(r_ci, scores, owner, n, kernels)
        values, sums, G = kernels.bpr_over_all(r_ci, scores, owner)
        return (values / n).sum(), -sums / n[owner], G.div_(n[:, None])


@dataclass(frozen=True)
class Hinge(SeparableLoss):
    """ℓ(t) = max(0, margin − t): the triplet loss, which BPR is a soft version of.

    Only negatives within the margin of the positive, or above it, have a gradient, and all of them the
    same: a smaller margin leaves fewer and harder ones, as a smaller M does in DNS(M, N).
    """

    margin: float = setting("how far a positive must stand above a negative; smaller is harder", 1.0)

    def of(self, v):
        """max(0, margin + v)."""
        return F.relu(v + self.margin)

    def slope_(self, v):
        """1 within the margin."""
        return v.add_(self.margin).gt(0).to(v.dtype)


@dataclass(frozen=True)
class BCE(PairLoss):
    """ℓ = −log σ(r_ci) − log σ(−r_cj): positives and negatives classified by their scores."""

    def ell(self, r_ci, r_cj):
        """log(1 + e^−r_ci) + log(1 + e^r_cj)."""
        return F.softplus(r_cj) + F.softplus(-r_ci)[:, None]

    def value_and_gradients(self, r_ci, r_cj, p, n, log_q=None, L=None):
        """Each side has a gradient of its own."""
        total = (p * n)[:, 0] if p.shape[1] == 1 else p.sum(dim=1)  # Σ_j p_cij
        value = _weighted_sum(p, F.softplus(r_cj)) + torch.dot(total, F.softplus(-r_ci))
        return value, -total * torch.sigmoid(-r_ci), torch.sigmoid(r_cj).mul_(p)


class ListLoss(PairLoss):
    """log(1 + Σ_j e^z_j): −log of the positive's share among itself and its negatives."""

    temperature: float

    def ell(self, r_ci, r_cj):
        """The loss with one negative, log(1 + e^((r_cj − r_ci)/temperature))."""
        return F.softplus((r_cj - r_ci[:, None]) / self.temperature)

    def log_weights(self, p, n, log_q) -> torch.Tensor:
        """What z_j has besides the scores."""
        raise NotImplementedError

    def value_and_gradients(self, r_ci, r_cj, p, n, log_q=None, L=None):
        """A negative's gradient is its share of the sum."""
        z = (r_cj - r_ci[:, None]).div_(self.temperature).add_(self.log_weights(p, n, log_q))
        value = F.softplus(torch.logsumexp(z, dim=1))
        g_cj = z.sub_(value[:, None]).exp_().div_(self.temperature)
        return value.sum(), -g_cj.sum(dim=1), g_cj


@dataclass(frozen=True)
class SampledSoftmax(ListLoss):
    """log(1 + Σ_j p_cij e^(r_cj − r_ci) / q_cj): the softmax loss over all items, estimated.

    With p = 1/N for N draws from q it is the sampled softmax with −log q (Bengio and Senécal 2008):
    Σ_j e^r_cj / (N q_cj) estimates the sum over all negatives, which ``non_sampling`` takes exactly.
    """

    needs_log_q = True
    temperature: ClassVar[float] = 1.0

    def log_weights(self, p, n, log_q):
        """log p − log q."""
        return p.log() - log_q


@dataclass(frozen=True)
class InfoNCE(ListLoss):
    """log(1 + n Σ_j p_cij e^((r_cj − r_ci)/temperature)): a softmax over the n negatives at hand.

    With equal weights it is InfoNCE (van den Oord et al. 2018). A lower temperature puts more of the
    gradient on the hardest negatives, as a larger ρ does in Softmax-v(ρ, N).
    """

    temperature: float = setting("the temperature of the softmax; smaller is harder", 1.0)

    def log_weights(self, p, n, log_q):
        """log(n p), 0 for equal weights."""
        return (p * n).log()


DEFAULT_LOSS = BPR()
PAIR_LOSSES: dict[str, type[PairLoss]] = {
    "bpr": BPR,
    "bce": BCE,
    "hinge": Hinge,
    "softmax": SampledSoftmax,
    "infonce": InfoNCE,
}


def _weighted_sum(p: torch.Tensor, L: torch.Tensor) -> torch.Tensor:
    """Σ_(c,i) Σ_j p_cij L_cij, with no (B, n) product in between."""
    if p.shape == L.shape:
        return torch.dot(p.flatten(), L.flatten())
    return torch.dot(p[:, 0], L.sum(dim=1))


class WeightedPairLoss(torch.autograd.Function):
    """1/|B| of the pairs' losses; the gradient is found on the way and handed on."""

    @staticmethod
    def forward(ctx, r_ci, r_cj, p, pair_loss, log_q, L):
        value, *ctx.gradients = pair_loss.value_and_gradients(r_ci, r_cj, p, p.shape[1], log_q, L)
        return value / len(r_ci)

    @staticmethod
    def backward(ctx, grad):
        g_ci, g_cj = ctx.gradients
        ctx.gradients = None  # spent: a second backward pass fails instead of giving wrong numbers
        scale = grad / len(g_ci)
        return g_ci.mul_(scale), g_cj.mul_(scale), None, None, None, None


# AllPairsLoss works on rows of scores in chunks of this many numbers, some three such tensors at once.
# On a CPU they stay in its cache; elsewhere few large products are faster.
CHUNK_NUMBERS = {"cpu": 1 << 20, "other": 1 << 23}


class AllPairsLoss(torch.autograd.Function):
    """1/|B| of the losses of pairs with every item j that the context's user did not take, p = 1/n₋.

    A user's items are scored once for all pairs of the batch that are the user's. The gradient is found
    on the way, chunk by chunk, so that no (B, n_items) tensor is kept. ``taken(users)`` are places in
    ``users`` and the items that are no negatives there; item 0, the padding, is nobody's.
    """

    @staticmethod
    def forward(ctx, context, items, rows, positives, users, n_neg, taken, pair_loss, kernels):
        B = len(rows)
        grad_context, grad_items = torch.zeros_like(context), torch.zeros_like(items)
        loss = context.new_zeros((), dtype=torch.float64)
        numbers = CHUNK_NUMBERS["cpu" if items.device.type == "cpu" else "other"]
        # Pairs of one context are of one user; the first of them stands for all.
        everyone, owner = rows.unique(return_inverse=True)
        order = owner.argsort(stable=True)
        ends = owner.bincount().cumsum(0).tolist()
        step, begin = max(1, numbers // len(items)), 0
        for first in range(0, len(everyone), step):
            last = min(first + step, len(everyone))
            pairs, begin = order[begin : ends[last - 1]], ends[last - 1]
            own, contexts, i = owner[pairs] - first, everyone[first:last], positives[pairs]
            whose = users.new_empty(last - first).scatter_(0, own, users[pairs])
            n = n_neg.new_empty(last - first).scatter_(0, own, n_neg[pairs])
            C = context[contexts]
            scores = C @ items.T  # (U, n_items)
            r_ci = scores[own, i]
            scores[taken(whose)] = -torch.inf
            scores[:, 0] = -torch.inf
            value, g_ci, G = pair_loss.over_all(r_ci, scores, own, n, kernels)
            loss += value / B
            g_ci = g_ci[:, None]
            grad_context[contexts] = (G @ items).index_add_(0, own, g_ci * items[i]).div_(B)
            grad_items.addmm_(G.T, C)
            grad_items.index_add_(0, i, g_ci * C[own])
        ctx.gradients = grad_context, grad_items.div_(B)
        return loss.to(context.dtype)

    @staticmethod
    def backward(ctx, grad):
        gradients = [gradient.mul_(grad) for gradient in ctx.gradients]
        ctx.gradients = None  # spent, as above
        return (*gradients, *[None] * 7)
