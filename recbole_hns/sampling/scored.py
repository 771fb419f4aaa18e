"""Candidates as rules see them."""

from __future__ import annotations

from functools import cached_property

import torch

from recbole_hns.kernels import Candidates
from recbole_hns.losses import BPR, Loss
from recbole_hns.sampling.query import Query


class Scored:
    """The candidates of a batch; scores and losses are computed when a rule first asks for them."""

    def __init__(self, query: Query, candidates: Candidates, loss: Loss | None = None):
        self.query, self.candidates, self.loss = query, candidates, loss or BPR()

    @property
    def shape(self) -> torch.Size:
        """(B, N)."""
        return self.candidates.ids.shape

    @property
    def device(self) -> torch.device:
        """Where the scores are, or would be."""
        return self.candidates.ids.device

    @property
    def log_q(self) -> torch.Tensor | None:
        """log q of the draws, (B, N); None where q is uniform."""
        return self.candidates.log_q

    @cached_property
    def r_ci(self) -> torch.Tensor:
        """The positives' scores, (B,)."""
        return self.query.r_ci

    @cached_property
    def r_cj(self) -> torch.Tensor:
        """The candidates' scores, (B, N)."""
        return self.query.score(self.candidates)

    @cached_property
    def ell(self) -> torch.Tensor:
        """ℓ(r_ci, r_cj), the loss of each candidate, (B, N)."""
        # In this order: KTUP scores by chance, and so depends on what was scored before.
        r_cj = self.r_cj
        return self.loss.ell(self.r_ci, r_cj)

    def known(self, what: str) -> torch.Tensor | None:
        """``r_cj`` or ``ell`` if a rule has asked for it."""
        value: torch.Tensor | None = vars(self).get(what)
        return value

    def top(self, M: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The M hardest candidates and their scores, both (B, M), hardest first."""
        return self.query.top(self.candidates, M)


class Rows(Scored):
    """Rows of scores that are there already, as a user's scores of all negatives are."""

    def __init__(self, r_ci: torch.Tensor, r_cj: torch.Tensor, loss: Loss):
        self.__dict__.update(r_ci=r_ci, r_cj=r_cj)
        self.loss = loss

    @property
    def shape(self) -> torch.Size:
        """(P, n₋)."""
        return self.r_cj.shape

    @property
    def device(self) -> torch.device:
        """Where the scores are."""
        return self.r_cj.device

    @property
    def log_q(self) -> None:
        """All negatives, each once: uniform."""
        return None
