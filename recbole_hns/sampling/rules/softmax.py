"""Softmax-based sampling at a fixed temperature."""

from __future__ import annotations

from typing import Annotated

import torch

from recbole_hns.sampling.rules.base import Rule
from recbole_hns.sampling.scored import Scored
from recbole_hns.settings.kinds import Positive, setting
from recbole_hns.settings.registry import register


@register
class Softmax(Rule, frozen=True):
    """p_cij ∝ exp(r_cj/τ − log q_cj) over the candidates (eq. 3, with the pool's q corrected for).

    The smaller τ, the harder the negatives.
    """

    tau: Annotated[
        Positive,
        setting("the temperature of the softmax; smaller is harder", "τ", (0.1, 0.3, 1.0, 3.0)),
    ] = 1.0

    def weigh(self, s: Scored) -> torch.Tensor:
        """Self-normalised importance weights of the softmax distribution."""
        return softmax_weights(s.r_cj, self.tau, s.log_q)


def softmax_weights(scores: torch.Tensor, tau: float, log_q: torch.Tensor | None) -> torch.Tensor:
    """∝ exp(score/τ − log q) in each row, (B, N)."""
    logits = scores if tau == 1 else scores / tau
    return torch.softmax(logits if log_q is None else logits - log_q, dim=1)
