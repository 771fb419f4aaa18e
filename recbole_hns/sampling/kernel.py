"""Kernel-based sampling: candidates from a distribution that follows the model."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from recbole_hns.kernels import Candidates
from recbole_hns.kernels.tree import build_tree
from recbole_hns.sampling.rules import Softmax
from recbole_hns.sampling.sampler import NegativeSampler
from recbole_hns.settings.checks import setting


@dataclass(frozen=True)
class Kernel(Softmax):
    """p_cij ∝ exp(r_cj/τ − log q_cj) over N candidates from q(j | c) ∝ α⟨w_c, w_j⟩² + 1.

    Blanc and Rendle 2018. The quadratic kernel follows the softmax where scores are large, so that few
    candidates are enough.
    """

    takes = ("N",)
    needs_vectors = "draws by the vectors of the model"

    kernel_alpha: float = setting("α of the quadratic kernel")


class KernelSampler(NegativeSampler):
    """Draws exactly from the kernel's distribution over the user's negatives, by a tree.

    The tree takes about as much memory as the items' vectors (:class:`~.kernels.tree.KernelTree`) and is
    built anew from them at every step, so that it is never out of date.
    """

    def candidates(self, users: torch.Tensor, query) -> Candidates:
        """N draws with their log q."""
        tree = build_tree(query.items, self.method.kernel_alpha)
        vectors = (query.context, query.rows, query.items)
        return self.pool.kernels.draw_kernel(
            tree, self.pool.tables, users, *vectors, self.N, self.generator
        )
