"""The bounds of Recall@K and Precision@K by OPAUC(K/N₋) (Theorem "OPAUC meets Top-K")."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from recbole_hns.errors import Error


class Bounds(NamedTuple):
    """The (low, high) between which Recall@K and Precision@K lie."""

    recall: tuple[float, float]
    precision: tuple[float, float]


def topk_bounds(opauc: float, k: int, n_pos: int, n_neg: int, tight: bool = False) -> Bounds:
    """The bounds of the Top-K metrics of a permutation, given its OPAUC(β) with β = K/N₋.

    ⌊(N₊ + K − √((N₊ + K)² − 4 S)) / 2⌋ ≤ i ≤ ⌈√S⌉, where S = N₊ N₋ OPAUC(β), i is the number of
    positives among the top K, Recall@K = i/N₊ and Precision@K = i/K. (The proof once writes
    Recall@K = i/K, a slip: the theorem divides by N₊.)

    ``opauc`` is the non-normalised estimator, so that S = Σ_i max(0, K − a_i) with a_i the number of
    negatives above positive i. ``tight`` exchanges floor and ceiling, which holds as well because i
    is an integer, and cuts at i = K, which the printed form does not.
    """
    S = _pair_sum(opauc, k, n_pos, n_neg)
    low, high = _bounds_of_i(S, k, n_pos, tight)
    return Bounds(recall=(low / n_pos, high / n_pos), precision=(low / k, high / k))


def count_in_topk(above: ArrayLike, k: int) -> int:
    """The number of positives in the top K, from the numbers a_i of negatives above each.

    |{m : a_(m) + m < K}|, where a_(0) ≤ a_(1) ≤ … : m positives and a_(m) negatives come first.
    """
    a = np.sort(np.asarray(above))
    return int(np.count_nonzero(a + np.arange(len(a)) < k))


def users_outside_bounds(
    above: ArrayLike, n_pos: ArrayLike, n_neg: ArrayLike, k: int, tight: bool = False
) -> tuple[int, list[int]]:
    """How many users the theorem speaks of (N₊ > K, N₋ > K), and which of them break its bounds.

    ``above`` holds the a_i of all users' positives one user after the other, N₊ = ``n_pos[u]`` of
    user u. The theorem is about permutations: should a tie count ½ in a_i, only the printed form is
    certain to hold.
    """
    above, n_pos, n_neg = np.asarray(above), np.asarray(n_pos), np.asarray(n_neg)
    if len(n_pos) != len(n_neg) or n_pos.sum() != len(above):
        raise Error(
            f"above has {len(above)} values, n_pos {len(n_pos)} users with {n_pos.sum()} positives and "
            f"n_neg {len(n_neg)} users, but they must agree."
        )
    if k < 1:
        raise Error(f"k={k} is not possible: the top K has at least one item.")
    if len(above) and above.min() < 0:
        raise Error(f"above has the value {above.min()}, but it counts the negatives above a positive.")
    starts = np.cumsum(n_pos) - n_pos
    checked = np.flatnonzero((n_pos > k) & (n_neg > k))
    outside = []
    for u in checked.tolist():
        a = above[starts[u] : starts[u] + n_pos[u]]
        S = (k - np.minimum(a, k)).sum().item()
        low, high = _bounds_of_i(S, k, int(n_pos[u]), tight)
        if not low <= count_in_topk(a, k) <= high:
            outside.append(u)
    return len(checked), outside


def _pair_sum(opauc: float, k: int, n_pos: int, n_neg: int) -> float:
    """S = N₊ N₋ OPAUC(β), rid of rounding errors: a multiple of ½, of 1 if no scores are tied."""
    if k < 1:
        raise Error(f"k={k} is not possible: the top K has at least one item.")
    for name, value in (("n_pos", n_pos), ("n_neg", n_neg)):
        if value <= k:
            raise Error(f"{name}={value} is not possible with k={k}: the theorem needs {name} > k.")
    S = opauc * n_pos * n_neg
    if math.isfinite(S) and abs(S - round(2 * S) / 2) <= 1e-6 * max(1, S):
        S = round(2 * S) / 2
    if not 0 <= S <= k * n_pos:
        raise Error(
            f"opauc={opauc} is not possible: OPAUC(β) lies in [0, β], β = k/n_neg = {k / n_neg:g}."
        )
    return S


def _bounds_of_i(S: float, k: int, n_pos: int, tight: bool) -> tuple[int, int]:
    """The integers that bound i, in exact arithmetic.

    i² and i (N₊ + K − i) are integers: they are ≥ S just if they are ≥ ⌈S⌉, ≤ S just if ≤ ⌊S⌋.
    """
    b = n_pos + k
    if tight:
        return -((math.isqrt(b * b - 4 * math.ceil(S)) - b) // 2), min(k, math.isqrt(math.floor(S)))
    return (b - _ceil_sqrt(b * b - 4 * math.floor(S))) // 2, _ceil_sqrt(math.ceil(S))


def _ceil_sqrt(n: int) -> int:
    """⌈√n⌉."""
    return math.isqrt(n - 1) + 1 if n > 0 else 0
