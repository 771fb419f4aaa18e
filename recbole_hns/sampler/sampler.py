"""A sampler: a pool and a rule."""

from __future__ import annotations

import torch
from recbole.data.dataset import Dataset

from recbole_hns.kernels import get_kernels
from recbole_hns.sampler.negatives import Negatives
from recbole_hns.sampler.pool import POOLS, Pool
from recbole_hns.sampler.rule import Rule
from recbole_hns.seeding import derive_seed


class NegativeSampler:
    """Draws N candidates from the pool and weighs them by the rule.

    All randomness derives from ``seed``, the process' rank and the epoch, so a run that resumes at
    an epoch draws what an uninterrupted one would have drawn.
    """

    def __init__(self, pool: Pool, rule: Rule, N: int, seed: int, rank: int = 0):
        self.pool, self.rule, self.N = pool, rule, N
        self.seed, self.rank = seed, rank
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
        return self.rule.choose(self.pool.draw(users, self.N), query)


def make_sampler(
    spec, dataset: Dataset, device: torch.device, seed: int, rank: int = 0
) -> NegativeSampler:
    """The sampler that a :class:`~recbole_hns.config.SamplerSpec` describes, over a training set."""
    pool = POOLS[spec.pool](
        "train",
        dataset,
        alpha=spec.pool_alpha,
        block=spec.pool_block,
        kernels=get_kernels(spec.backend, device),
        generator=torch.Generator(device),
    )
    return NegativeSampler(pool.set_phase("train").to(device), spec.rule, spec.N, seed, rank)
