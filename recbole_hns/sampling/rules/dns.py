"""DNS(M, N), the paper's first sampler."""

from __future__ import annotations

from typing import Annotated

import torch

from recbole_hns.errors import Error
from recbole_hns.kernels import Candidates
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.rules.base import Rule
from recbole_hns.sampling.scored import Scored
from recbole_hns.settings.kinds import Count, setting
from recbole_hns.settings.registry import register


@register
class DNS(Rule, frozen=True):
    """p_cij = 1/M for the M highest-scored of N candidates, else 0 (eq. 2, Algorithm 1).

    M = 1 is the original DNS (Zhang et al. 2013). The smaller M, the harder the negatives. 20, the mildest
    of the paper's grid, was picked on ml-100k, where 5 and 10 learned worse than uniform negatives.
    """

    M: Annotated[
        Count,
        setting(
            "how many of the hardest candidates are kept; smaller is harder",
            search=(1, 2, 3, 4, 5, 10, 20),
        ),
    ] = 20

    def by_default(self, N: int) -> DNS:
        """There are no more than N to keep."""
        return DNS(M=min(self.M, N))

    def check(self, N: int | None) -> None:
        """M of N."""
        if N is not None and self.M > N:
            raise Error(
                f"M={self.M} is not allowed: a whole number from 1 to {N} is needed (the M hardest of "
                f"N={N} candidates are kept)."
            )

    def beta(self, N: int | None) -> float | None:
        """M/N: the top M of the pool stand for the top M/N of all negatives (theorem 1)."""
        return None if N is None else self.M / N

    def keeps(self, N: int) -> int:
        """M."""
        return min(self.M, N)

    def weigh(self, s: Scored) -> torch.Tensor:
        """1/M for the highest."""
        M = self.keeps(s.shape[1])
        return torch.zeros_like(s.r_cj).scatter_(1, s.r_cj.topk(M, dim=1).indices, 1 / M)

    def choose(self, s: Scored) -> Negatives:
        """The M hardest, found while scoring."""
        ids, scores = s.top(self.M)
        return Negatives(Candidates(ids), torch.full_like(scores, 1 / self.M), scores)
