"""Draws from a line, each pair's from a random stream of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from recbole_hns.kernels.line import Line
from recbole_hns.kernels.numba.base import (
    GOLDEN,
    Ids,
    Ints,
    Job,
    below,
    inline,
    jit,
    mix,
    new_seed,
    split,
)
from recbole_hns.kernels.types import Candidates, SharedCandidates

FEW_DRAWS = 8


class LineArrays(NamedTuple):
    """:class:`~recbole_hns.kernels.Line` as compiled code takes it."""

    indptr: Ints
    positives: Ids
    before: Ids | Ints
    removed: Ints
    mass: Ints
    start: Ints | None
    guide: Ints | None
    shift: int
    total: int
    first: int
    n_items: int


def arrays_of_line(line: Line) -> LineArrays:
    """The same memory, as arrays, with the guide into a weighted line."""
    guide, shift = line.guide
    return LineArrays(
        indptr=line.indptr.numpy(),
        positives=line.items.numpy(),
        before=line.before.numpy(),
        removed=line.removed.numpy(),
        mass=line.mass.numpy(),
        start=None if line.start is None else line.start.numpy(),
        guide=guide,
        shift=shift,
        total=line.total,
        first=line.first,
        n_items=line.n_items,
    )


def draw(line: Line, users: torch.Tensor, N: int, block: int, generator: torch.Generator) -> Candidates:
    """N independent draws from the negatives of each user; see the contract."""
    ids = torch.empty((len(users), N), dtype=torch.int32)
    inputs = (users.numpy(), new_seed(generator), arrays_of_line(line))
    if block == 1:
        split(Job(_draw_rows, len(users), (*inputs, ids.numpy())), work=ids.numel())
        return Candidates(ids)
    shared = torch.empty((-(-len(users) // block), N), dtype=torch.int32)
    replaced = np.zeros(len(users), dtype=np.int64)
    out = (shared.numpy(), ids.numpy(), replaced)
    split(Job(_draw_blocks, len(shared), (*inputs, block, *out)), work=ids.numel())
    pair, slot = _find_replaced(ids.numpy(), shared.numpy(), block, replaced)
    return Candidates(
        ids, SharedCandidates(shared, block, torch.from_numpy(pair), torch.from_numpy(slot))
    )


@inline
def _passed(point, before):
    """#{m : before_m ≤ point} for one point, by bisection."""
    low, high = 0, before.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if before[middle] <= point:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _item_at(point, start, guide, shift, first):
    """The item whose stretch holds the point; ``guide`` says where to begin looking.

    ``start`` is None where all weights are 1: Numba then compiles this branch and no other. It does so
    for an argument, and would not for ``line.start``.
    """
    if start is None:
        return point + first
    item = guide[point >> shift]
    while start[item + 1] <= point:
        item += 1
    return item


@jit
def draw_any(state, line):
    """An item from the whole line."""
    point = np.int64(below(mix(state), np.uint64(line.total)))
    return _item_at(point, line.start, line.guide, line.shift, line.first)


@jit
def draw_own(state, u, line):
    """An item from the user's own line."""
    point = np.int64(below(mix(state), np.uint64(line.mass[u])))
    row = line.indptr[u]
    passed = _passed(point, line.before[row : line.indptr[u + 1]])
    point += line.removed[row + passed] - line.removed[row]
    return _item_at(point, line.start, line.guide, line.shift, line.first)


@jit
def mark(taken, u, line, value):
    """Write down, or wipe out, which items a user took."""
    for m in range(line.indptr[u], line.indptr[u + 1]):
        taken[line.positives[m]] = value


@jit
def _draw_rows(first, last, users, seed, line, ids):
    """From the whole line; what hits a positive of the user is drawn again, from the user's own line.

    That is the user's distribution exactly, in at most two draws: with W the line's length and W₋ the
    user's, w/W + (1 − W₋/W) · w/W₋ = w/W₋.
    """
    N = ids.shape[1]
    taken = np.zeros(line.n_items, dtype=np.bool_)
    for b in range(first, last):
        u = users[b]
        state = mix(seed + np.uint64(b) * GOLDEN)
        state_own = mix(state)
        if N < FEW_DRAWS:  # not worth a list of what is taken
            for n in range(N):
                ids[b, n] = draw_own(state_own + np.uint64(n) * GOLDEN, u, line)
            continue
        mark(taken, u, line, True)
        for n in range(N):  # by itself, so that it becomes SIMD
            ids[b, n] = draw_any(state + np.uint64(n) * GOLDEN, line)
        for n in range(N):
            if taken[ids[b, n]]:
                ids[b, n] = draw_own(state_own + np.uint64(n) * GOLDEN, u, line)
        mark(taken, u, line, False)


@jit
def _draw_blocks(first, last, users, seed, line, block, shared, ids, replaced):
    """The same for blocks of pairs, which have the draws from the whole line in common."""
    N = ids.shape[1]
    in_block = np.zeros(line.n_items, dtype=np.bool_)
    for k in range(first, last):
        state = mix(seed + np.uint64(k) * GOLDEN)
        for n in range(N):
            state += GOLDEN
            shared[k, n] = draw_any(state, line)
            in_block[shared[k, n]] = True
        for b in range(k * block, min((k + 1) * block, users.shape[0])):
            for n in range(N):
                ids[b, n] = shared[k, n]
            u = users[b]
            for m in range(line.indptr[u], line.indptr[u + 1]):
                if in_block[line.positives[m]]:
                    for n in range(N):
                        if shared[k, n] == line.positives[m]:
                            replaced[b] += 1
                            state += GOLDEN
                            ids[b, n] = draw_own(state, u, line)
        for n in range(N):
            in_block[shared[k, n]] = False


@jit
def _find_replaced(ids, shared, block, replaced):
    """(pair, slot) of the candidates that differ from what their block shares."""
    total = replaced.sum()
    pair, slot = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    found = 0
    for b in range(ids.shape[0]):
        if replaced[b] > 0:
            for n in range(ids.shape[1]):
                if ids[b, n] != shared[b // block, n]:
                    pair[found], slot[found] = b, n
                    found += 1
    return pair, slot
