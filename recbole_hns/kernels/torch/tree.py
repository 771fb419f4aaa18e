"""Kernel-based sampling in plain torch: all draws go down the tree together, level by level."""

from __future__ import annotations

import torch

from recbole_hns.kernels.line import Line
from recbole_hns.kernels.torch.base import chunks
from recbole_hns.kernels.tree import KernelTree, triangle
from recbole_hns.kernels.types import Candidates, Vectors

CHUNK_NUMBERS = 1 << 24


def draw_kernel(
    tree: KernelTree,
    line: Line,
    users: torch.Tensor,
    v: Vectors,
    N: int,
    generator: torch.Generator,
) -> Candidates:
    """N draws from q(j | c) ∝ α⟨h, w_j⟩² + 1 over the user's negatives, with log q."""
    ids = torch.empty((len(users), N), dtype=torch.int32, device=v.items.device)
    log_q = torch.empty((len(users), N), dtype=v.items.dtype, device=v.items.device)
    numbers = N * max(tree.nodes.shape[1], tree.bucket * v.items.shape[1])
    for part in chunks(len(users), numbers, CHUNK_NUMBERS):
        negatives = _Negatives(tree, line, users[part], v.context[v.rows[part]], v.items)
        low, total = negatives.descend(N, generator)
        ids[part], log_q[part] = negatives.draw_from_bucket(low, total, generator)
    return Candidates(ids, log_q=log_q)


class _Negatives:
    """The negatives of some pairs' users: how many lie in a stretch of ids, and what they weigh."""

    def __init__(
        self, tree: KernelTree, line: Line, users: torch.Tensor, h: torch.Tensor, items: torch.Tensor
    ):
        self.tree, self.line, self.users, self.h, self.items = tree, line, users, h, items
        n_pos = line.n_positives_of(users)
        self.first = (n_pos.cumsum(0) - n_pos)[:, None]  # of each pair in the list of all positives
        pair, taken = line.positives_of(users)
        K = tree.alpha * (h[pair] * items[taken]).sum(dim=1).square().double() + 1
        self.before = torch.cat([K.new_zeros(1), K.cumsum(0)])

    def descend(self, N: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """N ways from the root to a bucket: the buckets' first ids, (b, N), and the root's mass."""
        row, column = triangle(self.h.shape[1], self.h.device)
        phi = self.h[:, row] * self.h[:, column]  # (b, D)
        width = self.tree.L * self.tree.bucket
        node = torch.ones((len(self.users), N), dtype=torch.long, device=self.h.device)
        low = torch.zeros_like(node)  # the first id below the node
        total = self._total(phi, width)
        mass = total.expand(-1, N)
        while width > self.tree.bucket:
            width //= 2
            middle = low + width
            left = torch.einsum("bk,bnk->bn", phi, self.tree.nodes[2 * node]).double() * self.tree.alpha
            left += self._items(low, middle) - self._positives_mass(low, middle)
            # Every negative weighs 1 at least; and where there is none, nothing is left to draw.
            n_left, n_right = self._count(low, middle), self._count(middle, middle + width)
            left = torch.minimum(torch.maximum(left, n_left), mass - n_right)
            left = torch.where(n_left == 0, 0, torch.where(n_right == 0, mass, left))
            point = torch.rand(mass.shape, generator=generator, device=mass.device, dtype=mass.dtype)
            go_left = point * mass < left
            node = 2 * node + (~go_left).long()
            low = torch.where(go_left, low, middle)
            mass = torch.where(go_left, left, mass - left)
        return low, total

    def draw_from_bucket(
        self, low: torch.Tensor, total: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """A negative from the bucket that begins at each ``low``, and its log q, both (b, N)."""
        n, bucket = len(self.items), self.tree.bucket
        ids = low[:, :, None] + torch.arange(bucket, device=low.device)  # (b, N, bucket)
        inside = (ids >= self.line.first) & (ids < n)
        ids = ids.clamp(max=n - 1)
        K = torch.einsum("bd,bnkd->bnk", self.h, self.items[ids]).square().double()
        K = self.tree.alpha * K + 1
        K = K * (inside & ~self.line.is_positive(self.users[:, None, None], ids))
        edges = K.cumsum(dim=2)
        point = torch.rand(low.shape, generator=generator, device=low.device, dtype=K.dtype)[:, :, None]
        place = torch.searchsorted(edges, point * edges[:, :, -1:], right=True).clamp(max=bucket - 1)
        log_q = K.gather(2, place)[:, :, 0].log() - total.log()
        return ids.gather(2, place)[:, :, 0].int(), log_q.to(self.h.dtype)

    def _total(self, phi: torch.Tensor, width: int) -> torch.Tensor:
        """Σ_j K over the user's negatives, (b, 1)."""
        total = self.tree.alpha * (phi @ self.tree.nodes[1]).double()
        total = total + len(self.items) - self.line.first
        whole = torch.zeros_like(self.users)[:, None]
        total = total[:, None] - self._positives_mass(whole, whole + width)
        return torch.maximum(total, self._count(whole, whole + width))

    def _place(self, ids: torch.Tensor) -> torch.Tensor:
        """#{positives of the user below each id}."""
        n = self.line.n_items
        keys = self.users[:, None] * n + ids.clamp(max=n)
        at = torch.searchsorted(self.line.item_keys, keys)
        return at - self.line.indptr[self.users][:, None]

    def _positives_mass(self, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        return self.before[self.first + self._place(high)] - self.before[self.first + self._place(low)]

    def _items(self, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        """All items of the stretch, without the padding."""
        first, n = self.line.first, self.line.n_items
        return (high.clamp(max=n) - low.clamp(min=first, max=n)).clamp(min=0).double()

    def _count(self, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        """The user's negatives in the stretch."""
        return self._items(low, high) - (self._place(high) - self._place(low)).double()
