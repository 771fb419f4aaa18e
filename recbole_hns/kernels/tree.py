"""The tree of kernel-based sampling (Blanc and Rendle 2018).

The quadratic kernel K(h, w) = α⟨h, w⟩² + 1 is linear in the products of w's entries, so that a set of
items has the mass Σ_j K(h, w_j) = α hᵀ(Σ_j w_j w_jᵀ)h + n. The tree keeps Σ w wᵀ of ever smaller sets;
a draw goes down from the root and needs no item's score until it comes to a bucket.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F


class KernelTree(NamedTuple):
    """Node 1 is the root, node k has the children 2k and 2k + 1, nodes L to 2L − 1 are the leaves.

    Leaf l holds the items of a bucket, the ids from l · bucket to (l + 1) · bucket − 1. A bucket has d
    to 2d items, so that the nodes take n (d + 1) numbers at most: about as much as the items' vectors.
    """

    nodes: torch.Tensor  # (2L, d (d + 1) / 2): upper triangle of Σ w wᵀ, off its diagonal doubled
    bucket: int
    alpha: float

    @property
    def L(self) -> int:
        """The number of leaves, a power of 2."""
        return len(self.nodes) // 2


def build_tree(items: torch.Tensor, alpha: float, first: int) -> KernelTree:
    """The tree over the items from ``first`` on; those before it, the padding, count for nothing."""
    n, d = items.shape
    L = 1 << max(0, (n // d).bit_length() - 1)
    bucket = -(-n // L)
    w = F.pad(items, (0, 0, 0, L * bucket - n))
    w = w.clone() if w.data_ptr() == items.data_ptr() else w
    w[:first] = 0
    w = w.view(L, bucket, d)
    row, column = triangle(d, items.device)
    nodes = items.new_zeros((2 * L, len(row)))
    nodes[L:] = torch.bmm(w.transpose(1, 2), w)[:, row, column]
    nodes[L:, row != column] *= 2
    while L > 1:
        L //= 2
        nodes[L : 2 * L] = nodes[2 * L : 4 * L].view(L, 2, -1).sum(dim=1)
    return KernelTree(nodes, bucket, alpha)


def triangle(d: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and columns of the upper triangle, in the order of the nodes."""
    row, column = torch.triu_indices(d, d, device=device)
    return row, column
