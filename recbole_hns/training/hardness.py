"""Which metric a sampler aims at, in words."""

from __future__ import annotations

import torch

from recbole_hns.sampling.sampler import Sampler


def hardness(sampler: Sampler) -> str | None:
    """OPAUC(β), and the K of the Top-K metrics that it is bound to; None where no β is fixed."""
    beta, world = sampler.method.beta(), sampler.world
    if beta is None:
        return None
    users = torch.arange(world.positives.first, world.n_users, device=world.device)
    K = beta * float(world.line.negatives_of(users).double().mean())
    return (
        f"OPAUC(β = {beta:.4g}), the top {K:.3g} of a user's "
        "negatives on average, so Top-K metrics with K around that"
    )
