"""Gradients of scores: a thread owns rows of a table, so that no two write to the same one."""

from __future__ import annotations

import numpy as np
import torch

from recbole_hns.kernels import blocks
from recbole_hns.kernels.blocks import Gradients
from recbole_hns.kernels.contract import Part, RowGradient
from recbole_hns.kernels.numba.base import Job, arrays_of, jit, split
from recbole_hns.kernels.numba.rows import RowSet
from recbole_hns.kernels.types import Vectors


def score_backward(v: Vectors, parts: list[Part]) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of Σ grad · score with respect to both tables."""
    out = Gradients(torch.empty_like(v.context), torch.empty_like(v.items), v.rows)
    _fill(v, parts, [blocks.gradient_rows(candidates) for candidates, _ in parts], out)
    return out.context, out.items


def score_backward_rows(v: Vectors, parts: list[Part]) -> tuple[RowGradient, RowGradient]:
    """The same gradients of the rows that are touched alone; see the contract."""
    used = [blocks.gradient_rows(candidates) for candidates, _ in parts]
    of_context = RowSet(len(v.context), [v.rows])
    of_items = RowSet(len(v.items), [ids for part in used for ids in part])
    d = v.items.shape[1]
    out = Gradients(
        torch.empty((len(of_context.rows), d)),
        torch.empty((len(of_items.rows), d)),
        of_context.places(v.rows),
    )
    _fill(v, parts, [tuple(of_items.places(ids) for ids in part) for part in used], out)
    return (of_context.rows, out.context), (of_items.rows, out.items)


def _fill(
    v: Vectors, parts: list[Part], item_places: list[tuple[torch.Tensor, ...]], out: Gradients
) -> None:
    """Write the pairs' gradients to the rows ``out.places`` and ``item_places`` of the two tables."""
    vectors, places = arrays_of(v), out.places.numpy()
    of_context, of_items = out.context.numpy(), out.items.numpy()
    R, S = len(of_context), len(of_items)
    jobs, work = [Job(_clear, R, (of_context,)), Job(_clear, S, (of_items,))], R + S
    for (candidates, grad), (ids_places, *_) in zip(parts, item_places):
        if candidates.shared is None:
            ids, g = candidates.ids.numpy(), grad.contiguous().numpy()
            jobs.append(Job(_backward_context, R, (places, vectors.items, ids, g, of_context)))
            jobs.append(Job(_backward_items, S, (vectors, ids_places.numpy(), g, of_items)))
            work += ids.size
    split(*jobs, work=work)
    for (candidates, grad), of_part in zip(parts, item_places):
        if candidates.shared is not None:
            blocks.score_backward(v, candidates.ids, candidates.shared, grad, of_part, out, add_rows)


def add_rows(table: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> None:
    """table[rows[k]] += values[k] for every k, repeats included."""
    arrays = (rows.numpy(), values.numpy(), table.numpy())
    split(Job(_add_rows, len(table), arrays), work=len(rows))


@jit
def _clear(first, last, table):
    table[first:last] = 0


@jit
def _backward_context(first, last, places, items, ids, grad, grad_context):
    """Rows first..last of ``grad_context``."""
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
def _backward_items(first, last, v, places, grad, grad_items):
    """Rows first..last of ``grad_items``."""
    N, d = places.shape[1], v.context.shape[1]
    own_places, own_grad = np.empty(N, dtype=np.int64), np.empty(N, dtype=np.float32)
    for b in range(places.shape[0]):
        count = 0
        for n in range(N):  # no branch: which candidates are mine cannot be predicted
            own_places[count], own_grad[count] = places[b, n], grad[b, n]
            count += 1 if first <= places[b, n] < last else 0
        c = v.context[v.rows[b]]
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
