"""Kernel-based sampling in Numba: every draw goes down the tree by itself."""

from __future__ import annotations

import numpy as np
import torch

from recbole_hns.kernels import Candidates, DrawTables
from recbole_hns.kernels.numba_base import GOLDEN, array, jit, mix, split, unit
from recbole_hns.kernels.tree import KernelTree


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
    seed = np.uint64(torch.randint(1 << 62, (), generator=generator).item())
    ids = torch.empty((len(users), N), dtype=torch.int32)
    log_q = torch.empty((len(users), N), dtype=torch.float32)
    inputs = (users.numpy(), seed, tables.indptr.numpy(), tables.items.numpy())
    inputs += (array(context), rows.numpy(), array(items))
    inputs += (array(tree.nodes), tree.bucket, np.float32(tree.alpha))
    out = (ids.numpy(), log_q.numpy())
    split((_draw_rows, len(users), *inputs, *out), work=ids.numel() * tree.bucket)
    return Candidates(ids, log_q=log_q)


@jit
def _dot(a, b):
    total = np.float32(0)
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@jit
def _below_id(positives, low, high, id):
    """The first of positives[low..high) that is ``id`` or more."""
    while low < high:
        middle = (low + high) >> 1
        if positives[middle] < id:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _draw_rows(
    first,
    last,
    users,
    seed,
    indptr,
    positives,
    context,
    rows,
    items,
    nodes,
    bucket,
    alpha,
    ids,
    log_q,
):
    n, d = items.shape
    L, D = nodes.shape[0] // 2, nodes.shape[1]
    phi = np.empty(D, dtype=np.float32)
    K = np.empty(bucket, dtype=np.float64)
    before = np.empty(1 + np.diff(indptr).max(), dtype=np.float64)  # running sum of the positives' K
    known = np.full(L, -1, dtype=np.int64)  # the pair that a node's left mass was computed for
    left_mass = np.empty(L, dtype=np.float64)
    for b in range(first, last):
        h = context[rows[b]]
        k = 0
        for i in range(d):
            for j in range(i, d):
                phi[k] = h[i] * h[j]
                k += 1
        own = positives[indptr[users[b]] : indptr[users[b] + 1]]
        before[0] = 0
        for m in range(own.shape[0]):
            before[m + 1] = before[m] + alpha * _dot(h, items[own[m]]) ** 2 + 1
        total = alpha * _dot(phi, nodes[1]) + (n - 1) - before[own.shape[0]]
        total = max(total, np.float64(n - 1 - own.shape[0]))
        state = mix(seed + np.uint64(b) * GOLDEN)
        for s in range(ids.shape[1]):
            node, low, width, mass = 1, 0, L * bucket, total
            p_low, p_high = 0, own.shape[0]  # the positives below the node
            while node < L:
                width //= 2
                middle = low + width
                p_middle = _below_id(own, p_low, p_high, middle)
                n_left = max(0, min(middle, n) - max(low, 1))
                n_right = max(0, min(middle + width, n) - max(middle, 1)) - (p_high - p_middle)
                if known[node] != b:
                    known[node] = b
                    left_mass[node] = alpha * _dot(phi, nodes[2 * node]) + n_left
                left = left_mass[node] - (before[p_middle] - before[p_low])
                n_left -= p_middle - p_low
                left = min(max(left, n_left), mass - n_right)  # every negative weighs 1 at least
                state += GOLDEN
                if n_right == 0 or (n_left > 0 and unit(mix(state)) * mass < left):
                    left = mass if n_right == 0 else left
                    node, p_high, mass = 2 * node, p_middle, left
                else:
                    left = left if n_left > 0 else 0.0
                    node, low, p_low, mass = 2 * node + 1, middle, p_middle, mass - left
            bucket_mass = 0.0
            for k in range(bucket):
                j = low + k
                if p_low < p_high and own[p_low] == j:
                    p_low += 1
                    K[k] = 0
                elif j == 0 or j >= n:
                    K[k] = 0
                else:
                    K[k] = alpha * _dot(h, items[j]) ** 2 + 1
                bucket_mass += K[k]
            state += GOLDEN
            point = unit(mix(state)) * bucket_mass
            chosen = -1
            for k in range(bucket):
                if K[k] != 0 and (chosen < 0 or point >= 0):
                    chosen = k
                point -= K[k]
            ids[b, s] = low + chosen
            log_q[b, s] = np.log(K[chosen] / total)
