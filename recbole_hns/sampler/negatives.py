"""What a sampler hands to the loss."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from recbole_hns.kernels import Candidates


@dataclass
class Negatives:
    """n weighted negatives for each pair of the batch."""

    candidates: Candidates  # ids (B, n)
    weights: torch.Tensor  # (B, n) p_cij, rows sum to 1, no gradient
    scores: torch.Tensor | None = None  # (B, n) r_cj, where the sampler knows them already
    losses: torch.Tensor | None = None  # (B, n) ℓ(r_ci − r_cj), likewise

    @property
    def ids(self) -> torch.Tensor:
        """The negatives' item ids, (B, n)."""
        return self.candidates.ids

    def draw_one(self, generator: torch.Generator) -> torch.Tensor:
        """One negative per pair, drawn from p: an unbiased estimate for a loss that takes one."""
        if self.ids.shape[1] == 1:
            return self.ids[:, 0].long()
        position = torch.multinomial(self.weights, 1, generator=generator)
        return self.ids.gather(1, position)[:, 0].long()
