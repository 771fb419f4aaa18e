"""From a spec to a sampler, and the names of those that ship."""

from __future__ import annotations

import torch
from recbole.data.dataset import Dataset

from recbole_hns.kernels import get_kernels
from recbole_hns.sampling.adasir import AdaSIR, AdaSIRSampler
from recbole_hns.sampling.aobpr import AOBPR, AOBPRSampler
from recbole_hns.sampling.irgan import IRGAN, IRGANSampler
from recbole_hns.sampling.kernel import Kernel, KernelSampler
from recbole_hns.sampling.non_sampling import NonSampling, NonSamplingSampler
from recbole_hns.sampling.pools import POOLS
from recbole_hns.sampling.registry import register_sampler
from recbole_hns.sampling.rules import DNS, Softmax, SoftmaxV, Uniform
from recbole_hns.sampling.sampler import NegativeSampler
from recbole_hns.sampling.warp import WARP, WARPSampler

register_sampler("uniform", Uniform, about="BPR: N uniform negatives")
register_sampler("popularity", Uniform, pool="popularity", about="N negatives ∝ count^pool_alpha")
register_sampler("aobpr", AOBPR, AOBPRSampler, about="AOBPR: what ranks high in a factor of the context")
register_sampler("warp", WARP, WARPSampler, about="WARP: the first violator, weighed by rank")
register_sampler("irgan", IRGAN, IRGANSampler, about="IRGAN: a generator learns to draw")
register_sampler(
    "kernel", Kernel, KernelSampler, about="candidates from a quadratic kernel, softmax weights"
)
register_sampler("pris_u", Softmax, pool="uniform", about="PRIS(U): importance weights, uniform pool")
register_sampler(
    "pris_p", Softmax, pool="popularity", about="PRIS(P): importance weights, popularity pool"
)
register_sampler("adasir_u", AdaSIR, AdaSIRSampler, "uniform", "AdaSIR(U): a resampled pool per user")
register_sampler(
    "adasir_p", AdaSIR, AdaSIRSampler, "popularity", "AdaSIR(P): the same, popular proposals"
)
register_sampler(
    "non_sampling", NonSampling, NonSamplingSampler, about="the full BPR loss over all negatives"
)
register_sampler("dns", DNS, about="DNS(M, N): the M hardest of N candidates")
register_sampler("softmax", Softmax, about="softmax of the scores at a fixed temperature")
register_sampler("softmax_v", SoftmaxV, about="Softmax-v(ρ, N): softmax whose temperature adapts")


def make_sampler(
    spec, dataset: Dataset, device: torch.device, seed: int, rank: int = 0
) -> NegativeSampler:
    """The sampler that a :class:`~.spec.SamplerSpec` describes, over a training set."""
    pool = POOLS[spec.pool](
        "train",
        dataset,
        alpha=spec.pool_alpha,
        block=spec.pool_block,
        kernels=get_kernels(spec.backend, device),
        generator=torch.Generator(device),
    )
    pool = pool.set_phase("train").to(device)
    return spec.entry.sampler(pool, spec.method, spec.N, seed, rank, spec.pair_loss)
