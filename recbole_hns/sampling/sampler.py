"""A sampler: what turns a batch into its negatives."""

from __future__ import annotations

from typing import Any

import torch

from recbole_hns.kernels import Candidates
from recbole_hns.losses import DEFAULT_LOSS, PairLoss
from recbole_hns.sampling.method import Method
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.pools import Pool
from recbole_hns.sampling.seeding import derive_seed


class NegativeSampler:
    """Draws N candidates from the pool and lets the method, a rule, weigh them.

    All randomness derives from ``seed``, the process' rank and the epoch, so a run that resumes at
    an epoch draws what an uninterrupted one would have drawn. A sampler that learns, or remembers
    anything from one batch to the next, puts what it knows into its state.
    """

    def __init__(
        self,
        pool: Pool,
        method: Method,
        N: int | None,
        seed: int,
        rank: int = 0,
        pair_loss: PairLoss = DEFAULT_LOSS,
    ):
        self.pool, self.method, self.N = pool, method, N
        self.seed, self.rank, self.pair_loss = seed, rank, pair_loss
        self.start_epoch(0)

    @property
    def generator(self) -> torch.Generator:
        """The source of this sampler's randomness."""
        return self.pool.generator

    def start_epoch(self, epoch: int) -> None:
        """Begin the random stream of an epoch."""
        self.generator.manual_seed(derive_seed(self.seed, self.rank, epoch))

    @torch.no_grad()
    def select(self, users: torch.Tensor, query) -> Negatives:
        """The weighted negatives of a batch; no gradient flows through the choice."""
        negatives = self.method.choose(self.candidates(users, query), query, self.pair_loss)
        if self.pair_loss.needs_log_q:
            negatives.log_q = self.log_q(users, negatives.candidates)
        return negatives

    def candidates(self, users: torch.Tensor, query) -> Candidates:
        """What the method chooses from."""
        return self.pool.draw(users, self.N)

    def log_q(self, users: torch.Tensor, candidates: Candidates) -> torch.Tensor:
        """log q of the negatives that were chosen, (B, n) or (B, 1)."""
        return self.pool.log_q(users, candidates) if candidates.log_q is None else candidates.log_q

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold, beside the generator, to go on after any batch."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
