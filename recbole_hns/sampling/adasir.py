"""AdaSIR: a pool per user, resampled by importance as the model learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from recbole_hns.kernels import Candidates
from recbole_hns.sampling.negatives import draw_places
from recbole_hns.sampling.rules import Softmax, Uniform
from recbole_hns.sampling.sampler import NegativeSampler
from recbole_hns.settings import checks
from recbole_hns.settings.checks import setting


@dataclass(frozen=True)
class AdaSIR(Uniform):
    """p_cij = 1/N for N items of the user's pool, which is resampled ∝ exp(r_cj/τ − log q_cj).

    Chen et al. 2022. Once an epoch, at the user's first pair, ``proposals`` items are drawn from q and
    resampled to ``pool_size`` by importance, which makes them a sample of the softmax distribution; a
    share ``keep`` of the old pool stays. Memory: users × pool_size numbers of 4 bytes.
    """

    takes = ("N", "pool_alpha")
    knows_q = False

    tau: float = setting("the temperature of the softmax that the pool follows; smaller is harder")
    pool_size: int = setting("the number of items in a user's pool")
    proposals: int = setting("the number of items that a pool is resampled from")
    keep: float = setting("the share of the old pool that stays", check=checks.share)

    def beta(self, N: int) -> None:
        """It varies with the scores."""


class AdaSIRSampler(NegativeSampler):
    """Draws from the pools of the users, and renews each once an epoch."""

    def __init__(self, *args, **kwargs):
        self.pools = None
        super().__init__(*args, **kwargs)
        shape = (self.pool.user_num, self.method.pool_size)
        self.pools = torch.zeros(shape, dtype=torch.int32, device=self.pool.tables.mass.device)
        self.start_epoch(0)

    def start_epoch(self, epoch: int) -> None:
        """Every pool is due again."""
        super().start_epoch(epoch)
        if self.pools is not None:
            self.due = torch.ones(len(self.pools), dtype=torch.bool, device=self.pools.device)

    def candidates(self, users: torch.Tensor, query) -> Candidates:
        """N items of each user's pool, with replacement."""
        self.renew(users, query)
        shape, device = (len(users), self.N), self.pools.device
        place = torch.randint(self.method.pool_size, shape, generator=self.generator, device=device)
        return Candidates(self.pools[users[:, None], place])

    def renew(self, users: torch.Tensor, query) -> None:
        """Resample the pools that are due, each by the first of its user's pairs."""
        pairs = self.due[users].nonzero()[:, 0]
        if len(pairs) == 0:
            return
        first = torch.full((len(self.pools),), len(users), device=users.device)
        first.scatter_reduce_(0, users[pairs], pairs, "amin")
        pairs = first[first < len(users)]
        users = users[pairs]
        fresh = self.resample(users, query.at(pairs))
        coin = torch.rand(fresh.shape, generator=self.generator, device=fresh.device)
        old = self.pools[users]
        self.pools[users] = torch.where((coin < self.method.keep) & (old > 0), old, fresh)
        self.due[users] = False

    def resample(self, users: torch.Tensor, query) -> torch.Tensor:
        """Sampling importance resampling: pool_size of the proposals, with replacement."""
        proposals = self.pool.draw(users, self.method.proposals)
        weights = Softmax(self.method.tau).weigh(query.score(proposals), None, proposals.log_q)
        return proposals.ids.gather(1, draw_places(weights, self.generator, self.method.pool_size))

    def state_dict(self) -> dict[str, Any]:
        """The pools, and which of them the epoch has not renewed yet."""
        return {"pools": self.pools, "due": self.due}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the saved pools."""
        self.pools.copy_(state["pools"])
        self.due.copy_(state["due"])
