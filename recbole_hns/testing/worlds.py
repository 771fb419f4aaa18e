"""Made-up worlds: small, with users who took nothing and users who took all items but one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from recbole_hns.kernels import Candidates
from recbole_hns.sampling.pools.base import Source
from recbole_hns.sampling.positives import Ids, Positives
from recbole_hns.sampling.query import DotQuery
from recbole_hns.sampling.world import World

BACKENDS = ("numba", "torch")
N_USERS, N_ITEMS, D = 10, 24, 4


def made_world(backend: str = "numba", first: int = 0, seed: int = 1) -> World:
    """Users 0, 1, … took more and more items, the last all but one; ids below ``first`` are padding."""
    rng = np.random.default_rng(5)
    sizes = np.linspace(0, N_ITEMS - first - 1, N_USERS).astype(int)
    items = [rng.permutation(np.arange(first, N_ITEMS))[:size] for size in sizes]
    users = np.repeat(np.arange(N_USERS), sizes)
    counts = 1 + rng.integers(0, 9, N_ITEMS)
    counts[:first] = 0
    positives = Positives(users, np.concatenate(items), N_USERS, N_ITEMS, first)
    return World(positives, counts, hns_backend=backend, seed=seed)


def made_worlds() -> Iterator[tuple[World, str]]:
    """A world for both backends, with and without a padding, and what to call it in a message."""
    for backend in BACKENDS:
        for first in (0, 1):
            yield made_world(backend, first), f"hns_backend={backend}, items from {first}"


def made_users(B: int = 40, seed: int = 2) -> torch.Tensor:
    """A batch's users, all of them, many twice."""
    return torch.randint(N_USERS, (B,), generator=torch.Generator().manual_seed(seed)).scatter(
        0, torch.arange(N_USERS), torch.arange(N_USERS)
    )


def made_query(world: World, users: torch.Tensor, scale: float = 1.0, grad: bool = False) -> DotQuery:
    """A batch of the users, with random vectors and one of each user's items."""
    generator = torch.Generator().manual_seed(3)
    context = scale**0.5 * torch.randn(N_USERS, D, generator=generator)
    items = scale**0.5 * torch.randn(N_ITEMS, D, generator=generator)
    rows = [world.positives.row(int(user)) for user in users]
    positives = torch.tensor([int(row[0]) if len(row) else N_ITEMS - 1 for row in rows])
    tables = (context.requires_grad_(grad), items.requires_grad_(grad))
    return DotQuery(*tables, positives, users, world.backend)


class ScoresOnly:
    """A query of a model that tells its scores and has no vectors to show."""

    def __init__(self, query: DotQuery):
        self.query, self.r_ci = query, query.r_ci

    def score(self, candidates: Candidates) -> torch.Tensor:
        """r_cj."""
        return self.query.score(candidates)

    def top(self, candidates: Candidates, M: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The M hardest."""
        return self.query.top(candidates, M)

    def at(self, pairs: torch.Tensor) -> ScoresOnly:
        """Some of the pairs."""
        return ScoresOnly(self.query.at(pairs))


def query_for(world: World, users: torch.Tensor, needs_vectors: str) -> DotQuery | ScoresOnly:
    """A query with vectors for a part that has declared that it needs them."""
    query = made_query(world, users)
    return query if needs_vectors else ScoresOnly(query)


def negatives_of(world: World, user: int) -> Ids:
    """The items that a user did not take."""
    return np.setdiff1d(np.arange(world.positives.first, world.n_items), world.positives.row(user))


def begin(world: World, source: Source, epoch: int) -> None:
    """An epoch, as a sampler begins it."""
    world.start_epoch(epoch)
    source.start_epoch(epoch)
