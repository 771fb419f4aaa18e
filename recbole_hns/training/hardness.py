"""How hard a sampler's negatives are: what its settings aim at, and what is measured in an epoch."""

from __future__ import annotations

import math
from itertools import islice
from typing import TypedDict

import torch

from recbole_hns.sampling.methods import Method
from recbole_hns.sampling.negatives import Chosen, Negatives
from recbole_hns.sampling.pools.everything import AllNegatives
from recbole_hns.sampling.sampler import Sampler

PAIRS = 256  # of a batch, whose weights are looked at: what it costs is not to be noticed
CONTEXTS = 16  # of a batch, where the weights are over all negatives


class Hardness(TypedDict):
    """Means over pairs of an epoch's first batch."""

    kl: float  # Σ_j p_cij log(N p_cij), in nats: 0 is uniform, log N a single candidate
    effective: float  # 1/Σ_j p_cij²: how many candidates count
    candidates: float  # N


def aimed_at(sampler: Sampler) -> str | None:
    """OPAUC(β), and the K of the Top-K metrics that it is bound to; None where no β is fixed."""
    beta = sampler.method.beta()
    if beta is None:
        return None
    n_neg = _negatives(sampler)
    reached = max(beta, 1 / _candidates(sampler))
    at_most = "" if reached == beta else "at best "
    return (
        f"{at_most}OPAUC(β = {reached:.4g}), the top {reached * n_neg:.3g} of a user's "
        "negatives on average, so Top-K metrics with K around that"
    )


def out_of_reach(sampler: Sampler) -> str | None:
    """What to say where the settings ask for weights that no N candidates can have; else None."""
    method = sampler.method
    beta = method.rule.beta(method.N)
    if beta is None:
        return None
    wanted, N = math.inf if beta == 0 else -math.log(beta), _candidates(sampler)
    if wanted <= math.log(N) + 1e-9:
        return None
    asked = ", ".join(f"{key}={value:g}" for key, value in _numbers_of(method).items())
    return (
        f"{asked} asks for a KL divergence of {wanted:.4g} nats from uniform weights, and {N:,.0f} "
        f"candidates reach {math.log(N):.4g} at most, where the hardest has all the weight: it is "
        "milder than it says."
    )


def measured(method: Method, chosen: Chosen) -> Hardness | None:
    """How far the weights of a batch are from uniform; None where they are no distribution over candidates.

    WARP and IRGAN hand on one negative that they drew themselves; a part of one's own may do otherwise too.
    """
    if not method.rule.sums_to_one:
        return None
    if isinstance(chosen, AllNegatives):
        return _of_all(chosen)
    if not isinstance(chosen, Negatives) or method.rule.sampler() is not Sampler or method.N is None:
        return None
    kl, effective = divergence(chosen.weights[:PAIRS], method.N)
    return {"kl": float(kl.mean()), "effective": float(effective.mean()), "candidates": method.N}


def divergence(p: torch.Tensor, N: int) -> tuple[torch.Tensor, torch.Tensor]:
    """KL(p‖uniform over N) and 1/Σp² of each row of p (B, n), n ≤ N; both (B,), in double precision."""
    p = p.double()
    return math.log(N) - torch.special.entr(p).sum(dim=1), 1 / p.square().sum(dim=1)


def in_words(hardness: Hardness, pool: str) -> str:
    """For the log; a pool other than uniform is hard or mild by itself, which is not measured."""
    kl, effective, N = hardness["kl"], hardness["effective"], hardness["candidates"]
    return (
        f"of {N:,.4g} candidates of pool={pool} {effective:,.4g} count (1/Σp²), KL from uniform weights "
        f"{kl:.4g} of at most {math.log(N):.4g} nats (means of the epoch's first batch)"
    )


def _of_all(chosen: AllNegatives) -> Hardness:
    """Of the pairs of some contexts: each has another number of negatives."""
    if chosen.alike:
        n = float(chosen.n_neg.mean())
        return {"kl": 0.0, "effective": n, "candidates": n}
    kl, effective, n_neg = [], [], []
    for _, _, p in islice(chosen.weighed(), CONTEXTS):
        of_pairs = divergence(p, p.shape[1])
        kl.append(of_pairs[0])
        effective.append(of_pairs[1])
        n_neg.append(torch.full_like(of_pairs[0], p.shape[1]))
    means = [float(torch.cat(values).mean()) for values in (kl, effective, n_neg)]
    return {"kl": means[0], "effective": means[1], "candidates": means[2]}


def _candidates(sampler: Sampler) -> float:
    """N; the mean number of a user's negatives where all are candidates."""
    return _negatives(sampler) if sampler.method.N is None else sampler.method.N


def _negatives(sampler: Sampler) -> float:
    world = sampler.world
    users = torch.arange(world.positives.first, world.n_users, device=world.device)
    return float(world.line.negatives_of(users).double().mean())


def _numbers_of(method: Method) -> dict[str, float]:
    """The rule's own settings that are numbers."""
    own = {key: getattr(method.rule, key) for key in type(method.rule).__struct_fields__}
    return {key: value for key, value in own.items() if isinstance(value, (int, float))}
