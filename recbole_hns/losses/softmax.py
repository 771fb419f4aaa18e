"""Losses over the list of a positive and its negatives: sampled softmax and InfoNCE."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F

from recbole_hns.losses.base import Gradients, Loss
from recbole_hns.settings.kinds import Positive, setting
from recbole_hns.settings.registry import register


class ListLoss(Loss, frozen=True):
    """log(1 + Σ_j e^z_j): −log of the positive's share among itself and its negatives."""

    @property
    def scale(self) -> float:
        """What score differences are divided by."""
        return 1.0

    def log_weights(
        self, p: torch.Tensor, n: torch.Tensor | int, log_q: torch.Tensor | None
    ) -> torch.Tensor:
        """What z_j has besides the scores."""
        raise NotImplementedError

    def pair(
        self, r_ci: torch.Tensor, r_cj: torch.Tensor, p: torch.Tensor, log_q: torch.Tensor | None
    ) -> torch.Tensor:
        """log(1 + Σ_j e^z_j)."""
        z = (r_cj - r_ci[:, None]) / self.scale + self.log_weights(p, r_cj.shape[1], log_q)
        return F.softplus(torch.logsumexp(z, dim=1))

    def ell(self, r_ci: torch.Tensor, r_cj: torch.Tensor) -> torch.Tensor:
        """The loss with one negative, log(1 + e^((r_cj − r_ci)/temperature))."""
        return F.softplus((r_cj - r_ci[:, None]) / self.scale)

    def value_and_gradients(
        self,
        r_ci: torch.Tensor,
        r_cj: torch.Tensor,
        p: torch.Tensor,
        n: torch.Tensor | int,
        log_q: torch.Tensor | None = None,
        L: torch.Tensor | None = None,
    ) -> Gradients:
        """A negative's gradient is its share of the sum."""
        z = (r_cj - r_ci[:, None]).div_(self.scale).add_(self.log_weights(p, n, log_q))
        value = F.softplus(torch.logsumexp(z, dim=1))
        g_cj = z.sub_(value[:, None]).exp_().div_(self.scale)
        return value.sum(), -g_cj.sum(dim=1), g_cj


@register
class SampledSoftmax(ListLoss, frozen=True):
    """log(1 + Σ_j p_cij e^(r_cj − r_ci) / q_cj): the softmax loss over all items, estimated.

    With p = 1/N for N draws from q it is the sampled softmax with −log q (Bengio and Senécal 2008):
    Σ_j e^r_cj / (N q_cj) estimates the sum over all negatives, which ``non_sampling`` takes exactly.
    """

    name: ClassVar[str] = "softmax"
    needs: ClassVar[frozenset[str]] = frozenset({"q"})

    def log_weights(
        self, p: torch.Tensor, n: torch.Tensor | int, log_q: torch.Tensor | None
    ) -> torch.Tensor:
        """log p − log q."""
        return p.log() if log_q is None else p.log() - log_q


@register
class InfoNCE(ListLoss, frozen=True):
    """log(1 + n Σ_j p_cij e^((r_cj − r_ci)/temperature)): a softmax over the n negatives at hand.

    With equal weights it is InfoNCE (van den Oord et al. 2018). A lower temperature puts more of the
    gradient on the hardest negatives, as a larger ρ does in Softmax-v(ρ, N).
    """

    name: ClassVar[str] = "infonce"
    temperature: Annotated[Positive, setting("the temperature of the softmax; smaller is harder")] = 1.0

    @property
    def scale(self) -> float:
        """The temperature."""
        return self.temperature

    def log_weights(
        self, p: torch.Tensor, n: torch.Tensor | int, log_q: torch.Tensor | None
    ) -> torch.Tensor:
        """log(n p), 0 for equal weights."""
        return (p * n).log()
