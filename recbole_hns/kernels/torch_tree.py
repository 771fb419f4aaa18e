"""Kernel-based sampling in plain torch: all draws go down the tree together, level by level."""

from __future__ import annotations

import torch

from recbole_hns.kernels import Candidates, DrawTables
from recbole_hns.kernels.tree import KernelTree, triangle

CHUNK_NUMBERS = 1 << 24


def draw_kernel(
    tree: KernelTree,
    tables: DrawTables,
    users: torch.Tensor,
    context: torch.Tensor,
    rows: torch.Tensor,
    items: torch.Tensor,
    N: int,
    generator: torch.Generator,
) -> Candidates:
    """N draws from q(j | c) ∝ α⟨h, w_j⟩² + 1 over the user's negatives, with log q."""
    step = max(1, CHUNK_NUMBERS // (N * max(tree.nodes.shape[1], tree.bucket * items.shape[1])))
    ids = torch.empty((len(users), N), dtype=torch.int32, device=items.device)
    log_q = torch.empty((len(users), N), dtype=items.dtype, device=items.device)
    for first in range(0, len(users), step):
        part = slice(first, first + step)
        h = context[rows[part]]
        ids[part], log_q[part] = _draw(tree, tables, users[part], h, items, N, generator)
    return Candidates(ids, log_q=log_q)


def _draw(tree, tables, users, h, items, N, generator):
    positives = _Positives(tree, tables, users, h, items)
    row, column = triangle(h.shape[1], h.device)
    phi = h[:, row] * h[:, column]  # (b, D)
    width = tree.L * tree.bucket
    node = torch.ones((len(users), N), dtype=torch.long, device=h.device)
    low = torch.zeros_like(node)  # the first id below the node
    total = tree.alpha * (phi @ tree.nodes[1]).double() + len(items) - 1
    whole = torch.zeros_like(low[:, :1])
    total = total[:, None] - positives.mass(whole, whole + width)
    total = torch.maximum(total, positives.negatives(whole, whole + width))
    mass = total.expand(-1, N)
    while width > tree.bucket:
        width //= 2
        middle = low + width
        left = torch.einsum("bk,bnk->bn", phi, tree.nodes[2 * node]).double() * tree.alpha
        left += positives.items(low, middle) - positives.mass(low, middle)
        # Every negative weighs 1 at least; and where there is none, nothing is left to draw.
        n_left, n_right = positives.negatives(low, middle), positives.negatives(middle, middle + width)
        left = torch.minimum(torch.maximum(left, n_left), mass - n_right)
        left = torch.where(n_left == 0, 0, torch.where(n_right == 0, mass, left))
        point = torch.rand(mass.shape, generator=generator, device=h.device, dtype=mass.dtype) * mass
        go_left = point < left
        node = 2 * node + (~go_left).long()
        low = torch.where(go_left, low, middle)
        mass = torch.where(go_left, left, mass - left)
    return _draw_from_bucket(tree, tables, users, h, items, low, total, generator)


def _draw_from_bucket(tree, tables, users, h, items, low, total, generator):
    ids = low[:, :, None] + torch.arange(tree.bucket, device=h.device)  # (b, N, bucket)
    inside = (ids > 0) & (ids < len(items))
    ids = ids.clamp(max=len(items) - 1)
    K = tree.alpha * torch.einsum("bd,bnkd->bnk", h, items[ids]).square().double() + 1
    K = K * (inside & ~tables.is_positive(users[:, None, None], ids))
    edges = K.cumsum(dim=2)
    point = torch.rand(low.shape, generator=generator, device=h.device, dtype=K.dtype)[:, :, None]
    place = torch.searchsorted(edges, point * edges[:, :, -1:], right=True).clamp(max=tree.bucket - 1)
    log_q = K.gather(2, place)[:, :, 0].log() - total.log()
    return ids.gather(2, place)[:, :, 0].int(), log_q.to(h.dtype)


class _Positives:
    """How many positives of each user lie in a stretch of ids, and what they weigh."""

    def __init__(self, tree, tables, users, h, items):
        self.tables, self.users = tables, users
        n_pos = tables.indptr[users + 1] - tables.indptr[users]
        self.first = n_pos.cumsum(0) - n_pos  # of each pair in the list of all pairs' positives
        pair = torch.repeat_interleave(torch.arange(len(users), device=h.device), n_pos)
        place = torch.arange(len(pair), device=h.device) - self.first[pair]
        taken = tables.items[tables.indptr[users][pair] + place].long()
        K = tree.alpha * (h[pair] * items[taken]).sum(dim=1).square().double() + 1
        self.before = torch.cat([K.new_zeros(1), K.cumsum(0)])

    def _place(self, ids):
        """#{positives of the user below each id}."""
        keys = self.users[:, None] * self.tables.n_items + ids.clamp(max=self.tables.n_items)
        at = torch.searchsorted(self.tables.item_keys, keys)
        return at - self.tables.indptr[self.users][:, None]

    def mass(self, low, high):
        first = self.first[:, None]
        return self.before[first + self._place(high)] - self.before[first + self._place(low)]

    def items(self, low, high):
        """All items of the stretch, without the padding."""
        n = self.tables.n_items
        return (high.clamp(max=n) - low.clamp(min=1, max=n)).clamp(min=0).double()

    def negatives(self, low, high):
        return self.items(low, high) - (self._place(high) - self._place(low)).double()
