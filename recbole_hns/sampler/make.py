"""From a spec to a sampler, and the names of those that ship."""

from __future__ import annotations

import torch
from recbole.data.dataset import Dataset

from recbole_hns.kernels import get_kernels
from recbole_hns.sampler.pool import POOLS
from recbole_hns.sampler.registry import register_sampler
from recbole_hns.sampler.rule import DNS, Softmax, SoftmaxV, Uniform
from recbole_hns.sampler.sampler import NegativeSampler

register_sampler("uniform", Uniform, about="plain BPR: negatives alike, from the pool")
register_sampler("popularity", Uniform, pool="popularity", about="negatives drawn ∝ count^pool_alpha")
register_sampler("dns", DNS, about="DNS(M, N): the M hardest of N candidates")
register_sampler("softmax", Softmax, about="softmax of the scores at a fixed temperature")
register_sampler("softmax_v", SoftmaxV, about="Softmax-v(ρ, N): softmax whose temperature adapts")


def make_sampler(
    spec, dataset: Dataset, device: torch.device, seed: int, rank: int = 0
) -> NegativeSampler:
    """The sampler that a :class:`~recbole_hns.spec.SamplerSpec` describes, over a training set."""
    pool = POOLS[spec.pool](
        "train",
        dataset,
        alpha=spec.pool_alpha,
        block=spec.pool_block,
        kernels=get_kernels(spec.backend, device),
        generator=torch.Generator(device),
    )
    return spec.entry.sampler(pool.set_phase("train").to(device), spec.method, spec.N, seed, rank)
