"""Rows of a large table that a step touches: found, numbered and updated at a cost of their own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from recbole_hns.kernels.numba.base import Floats, Job, array, inline, jit, split


class RowSet:
    """The rows that some tensors name, ascending, and each one's place among them.

    A bitmap sorts without comparing: it is read from front to back, 64 rows at a glance, so that a table
    of a million rows costs 16 thousand words. A row's place is the number of bits before its own.
    """

    def __init__(self, n_rows: int, named: list[torch.Tensor]):
        self._bits = np.zeros((n_rows >> 6) + 1, dtype=np.uint64)
        for rows in named:
            _mark(rows.numpy().reshape(-1), self._bits)
        self._before = np.empty(len(self._bits) + 1, dtype=np.int32)
        _count(self._bits, self._before)
        found = np.empty(self._before[-1], dtype=np.int64)
        _list(self._bits, found)
        self.rows = torch.from_numpy(found)

    def places(self, rows: torch.Tensor) -> torch.Tensor:
        """Where each row stands in ``self.rows``."""
        places = torch.empty_like(rows)
        arrays = (rows.numpy().reshape(-1), places.numpy().reshape(-1))
        split(Job(_place, rows.numel(), (self._bits, self._before, *arrays)), work=rows.numel() // 4)
        return places


@inline
def _popcount(x):
    """The number of bits set, added up in halves."""
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@jit
def _mark(rows, bits):
    one = np.uint64(1)
    for k in range(rows.shape[0]):
        bits[rows[k] >> 6] |= one << np.uint64(rows[k] & 63)


@jit
def _count(bits, before):
    before[0] = 0
    for w in range(bits.shape[0]):
        before[w + 1] = before[w] + _popcount(bits[w])


@jit
def _list(bits, found):
    one, count = np.uint64(1), 0
    for w in range(bits.shape[0]):
        word = bits[w]
        while word != 0:
            lowest = word & (~word + one)
            found[count] = (w << 6) + _popcount(lowest - one)
            count += 1
            word ^= lowest


@jit
def _place(first, last, bits, before, rows, places):
    one = np.uint64(1)
    for k in range(first, last):
        w = rows[k] >> 6
        lower = (one << np.uint64(rows[k] & 63)) - one
        places[k] = before[w] + _popcount(bits[w] & lower)


class AdamTables(NamedTuple):
    """A table of parameters with its two moments, (n, d) each."""

    parameters: Floats
    mean: Floats
    square: Floats


def adam_rows(
    rows: torch.Tensor,
    grad: torch.Tensor,
    table: torch.Tensor,
    mean: torch.Tensor,
    square: torch.Tensor,
    rate: float,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    """Adam's step for some rows of a table and of its two moments, in place.

    ``rows`` are without repeats; ``rate`` is the learning rate with the correction of the moments' bias.
    """
    tables = AdamTables(array(table), array(mean), array(square))
    numbers = (np.float32(rate), np.float32(1 - beta1), np.float32(1 - beta2), np.float32(eps))
    inputs = (rows.numpy(), array(grad), tables, numbers)
    split(Job(_adam_rows, len(rows), inputs), work=3 * len(rows))


@jit
def _adam_rows(first, last, rows, grad, tables, numbers):
    rate, new1, new2, eps = numbers
    for k in range(first, last):
        g, p = grad[k], tables.parameters[rows[k]]
        m, v = tables.mean[rows[k]], tables.square[rows[k]]
        for i in range(g.shape[0]):
            m[i] += (g[i] - m[i]) * new1
            v[i] += (g[i] * g[i] - v[i]) * new2
            p[i] -= rate * m[i] / (np.sqrt(v[i]) + eps)
