"""Kernel-based sampling: candidates from a distribution that follows the model."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch

from recbole_hns.kernels import Candidates, build_tree
from recbole_hns.sampling.pools.base import Pool, Source
from recbole_hns.sampling.query import Query, vectors_of
from recbole_hns.sampling.world import World
from recbole_hns.settings.kinds import Positive, setting
from recbole_hns.settings.registry import register


@register
class Kernel(Pool, frozen=True):
    """q(j | c) ∝ α⟨w_c, w_j⟩² + 1 over the user's negatives.

    Blanc and Rendle 2018. The quadratic kernel follows the softmax where scores are large, so that few
    candidates are enough.
    """

    gives: ClassVar[frozenset[str]] = frozenset({"ids", "q"})
    needs_vectors: ClassVar[str] = "draws by the vectors of the model"

    kernel_alpha: Annotated[Positive, setting("α of the quadratic kernel", "α")] = 100.0

    def open(self, world: World, block: int = 1) -> KernelSource:
        """Draws by a tree over the items' vectors."""
        return KernelSource(self, world)


class KernelSource(Source):
    """Draws exactly from the kernel's distribution over the user's negatives, by a tree.

    The tree takes about as much memory as the items' vectors (:class:`~..kernels.KernelTree`) and is
    built anew from them at every step, so that it is never out of date.
    """

    def __init__(self, pool: Kernel, world: World):
        super().__init__(world)
        self.pool, self.line = pool, world.line

    def draw(self, users: torch.Tensor, N: int, query: Query | None = None) -> Candidates:
        """N draws with their log q."""
        v = vectors_of(query)
        tree = build_tree(v.items, self.pool.kernel_alpha, self.world.positives.first)
        return self.world.backend.draw_kernel(tree, self.line, users, v, N, self.generator)
