"""Kernel-based sampling in Numba: every draw goes down the tree by itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from recbole_hns.kernels.line import Line
from recbole_hns.kernels.numba.base import (
    GOLDEN,
    Floats,
    Ids,
    Ints,
    Job,
    array,
    arrays_of,
    jit,
    mix,
    new_seed,
    split,
    unit,
)
from recbole_hns.kernels.numba.drawing import arrays_of_line
from recbole_hns.kernels.tree import KernelTree
from recbole_hns.kernels.types import Candidates, Vectors


class TreeArrays(NamedTuple):
    """:class:`~recbole_hns.kernels.KernelTree` as compiled code takes it."""

    nodes: Floats
    bucket: int
    alpha: np.float32


class Pair(NamedTuple):
    """What all draws of one pair have in common."""

    b: int
    h: Floats  # (d,) the vector of its context
    phi: Floats  # (D,) products of the vector's entries
    own: Ids  # the user's positives
    before: npt.NDArray[np.float64]  # running sum of the positives' K


class LeftMasses(NamedTuple):
    """For each node the mass of its left child, by the pair's context, positives not left out."""

    known: Ints  # (L,) the pair that a node's mass was computed for
    mass: npt.NDArray[np.float64]  # (L,)


class Bucket(NamedTuple):
    """A leaf of the tree."""

    low: int  # its first id
    p_low: int  # the user's positives in it are own[p_low:p_high]
    p_high: int


def draw_kernel(
    tree: KernelTree,
    line: Line,
    users: torch.Tensor,
    v: Vectors,
    N: int,
    generator: torch.Generator,
) -> Candidates:
    """N draws from q(j | c) ∝ α⟨h, w_j⟩² + 1 over the user's negatives, with log q."""
    ids = torch.empty((len(users), N), dtype=torch.int32)
    log_q = torch.empty((len(users), N), dtype=torch.float32)
    inputs = (users.numpy(), new_seed(generator), arrays_of_line(line), arrays_of(v))
    in_tree = TreeArrays(array(tree.nodes), tree.bucket, np.float32(tree.alpha))
    out = (ids.numpy(), log_q.numpy())
    split(Job(_draw_rows, len(users), (*inputs, in_tree, *out)), work=ids.numel() * tree.bucket)
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
def _draw_rows(first, last, users, seed, line, v, tree, ids, log_q):
    n, d = v.items.shape
    L, D = tree.nodes.shape[0] // 2, tree.nodes.shape[1]
    phi = np.empty(D, dtype=np.float32)
    K = np.empty(tree.bucket, dtype=np.float64)
    before = np.empty(1 + np.diff(line.indptr).max(), dtype=np.float64)
    left = LeftMasses(np.full(L, -1, dtype=np.int64), np.empty(L, dtype=np.float64))
    for b in range(first, last):
        h = v.context[v.rows[b]]
        k = 0
        for i in range(d):
            for j in range(i, d):
                phi[k] = h[i] * h[j]
                k += 1
        own = line.positives[line.indptr[users[b]] : line.indptr[users[b] + 1]]
        before[0] = 0
        for m in range(own.shape[0]):
            before[m + 1] = before[m] + tree.alpha * _dot(h, v.items[own[m]]) ** 2 + 1
        n_items = n - line.first
        total = tree.alpha * _dot(phi, tree.nodes[1]) + n_items - before[own.shape[0]]
        total = max(total, np.float64(n_items - own.shape[0]))  # every negative weighs 1 at least
        pair = Pair(b, h, phi, own, before)
        state = mix(seed + np.uint64(b) * GOLDEN)
        for s in range(ids.shape[1]):
            state, bucket = _descend(state, total, pair, tree, left, line.first, n)
            state += GOLDEN
            share = unit(mix(state))
            j, weight = _pick(share, bucket, pair, v.items, tree.alpha, line.first, K)
            ids[b, s] = j
            log_q[b, s] = np.log(weight / total)


@jit
def _descend(state, mass, pair, tree, left_mass, first, n):
    """From the root to a bucket, with the state after it."""
    L = tree.nodes.shape[0] // 2
    node, low, width = 1, 0, L * tree.bucket
    p_low, p_high = 0, pair.own.shape[0]  # the positives below the node
    while node < L:
        width //= 2
        middle = low + width
        p_middle = _below_id(pair.own, p_low, p_high, middle)
        n_left = max(0, min(middle, n) - max(low, first))
        n_right = max(0, min(middle + width, n) - max(middle, first)) - (p_high - p_middle)
        if left_mass.known[node] != pair.b:
            left_mass.known[node] = pair.b
            left_mass.mass[node] = tree.alpha * _dot(pair.phi, tree.nodes[2 * node]) + n_left
        left = left_mass.mass[node] - (pair.before[p_middle] - pair.before[p_low])
        n_left -= p_middle - p_low
        left = min(max(left, n_left), mass - n_right)  # every negative weighs 1 at least
        state += GOLDEN
        if n_right == 0 or (n_left > 0 and unit(mix(state)) * mass < left):
            left = mass if n_right == 0 else left
            node, p_high, mass = 2 * node, p_middle, left
        else:
            left = left if n_left > 0 else 0.0
            node, low, p_low, mass = 2 * node + 1, middle, p_middle, mass - left
    return state, Bucket(low, p_low, p_high)


@jit
def _pick(share, bucket, pair, items, alpha, first, K):
    """The negative at this share of the bucket's mass, and what it weighs; K is for scratch."""
    bucket_mass, t = 0.0, bucket.p_low
    for k in range(K.shape[0]):
        j = bucket.low + k
        if t < bucket.p_high and pair.own[t] == j:
            t += 1
            K[k] = 0
        elif j < first or j >= items.shape[0]:
            K[k] = 0
        else:
            K[k] = alpha * _dot(pair.h, items[j]) ** 2 + 1
        bucket_mass += K[k]
    point = share * bucket_mass
    chosen = -1
    for k in range(K.shape[0]):
        if K[k] != 0 and (chosen < 0 or point >= 0):
            chosen = k
        point -= K[k]
    return bucket.low + chosen, K[chosen]
