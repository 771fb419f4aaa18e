"""The kernels in Numba: no (B, N, d) tensor, and every core at work.

Each function splits its rows among threads that run compiled code without the GIL. Results do not
depend on the number of threads: every pair has a random stream of its own, and every row of a
gradient is summed by one thread in the order of the batch.
"""

from __future__ import annotations

import numba as nb
import numpy as np
import torch

from recbole_hns.kernels import Candidates, DrawTables, SharedCandidates, blocks
from recbole_hns.kernels.numba_all import bpr_over_all  # noqa: F401
from recbole_hns.kernels.numba_base import GOLDEN, array, below, jit, mix, split
from recbole_hns.kernels.numba_rows import RowSet
from recbole_hns.kernels.numba_tree import draw_kernel  # noqa: F401

FEW_DRAWS = 8
AT_ONCE = 16  # draws of one pair that first_above has under way


def draw(
    tables: DrawTables, users: torch.Tensor, N: int, block: int, generator: torch.Generator
) -> Candidates:
    """N independent draws from the negatives of each user; see the package's contract."""
    seed = np.uint64(torch.randint(1 << 62, (), generator=generator).item())
    ids = torch.empty((len(users), N), dtype=torch.int32)
    inputs = (users.numpy(), seed, *_arrays(tables))
    if block == 1:
        split((_draw_rows, len(users), *inputs, ids.numpy()), work=ids.numel())
        return Candidates(ids)
    shared = torch.empty((-(-len(users) // block), N), dtype=torch.int32)
    replaced = np.zeros(len(users), dtype=np.int64)
    out = (shared.numpy(), ids.numpy(), replaced)
    split((_draw_blocks, len(shared), *inputs, block, *out), work=ids.numel())
    pair, slot = _find_replaced(ids.numpy(), shared.numpy(), block, replaced)
    return Candidates(
        ids, SharedCandidates(shared, block, torch.from_numpy(pair), torch.from_numpy(slot))
    )


def first_above(
    tables: DrawTables,
    users: torch.Tensor,
    context: torch.Tensor,
    rows: torch.Tensor,
    items: torch.Tensor,
    bar: torch.Tensor,
    max_trials: int,
    generator: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw for each pair until a score is above its bar; see the package's contract."""
    seed = np.uint64(torch.randint(1 << 62, (), generator=generator).item())
    ids = torch.empty((len(users), 1), dtype=torch.int32)
    scores = torch.empty((len(users), 1), dtype=torch.float32)
    trials = torch.empty(len(users), dtype=torch.int64)
    inputs = (users.numpy(), seed, *_arrays(tables), array(context), rows.numpy(), array(items))
    out = (ids.numpy(), scores.numpy(), trials.numpy())
    split((_first_above_rows, len(users), *inputs, bar.numpy(), max_trials, *out), work=4 * len(users))
    return ids, scores, trials


def score(
    context: torch.Tensor, rows: torch.Tensor, items: torch.Tensor, candidates: Candidates
) -> torch.Tensor:
    """r_cj for every candidate, (B, n)."""
    if candidates.shared is not None:
        return blocks.score(context, rows, items, candidates)
    scores = torch.empty(candidates.ids.shape, dtype=torch.float32)
    tables = (array(context), rows.numpy(), array(items))
    ids = candidates.ids.numpy()
    split((_score_rows, len(rows), *tables, ids, scores.numpy()), work=ids.size)
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
    drawn, out = candidates.ids.numpy(), (ids.numpy(), scores.numpy())
    if candidates.shared is None:
        tables = (array(context), rows.numpy(), array(items))
        split((_top_rows, len(rows), *tables, drawn, *out), work=drawn.size)
    else:
        every = blocks.score(context, rows, items, candidates).numpy()
        split((_top_scores, len(rows), drawn, every, *out), work=drawn.size)
    return ids, scores


def score_backward(
    context: torch.Tensor,
    rows: torch.Tensor,
    items: torch.Tensor,
    parts: list[tuple[Candidates, torch.Tensor]],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of Σ grad · score with respect to both tables."""
    grads = torch.empty_like(context), torch.empty_like(items)
    places = [blocks.gradient_rows(candidates) for candidates, _ in parts]
    _gradients(context, rows, items, parts, rows, places, *grads)
    return grads


def score_backward_rows(
    context: torch.Tensor,
    rows: torch.Tensor,
    items: torch.Tensor,
    parts: list[tuple[Candidates, torch.Tensor]],
) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """The same gradients of the rows that are touched alone; see the package's contract."""
    used = [blocks.gradient_rows(candidates) for candidates, _ in parts]
    of_context = RowSet(len(context), [rows])
    of_items = RowSet(len(items), [ids for part in used for ids in part])
    places = [tuple(of_items.places(ids) for ids in part) for part in used]
    grads = [torch.empty((len(s.rows), context.shape[1])) for s in (of_context, of_items)]
    _gradients(context, rows, items, parts, of_context.places(rows), places, *grads)
    return (of_context.rows, grads[0]), (of_items.rows, grads[1])


def _gradients(context, rows, items, parts, context_places, item_places, grad_context, grad_items):
    """Write a pair's gradients into the rows that ``context_places`` and ``item_places`` name."""
    c, r, v = array(context), rows.numpy(), array(items)
    out_c, out_v = grad_context.numpy(), grad_items.numpy()
    jobs, work = [(_clear, len(out_c), out_c), (_clear, len(out_v), out_v)], len(out_c) + len(out_v)
    for (candidates, grad), places in zip(parts, item_places):
        if candidates.shared is None:
            ids, g = candidates.ids.numpy(), grad.contiguous().numpy()
            jobs.append((_backward_context, len(out_c), context_places.numpy(), v, ids, g, out_c))
            jobs.append((_backward_items, len(out_v), c, r, places[0].numpy(), g, out_v))
            work += ids.size
    split(*jobs, work=work)
    for (candidates, grad), places in zip(parts, item_places):
        if candidates.shared is not None:
            targets = (context_places, places, grad_context, grad_items)
            blocks.score_backward(context, rows, items, candidates, grad, add_rows, *targets)


def add_rows(table: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> None:
    """table[rows[k]] += values[k] for every k, repeats included."""
    split((_add_rows, len(table), rows.numpy(), values.numpy(), table.numpy()), work=len(rows))


def negatives_above(
    scores: torch.Tensor, first: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Negatives that score above each positive, ties one half, and items that take part per user."""
    above = torch.empty(len(values), dtype=torch.float64)
    n_items = torch.empty(len(scores), dtype=torch.int64)
    arrays = (array(scores), first.numpy(), values.numpy(), above.numpy(), n_items.numpy())
    passes = len(values) + len(scores)  # over a row; each as much as scores.shape[1] / 16 short vectors
    split((_negatives_above, passes, *arrays), work=passes * scores.shape[1] // 16)
    return above, n_items


# -------------------------------------------------------------------------------------- drawing


def _arrays(tables: DrawTables):
    """The tables in the order in which the kernels take them."""
    tensors = (tables.indptr, tables.items, tables.before, tables.removed, tables.mass)
    return (*(t.numpy() for t in tensors), *tables.guide, tables.total, tables.n_items)


@nb.njit(inline="always")
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
def _item_at(point, start, guide, shift):
    """The item whose stretch holds the point; ``guide`` says where to begin looking.

    ``start`` is None where all weights are 1: Numba then compiles this branch and no other.
    """
    if start is None:
        return point + 1
    item = guide[point >> shift]
    while start[item + 1] <= point:
        item += 1
    return item


@jit
def _draw_any(state, start, guide, shift, total):
    """An item from the whole line."""
    point = np.int64(below(mix(state), np.uint64(total)))
    return _item_at(point, start, guide, shift)


@jit
def _draw_own(state, u, indptr, before, removed, mass, start, guide, shift):
    """An item from the user's own line."""
    point = np.int64(below(mix(state), np.uint64(mass[u])))
    first = indptr[u]
    passed = _passed(point, before[first : indptr[u + 1]])
    point += removed[first + passed] - removed[first]
    return _item_at(point, start, guide, shift)


@jit
def _draw_rows(
    first,
    last,
    users,
    seed,
    indptr,
    positives,
    before,
    removed,
    mass,
    start,
    guide,
    shift,
    total,
    n_items,
    ids,
):
    """From the whole line; what hits a positive of the user is drawn again, from the user's own line.

    That is the user's distribution exactly, in at most two draws: with W the line's length and W₋ the
    user's, w/W + (1 − W₋/W) · w/W₋ = w/W₋.
    """
    N = ids.shape[1]
    taken = np.zeros(n_items, dtype=np.bool_)
    for b in range(first, last):
        u = users[b]
        state = mix(seed + np.uint64(b) * GOLDEN)
        state_own = mix(state)
        if N < FEW_DRAWS:  # not worth a list of what is taken
            for n in range(N):
                own = state_own + np.uint64(n) * GOLDEN
                ids[b, n] = _draw_own(own, u, indptr, before, removed, mass, start, guide, shift)
            continue
        for m in range(indptr[u], indptr[u + 1]):
            taken[positives[m]] = True
        for n in range(N):  # by itself, so that it becomes SIMD
            ids[b, n] = _draw_any(state + np.uint64(n) * GOLDEN, start, guide, shift, total)
        for n in range(N):
            if taken[ids[b, n]]:
                own = state_own + np.uint64(n) * GOLDEN
                ids[b, n] = _draw_own(own, u, indptr, before, removed, mass, start, guide, shift)
        for m in range(indptr[u], indptr[u + 1]):
            taken[positives[m]] = False


@jit
def _draw_blocks(
    first,
    last,
    users,
    seed,
    indptr,
    positives,
    before,
    removed,
    mass,
    start,
    guide,
    shift,
    total,
    n_items,
    block,
    shared,
    ids,
    replaced,
):
    """The same for blocks of pairs, which have the draws from the whole line in common."""
    N = ids.shape[1]
    in_block = np.zeros(n_items, dtype=np.bool_)
    for k in range(first, last):
        state = mix(seed + np.uint64(k) * GOLDEN)
        for n in range(N):
            state += GOLDEN
            shared[k, n] = _draw_any(state, start, guide, shift, total)
            in_block[shared[k, n]] = True
        for b in range(k * block, min((k + 1) * block, users.shape[0])):
            for n in range(N):
                ids[b, n] = shared[k, n]
            u = users[b]
            for m in range(indptr[u], indptr[u + 1]):
                if in_block[positives[m]]:
                    for n in range(N):
                        if shared[k, n] == positives[m]:
                            replaced[b] += 1
                            state += GOLDEN
                            ids[b, n] = _draw_own(
                                state, u, indptr, before, removed, mass, start, guide, shift
                            )
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


# -------------------------------------------------------------------------------------- scoring


@nb.njit(inline="always")
def _score_row(c, items, ids, scores):
    """⟨c, items[j]⟩ for one row of candidates, four at a time to share the loop's cost."""
    N, d = ids.shape[0], c.shape[0]
    whole = N - N % 4
    for n in range(0, whole, 4):
        v0, v1 = items[ids[n]], items[ids[n + 1]]
        v2, v3 = items[ids[n + 2]], items[ids[n + 3]]
        r0 = r1 = r2 = r3 = np.float32(0)
        for i in range(d):
            r0 += c[i] * v0[i]
            r1 += c[i] * v1[i]
            r2 += c[i] * v2[i]
            r3 += c[i] * v3[i]
        scores[n], scores[n + 1], scores[n + 2], scores[n + 3] = r0, r1, r2, r3
    for n in range(whole, N):
        v, r = items[ids[n]], np.float32(0)
        for i in range(d):
            r += c[i] * v[i]
        scores[n] = r


@jit
def _score_rows(first, last, context, rows, items, ids, scores):
    for b in range(first, last):
        _score_row(context[rows[b]], items, ids[b], scores[b])


@nb.njit(inline="always")
def _top_of(scores, ids, best, places, top_scores, top_ids):
    """The highest of one row, descending; NaN counts as hardest, so that it shows in the loss."""
    M = best.shape[0]
    best[:] = -np.inf
    places[:] = 0
    lowest = np.float32(-np.inf)
    for n in range(scores.shape[0]):
        r = scores[n]
        if not (r <= lowest):
            m = M - 1
            while m > 0 and (best[m - 1] < r or r != r):
                best[m], places[m] = best[m - 1], places[m - 1]
                m -= 1
            best[m], places[m] = r, n
            lowest = best[M - 1]
    for m in range(M):
        top_scores[m], top_ids[m] = best[m], ids[places[m]]


@jit
def _top_rows(first, last, context, rows, items, ids, top_ids, top_scores):
    N, M = ids.shape[1], top_ids.shape[1]
    scores = np.empty(N, dtype=np.float32)
    best, places = np.empty(M, dtype=np.float32), np.empty(M, dtype=np.int64)
    for b in range(first, last):
        # Scores first: a loop with nothing to mispredict keeps many items under way at once.
        _score_row(context[rows[b]], items, ids[b], scores)
        _top_of(scores, ids[b], best, places, top_scores[b], top_ids[b])


@jit
def _top_scores(first, last, ids, scores, top_ids, top_scores):
    M = top_ids.shape[1]
    best, places = np.empty(M, dtype=np.float32), np.empty(M, dtype=np.int64)
    for b in range(first, last):
        _top_of(scores[b], ids[b], best, places, top_scores[b], top_ids[b])


@jit
def _first_above_rows(
    first,
    last,
    users,
    seed,
    indptr,
    positives,
    before,
    removed,
    mass,
    start,
    guide,
    shift,
    total,
    n_items,
    context,
    rows,
    items,
    bar,
    max_trials,
    ids,
    scores,
    trials,
):
    some, their_scores = np.empty(AT_ONCE, dtype=np.int32), np.empty(AT_ONCE, dtype=np.float32)
    taken = np.zeros(n_items, dtype=np.bool_)
    for b in range(first, last):
        u, c = users[b], context[rows[b]]
        state = mix(seed + np.uint64(b) * GOLDEN)
        state_own = mix(state)
        trials[b] = 0
        marked = False
        t = 0
        while t < max_trials and trials[b] == 0:
            count = min(1 if t < FEW_DRAWS else AT_ONCE, max_trials - t)
            if t >= FEW_DRAWS and not marked:  # only now worth a list of what is taken
                marked = True
                for m in range(indptr[u], indptr[u + 1]):
                    taken[positives[m]] = True
            for k in range(count):
                j = _draw_any(state + np.uint64(t + k) * GOLDEN, start, guide, shift, total)
                if not marked or taken[j]:
                    own = state_own + np.uint64(t + k) * GOLDEN
                    j = _draw_own(own, u, indptr, before, removed, mass, start, guide, shift)
                some[k] = j
            _score_row(c, items, some[:count], their_scores)
            for k in range(count):
                ids[b, 0], scores[b, 0] = some[k], their_scores[k]
                if not (scores[b, 0] <= bar[b]):  # NaN counts as above, so that it shows in the loss
                    trials[b] = t + k + 1
                    break
            t += count
        if marked:
            for m in range(indptr[u], indptr[u + 1]):
                taken[positives[m]] = False


# ------------------------------------------------------------------------------------- gradients


@jit
def _clear(first, last, table):
    table[first:last] = 0


@jit
def _backward_context(first, last, places, items, ids, grad, grad_context):
    """Rows first..last of ``grad_context``: a thread owns rows, so no two write to the same one."""
    N, d = ids.shape[1], items.shape[1]
    total = np.empty(d, dtype=np.float32)
    for b in range(ids.shape[0]):
        if first <= places[b] < last:
            total[:] = 0
            whole = N - N % 4
            for n in range(0, whole, 4):
                v0, v1 = items[ids[b, n]], items[ids[b, n + 1]]
                v2, v3 = items[ids[b, n + 2]], items[ids[b, n + 3]]
                g0, g1, g2, g3 = grad[b, n], grad[b, n + 1], grad[b, n + 2], grad[b, n + 3]
                for i in range(d):
                    total[i] += (g0 * v0[i] + g1 * v1[i]) + (g2 * v2[i] + g3 * v3[i])
            for n in range(whole, N):
                g, v = grad[b, n], items[ids[b, n]]
                for i in range(d):
                    total[i] += g * v[i]
            out = grad_context[places[b]]
            for i in range(d):
                out[i] += total[i]


@jit
def _backward_items(first, last, context, rows, places, grad, grad_items):
    """Rows first..last of ``grad_items``, likewise."""
    N, d = places.shape[1], context.shape[1]
    own_places, own_grad = np.empty(N, dtype=np.int64), np.empty(N, dtype=np.float32)
    for b in range(places.shape[0]):
        count = 0
        for n in range(N):  # no branch: which candidates are mine cannot be predicted
            own_places[count], own_grad[count] = places[b, n], grad[b, n]
            count += 1 if first <= places[b, n] < last else 0
        c = context[rows[b]]
        for m in range(count):
            g, out = own_grad[m], grad_items[own_places[m]]
            for i in range(d):
                out[i] += g * c[i]


@jit
def _add_rows(first, last, rows, values, table):
    for k in range(rows.shape[0]):
        if first <= rows[k] < last:
            out = table[rows[k]]
            for i in range(out.shape[0]):
                out[i] += values[k, i]


# -------------------------------------------------------------------------------------- counting


@jit
def _negatives_above(first_pass, last_pass, scores, first, values, above, n_items):
    """The users whose passes begin in the stretch: threads share passes evenly, and no user."""
    one, zero = np.float32(1), np.float32(0)  # SIMD counts floats at twice the speed of whole numbers
    for u in range(scores.shape[0]):
        if not first_pass <= first[u] + u < last_pass:
            continue
        row = scores[u]
        finite, proper = zero, zero
        for i in range(row.shape[0]):
            finite += one if row[i] > -np.inf else zero
            proper += one if row[i] >= -np.inf else zero  # all but NaN
        n_items[u] = np.int64(finite) if proper == row.shape[0] else -1
        for p in range(first[u], first[u + 1]):
            value = values[p]
            greater, at_least = zero, zero
            for i in range(row.shape[0]):
                greater += one if row[i] > value else zero
                at_least += one if row[i] >= value else zero
            for q in range(first[u], first[u + 1]):  # the user's positives are no negatives
                greater -= one if values[q] > value else zero
                at_least -= one if values[q] >= value else zero
            above[p] = (greater + at_least) / 2
