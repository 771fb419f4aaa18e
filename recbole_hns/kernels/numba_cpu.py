"""The kernels in Numba: no (B, N, d) tensor, and every core at work.

Each function splits its rows among threads that run compiled code without the GIL. Results do not
depend on the number of threads: every pair has a random stream of its own, and every row of a
gradient is summed by one thread in the order of the batch.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numba as nb
import numpy as np
import torch

from recbole_hns.kernels import Candidates, DrawTables

# Sums may be reordered (that is what makes them SIMD), but NaN and inf keep their meaning.
jit = nb.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def draw(
    tables: DrawTables, users: torch.Tensor, N: int, block: int, generator: torch.Generator
) -> Candidates:
    """N independent draws from the negatives of each user; see the package's contract."""
    seed = np.uint64(torch.randint(1 << 62, (), generator=generator).item())
    ids = torch.empty((len(users), N), dtype=torch.int32)
    arrays = _arrays(tables)
    if block == 1:
        _split(_draw_rows, len(users), users.numpy(), seed, *arrays, ids.numpy())
        return Candidates(ids)
    shared = torch.empty((-(-len(users) // block), N), dtype=torch.int32)
    _split(
        _draw_blocks,
        len(shared),
        users.numpy(),
        seed,
        *arrays,
        tables.items.numpy(),
        tables.total,
        tables.n_items,
        block,
        shared.numpy(),
        ids.numpy(),
    )
    return Candidates(ids, shared, block)


def score(
    context: torch.Tensor, rows: torch.Tensor, items: torch.Tensor, candidates: Candidates
) -> torch.Tensor:
    """r_cj for every candidate, (B, n)."""
    scores = torch.empty(candidates.ids.shape, dtype=torch.float32)
    tables = (_array(context), rows.numpy(), _array(items), candidates.ids.numpy())
    if candidates.shared is None:
        _split(_score_rows, len(rows), *tables, scores.numpy())
    else:
        shared = candidates.shared.numpy()
        _split(_score_blocks, len(shared), *tables, shared, candidates.block, scores.numpy())
    return scores


def top(
    context: torch.Tensor,
    rows: torch.Tensor,
    items: torch.Tensor,
    candidates: Candidates,
    M: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The M hardest candidates of each pair and their scores, hardest first."""
    ids = torch.empty((len(rows), M), dtype=torch.int32)
    scores = torch.empty((len(rows), M), dtype=torch.float32)
    if candidates.shared is None:
        _split(
            _top_rows,
            len(rows),
            _array(context),
            rows.numpy(),
            _array(items),
            candidates.ids.numpy(),
            ids.numpy(),
            scores.numpy(),
        )
    else:
        every = score(context, rows, items, candidates)
        _split(
            _top_scores,
            len(rows),
            candidates.ids.numpy(),
            every.numpy(),
            ids.numpy(),
            scores.numpy(),
        )
    return ids, scores


def score_backward(
    context: torch.Tensor,
    rows: torch.Tensor,
    items: torch.Tensor,
    parts: list[tuple[Candidates, torch.Tensor]],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of Σ grad · score with respect to both tables."""
    grad_context, grad_items = torch.zeros_like(context), torch.zeros_like(items)
    grad_rows = torch.zeros((len(rows), context.shape[1]), dtype=context.dtype)
    c, r, v = _array(context), rows.numpy(), _array(items)
    for candidates, grad in parts:
        ids, g = candidates.ids.numpy(), grad.contiguous().numpy()
        _split(_backward_rows, len(rows), v, ids, g, grad_rows.numpy())
        if candidates.shared is None:
            _split(_backward_items, len(items), c, r, ids, g, grad_items.numpy())
        else:
            shared = candidates.shared.numpy()
            _split(
                _backward_items_blocks,
                len(items),
                c,
                r,
                ids,
                shared,
                candidates.block,
                g,
                grad_items.numpy(),
            )
    _add_rows(r, grad_rows.numpy(), grad_context.numpy())
    return grad_context, grad_items


def _array(table: torch.Tensor) -> np.ndarray:
    return table.detach().numpy()


# ------------------------------------------------------------------------------------- threads


@lru_cache(maxsize=1)
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="hns")


def _split(function, length: int, *args) -> None:
    """Run ``function(first, last, *args)`` over [0, length), one stretch per torch thread."""
    count = max(1, min(torch.get_num_threads(), length))
    if count == 1:
        function(0, length, *args)
        return
    bounds = [length * t // count for t in range(count + 1)]
    jobs = [
        _threads(torch.get_num_threads()).submit(function, first, last, *args)
        for first, last in zip(bounds[1:-1], bounds[2:])
    ]
    function(bounds[0], bounds[1], *args)
    for job in jobs:
        job.result()


# -------------------------------------------------------------------------------------- drawing


def _arrays(tables: DrawTables):
    start, guide, shift = tables.guide
    return (
        tables.indptr.numpy(),
        tables.before.numpy(),
        tables.removed.numpy(),
        tables.mass.numpy(),
        start,
        guide,
        shift,
    )


@nb.njit(inline="always")
def _mix(x):
    """The output function of SplitMix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@nb.njit(inline="always")
def _below(bits, bound):
    """⌊bits · bound / 2⁶⁴⌋: uniform on [0, bound) up to bound / 2⁶⁴."""
    low = (bits & np.uint64(0xFFFFFFFF)) * (bound & np.uint64(0xFFFFFFFF))
    mid = (bits >> np.uint64(32)) * (bound & np.uint64(0xFFFFFFFF)) + (low >> np.uint64(32))
    high = (bits & np.uint64(0xFFFFFFFF)) * (bound >> np.uint64(32)) + (mid & np.uint64(0xFFFFFFFF))
    return (
        (bits >> np.uint64(32)) * (bound >> np.uint64(32))
        + (mid >> np.uint64(32))
        + (high >> np.uint64(32))
    )


@nb.njit(inline="always")
def _passed(point, before):
    """#{m : before_m ≤ point}: halve without branches, then count what is left by SIMD."""
    first = 0
    length = before.shape[0]
    while length > 16:
        half = length >> 1
        first = first + half if before[first + half - 1] <= point else first
        length -= half
    passed = first
    for m in range(first, first + length):
        passed += 1 if before[m] <= point else 0
    return passed


@nb.njit(inline="always")
def _item_at(point, start, guide, shift):
    """The item whose stretch holds the point; ``guide`` says where to begin looking."""
    if start.shape[0] == 0:
        return point + 1
    item = guide[point >> shift]
    while start[item + 1] <= point:
        item += 1
    return item


@nb.njit(inline="always")
def _draw_one(bits, before, removed, mass, start, guide, shift):
    point = np.int64(_below(bits, np.uint64(mass)))
    passed = _passed(point, before)
    return _item_at(point + removed[passed] - removed[0], start, guide, shift)


@jit
def _draw_rows(first, last, users, seed, indptr, before, removed, mass, start, guide, shift, ids):
    for b in range(first, last):
        u = users[b]
        own = before[indptr[u] : indptr[u + 1]]
        gone = removed[indptr[u] : indptr[u + 1] + 1]
        state = _mix(seed + np.uint64(b) * GOLDEN)
        for n in range(ids.shape[1]):
            state += GOLDEN
            ids[b, n] = _draw_one(_mix(state), own, gone, mass[u], start, guide, shift)


@jit
def _draw_blocks(
    first,
    last,
    users,
    seed,
    indptr,
    before,
    removed,
    mass,
    start,
    guide,
    shift,
    positives,
    total,
    n_items,
    block,
    shared,
    ids,
):
    N = ids.shape[1]
    in_block = np.zeros(n_items, dtype=np.bool_)  # which items this block shares
    for k in range(first, last):
        state = _mix(seed + np.uint64(k) * GOLDEN)
        for n in range(N):
            state += GOLDEN
            point = np.int64(_below(_mix(state), np.uint64(total)))
            shared[k, n] = _item_at(point, start, guide, shift)
            in_block[shared[k, n]] = True
        for b in range(k * block, min((k + 1) * block, users.shape[0])):
            u = users[b]
            own = before[indptr[u] : indptr[u + 1]]
            gone = removed[indptr[u] : indptr[u + 1] + 1]
            ids[b] = shared[k]
            for m in range(indptr[u], indptr[u + 1]):
                if in_block[positives[m]]:
                    # The user's own positive: draw these slots again from the user's negatives.
                    for n in range(N):
                        if shared[k, n] == positives[m]:
                            state += GOLDEN
                            ids[b, n] = _draw_one(
                                _mix(state), own, gone, mass[u], start, guide, shift
                            )
        for n in range(N):
            in_block[shared[k, n]] = False


# -------------------------------------------------------------------------------------- scoring


@nb.njit(inline="always")
def _dot(a, b):
    total = np.float32(0)
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@jit
def _score_rows(first, last, context, rows, items, ids, scores):
    for b in range(first, last):
        c = context[rows[b]]
        for n in range(ids.shape[1]):
            scores[b, n] = _dot(c, items[ids[b, n]])


@jit
def _score_blocks(first, last, context, rows, items, ids, shared, block, scores):
    N, d = shared.shape[1], items.shape[1]
    columns = np.empty((d, N), dtype=np.float32)  # the block's items, transposed
    for k in range(first, last):
        for n in range(N):
            v = items[shared[k, n]]
            for i in range(d):
                columns[i, n] = v[i]
        for b in range(k * block, min((k + 1) * block, rows.shape[0])):
            c, r = context[rows[b]], scores[b]
            r[:] = 0
            for i in range(d):
                x, column = c[i], columns[i]
                for n in range(N):
                    r[n] += x * column[n]
            for n in range(N):
                if ids[b, n] != shared[k, n]:
                    r[n] = _dot(c, items[ids[b, n]])


@nb.njit(inline="always")
def _keep(s, j, best, best_ids):
    """Insert (s, j) into the descending list ``best``; NaN counts as hardest, so that it shows."""
    m = best.shape[0] - 1
    while m > 0 and not (best[m - 1] >= s):
        best[m], best_ids[m] = best[m - 1], best_ids[m - 1]
        m -= 1
    best[m], best_ids[m] = s, j


@jit
def _top_rows(first, last, context, rows, items, ids, top_ids, top_scores):
    M = top_ids.shape[1]
    for b in range(first, last):
        c, best, best_ids = context[rows[b]], top_scores[b], top_ids[b]
        best[:] = -np.inf
        best_ids[:] = ids[b, 0]
        for n in range(ids.shape[1]):
            j = ids[b, n]
            s = _dot(c, items[j])
            if not (s <= best[M - 1]):
                _keep(s, j, best, best_ids)


@jit
def _top_scores(first, last, ids, scores, top_ids, top_scores):
    M = top_ids.shape[1]
    for b in range(first, last):
        best, best_ids = top_scores[b], top_ids[b]
        best[:] = -np.inf
        best_ids[:] = ids[b, 0]
        for n in range(ids.shape[1]):
            s = scores[b, n]
            if not (s <= best[M - 1]):
                _keep(s, ids[b, n], best, best_ids)


# ------------------------------------------------------------------------------------- gradients


@jit
def _backward_rows(first, last, items, ids, grad, grad_rows):
    d = items.shape[1]
    for b in range(first, last):
        out = grad_rows[b]
        for n in range(ids.shape[1]):
            g, v = grad[b, n], items[ids[b, n]]
            for i in range(d):
                out[i] += g * v[i]


@jit
def _backward_items(first, last, context, rows, ids, grad, grad_items):
    """Rows first..last of ``grad_items``: a thread owns items, so no two write to the same row."""
    N, d = ids.shape[1], context.shape[1]
    mine = np.empty(N, dtype=np.int64)
    for b in range(ids.shape[0]):
        count = 0
        for n in range(N):  # no branch: which candidates are mine cannot be predicted
            mine[count] = n
            count += 1 if first <= ids[b, n] < last else 0
        c = context[rows[b]]
        for m in range(count):
            n = mine[m]
            g, out = grad[b, n], grad_items[ids[b, n]]
            for i in range(d):
                out[i] += g * c[i]


@jit
def _backward_items_blocks(first, last, context, rows, ids, shared, block, grad, grad_items):
    """As :func:`_backward_items`, but a block's pairs are summed before the row is touched."""
    N, d = ids.shape[1], context.shape[1]
    for k in range(shared.shape[0]):
        begin, end = k * block, min((k + 1) * block, rows.shape[0])
        for n in range(N):
            j = shared[k, n]
            if first <= j < last:
                out = grad_items[j]
                for b in range(begin, end):
                    if ids[b, n] == j:
                        g, c = grad[b, n], context[rows[b]]
                        for i in range(d):
                            out[i] += g * c[i]
        for b in range(begin, end):
            for n in range(N):
                j = ids[b, n]
                if j != shared[k, n] and first <= j < last:
                    g, c, out = grad[b, n], context[rows[b]], grad_items[j]
                    for i in range(d):
                        out[i] += g * c[i]


@jit
def _add_rows(rows, grad_rows, grad_context):
    for b in range(rows.shape[0]):
        out = grad_context[rows[b]]
        for i in range(out.shape[0]):
            out[i] += grad_rows[b, i]
