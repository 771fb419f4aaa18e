"""The bounds of Recall@K and Precision@K by OPAUC(K/N₋) (Theorem "OPAUC meets Top-K")."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recbole_hns.errors import Error

Values = NDArray[Any]  # negatives above a positive, a tie may count ½
Ints = NDArray[np.int64]


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
    is an integer, and cuts at i = min(K, N₊), which the printed form does not.

    The paper asks for N₊ > K and N₋ > K. The proof uses only that the top K hold K − i negatives and that
    S counts K of them, so any N₊ will do. With N₋ < K, OPAUC(β) has fewer than K negatives to count, and
    the bounds fail: N₋ ≤ K is refused, as in the paper.
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


class Interval(NamedTuple):
    """Recall@K of users, and the theorem's bounds of it: means over the users whom it speaks of."""

    recall: float
    low: float
    high: float
    users: int  # of whom the theorem speaks
    of: int  # users there are

    def __str__(self) -> str:
        if self.users == 0:
            return "not bounded by the theorem: no user has more than K negatives"
        share = self.users / self.of
        return (
            f"{self.recall:.4f}, and the theorem puts it between {self.low:.4f} and {self.high:.4f} by "
            f"OPAUC(K/N₋): means over {self.users:,} of {self.of:,} users ({share:.1%}), those with more "
            "than K negatives"
        )


def recall_interval(above: ArrayLike, n_pos: ArrayLike, n_neg: ArrayLike, k: int) -> Interval:
    """Recall@K and the tight bounds of it, each a mean over the users with more than K negatives.

    The arguments are those of :func:`users_outside_bounds`. A positive that ties with negatives stands in
    the middle of them, as in the metrics: so there is a permutation, of which the theorem speaks.
    """
    above, n_pos, n_neg = _checked(np.ceil(np.asarray(above)).astype(np.int64), n_pos, n_neg, k)
    recalls = []
    for a in _users(above, n_pos, np.flatnonzero((n_pos > 0) & (n_neg > k))):
        S = (k - np.minimum(a, k)).sum().item()
        low, high = _bounds_of_i(S, k, len(a), tight=True)
        recalls.append((count_in_topk(a, k) / len(a), low / len(a), high / len(a)))
    mean = np.mean(recalls, axis=0) if recalls else np.full(3, math.nan)
    return Interval(float(mean[0]), float(mean[1]), float(mean[2]), len(recalls), int((n_pos > 0).sum()))


def users_outside_bounds(
    above: ArrayLike, n_pos: ArrayLike, n_neg: ArrayLike, k: int, tight: bool = False
) -> tuple[int, list[int]]:
    """How many users the theorem speaks of (N₊ > 0, N₋ > K), and which of them break its bounds.

    ``above`` holds the a_i of all users' positives one user after the other, N₊ = ``n_pos[u]`` of
    user u. The theorem is about permutations: should a tie count ½ in a_i, only the printed form is
    certain to hold.
    """
    above, n_pos, n_neg = _checked(above, n_pos, n_neg, k)
    checked = np.flatnonzero((n_pos > 0) & (n_neg > k))
    outside = []
    for u, a in zip(checked.tolist(), _users(above, n_pos, checked)):
        S = (k - np.minimum(a, k)).sum().item()
        low, high = _bounds_of_i(S, k, len(a), tight)
        if not low <= count_in_topk(a, k) <= high:
            outside.append(u)
    return len(checked), outside


def _checked(above: ArrayLike, n_pos: ArrayLike, n_neg: ArrayLike, k: int) -> tuple[Values, Ints, Ints]:
    """The arguments as arrays, if they agree."""
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
    return above, n_pos, n_neg


def _users(above: Values, n_pos: Ints, which: Ints) -> Iterator[Values]:
    """The a_i of some users."""
    starts = np.cumsum(n_pos) - n_pos
    for u in which.tolist():
        yield above[starts[u] : starts[u] + n_pos[u]]


def _pair_sum(opauc: float, k: int, n_pos: int, n_neg: int) -> float:
    """S = N₊ N₋ OPAUC(β), rid of rounding errors: a multiple of ½, of 1 if no scores are tied."""
    if k < 1:
        raise Error(f"k={k} is not possible: the top K has at least one item.")
    if n_pos < 1:
        raise Error(f"n_pos={n_pos} is not possible: there is no recall without a positive.")
    if n_neg <= k:
        raise Error(f"n_neg={n_neg} is not possible with k={k}: the theorem needs n_neg > k.")
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
        return -((math.isqrt(b * b - 4 * math.ceil(S)) - b) // 2), min(
            k, n_pos, math.isqrt(math.floor(S))
        )
    return (b - _ceil_sqrt(b * b - 4 * math.floor(S))) // 2, _ceil_sqrt(math.ceil(S))


def _ceil_sqrt(n: int) -> int:
    """⌈√n⌉."""
    return math.isqrt(n - 1) + 1 if n > 0 else 0
