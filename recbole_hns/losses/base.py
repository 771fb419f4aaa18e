"""Pair losses: how the scores of a positive and of its weighted negatives become a loss.

The paper's analysis is of BPR; its appendix "Discussion" names others. Ours give their gradient in closed
form: autograd would keep four (B, n) tensors for the backward pass and make as many more in it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from recbole_hns.settings.parts import Part

Gradients = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # the value, and by r_ci and r_cj


class Loss(Part, frozen=True):
    """A loss of pairs (c, i) with negatives j that weigh p_cij.

    A subclass writes :meth:`pair`; one that knows its gradient writes :meth:`value_and_gradients` too.
    """

    kind: ClassVar[str] = "loss"
    needs: ClassVar[frozenset[str]] = frozenset()  # of the pool: {"q"} for how often it draws an item

    def pair(
        self, r_ci: torch.Tensor, r_cj: torch.Tensor, p: torch.Tensor, log_q: torch.Tensor | None
    ) -> torch.Tensor:
        """The loss of each pair, (B,), from r_ci (B,), r_cj and p (B, n), log q (B, n) or (B, 1)."""
        raise NotImplementedError

    def ell(self, r_ci: torch.Tensor, r_cj: torch.Tensor) -> torch.Tensor:
        """ℓ(r_ci, r_cj), (B, n): the loss of a pair with one negative, which rules weigh candidates by."""
        one = torch.ones_like(r_cj).reshape(-1, 1)
        each = r_ci[:, None].expand_as(r_cj).reshape(-1)
        return self.pair(each, r_cj.reshape(-1, 1), one, torch.zeros_like(one)).view_as(r_cj)

    def value_and_gradients(
        self,
        r_ci: torch.Tensor,
        r_cj: torch.Tensor,
        p: torch.Tensor,
        n: torch.Tensor | int,
        log_q: torch.Tensor | None = None,
        L: torch.Tensor | None = None,
    ) -> Gradients:
        """The loss summed over all pairs, and its gradients by r_ci (B,) and by r_cj (B, n).

        ``p`` and ``log_q`` are (B, n), or (B, 1) where all negatives have the same; ``n``, the number of a
        pair's negatives, is a number or (B, 1); ``L`` are the values of ℓ where they are known already.
        A loss in closed form takes a score r_cj of −∞ for no negative.
        """
        with torch.enable_grad():
            i, j = r_ci.detach().requires_grad_(), r_cj.detach().requires_grad_()
            value = self.pair(i, j, p.expand_as(j), log_q).sum()
            g_ci, g_cj = torch.autograd.grad(value, (i, j))
        return value.detach(), g_ci, g_cj

    @classmethod
    def in_closed_form(cls) -> bool:
        """Whether the gradient is the loss's own and not autograd's."""
        return cls.value_and_gradients is not Loss.value_and_gradients

    def over_all(
        self,
        r_ci: torch.Tensor,
        scores: torch.Tensor,
        owner: torch.Tensor,
        n: torch.Tensor,
        backend: Any = None,
    ) -> Gradients:
        """The loss summed over pairs with all n₋ negatives of their user, p = 1/n₋, and its gradients.

        ``scores`` (U, n_items) are the users', −∞ for what is no negative, and may be overwritten;
        ``owner`` (P,), ascending, says whose each pair is. The gradients are by r_ci (P,) and by the
        scores, of all pairs of a user together.
        """
        value = scores.new_zeros(())
        g_ci, G = torch.empty_like(r_ci), torch.zeros_like(scores)
        for part in torch.split(torch.arange(len(r_ci), device=r_ci.device), len(scores)):
            rows = owner[part]
            p = 1 / n[rows, None]  # and so is q
            more, g_ci[part], g_cj = self.value_and_gradients(
                r_ci[part], scores[rows], p, n[rows, None], p.log()
            )
            value = value + more
            G.index_add_(0, rows, g_cj)
        return value, g_ci, G


class SeparableLoss(Loss, frozen=True):
    """Σ_j p_cij ℓ(r_ci − r_cj): a subclass writes ℓ and its slope as functions of v = r_cj − r_ci."""

    def of(self, v: torch.Tensor) -> torch.Tensor:
        """ℓ, by the violation v = r_cj − r_ci."""
        raise NotImplementedError

    def slope_(self, v: torch.Tensor) -> torch.Tensor:
        """dℓ/dv, which may overwrite v."""
        raise NotImplementedError

    def pair(
        self, r_ci: torch.Tensor, r_cj: torch.Tensor, p: torch.Tensor, log_q: torch.Tensor | None
    ) -> torch.Tensor:
        """Σ_j p_cij ℓ(r_ci − r_cj)."""
        return (p * self.of(r_cj - r_ci[:, None])).sum(dim=1)

    def ell(self, r_ci: torch.Tensor, r_cj: torch.Tensor) -> torch.Tensor:
        """ℓ(r_ci − r_cj)."""
        return self.of(r_cj - r_ci[:, None])

    def value_and_gradients(
        self,
        r_ci: torch.Tensor,
        r_cj: torch.Tensor,
        p: torch.Tensor,
        n: torch.Tensor | int,
        log_q: torch.Tensor | None = None,
        L: torch.Tensor | None = None,
    ) -> Gradients:
        """The sum of the weighted losses; the positive's gradient is that of all its negatives."""
        v = r_cj - r_ci[:, None]
        L = self.of(v) if L is None else L
        value = weighted_sum(p, L)
        g_cj = self.slope_(v).mul_(p)
        return value, -g_cj.sum(dim=1), g_cj


def weighted_sum(p: torch.Tensor, L: torch.Tensor) -> torch.Tensor:
    """Σ_(c,i) Σ_j p_cij L_cij, with no (B, n) product in between."""
    if p.shape == L.shape:
        return torch.dot(p.flatten(), L.flatten())
    return torch.dot(p[:, 0], L.sum(dim=1))
