"""Lines over generated positives, with item 0 a padding (first = 1) or an item like all others (0)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chisquare

from recbole_hns.kernels import Line

FALSE_ALARM = 1e-4  # of each χ² test; the seeds are fixed


@dataclass
class Case:
    """A line and, for brute force, what it was made of."""

    line: Line
    taken: list[set[int]]  # of each user, from nothing to all items but one
    weights: np.ndarray  # (n_items,), 0 for the padding

    def negatives(self, user: int) -> list[int]:
        """The items that a user did not take, one by one."""
        return [j for j in range(self.line.first, self.line.n_items) if j not in self.taken[user]]

    def q(self, user: int) -> np.ndarray:
        """q(j | c) by definition: the weights of the user's negatives, normalised."""
        q = np.zeros(self.line.n_items)
        for j in self.negatives(user):
            q[j] = self.weights[j]
        return q / q.sum()


def random_case(first: int, weighted: bool = False, n_users: int = 12, n_items: int = 30) -> Case:
    """Users from no positives at all to all items but one, weights from 0 to 5."""
    rng = np.random.default_rng(1)
    sizes = np.linspace(0, n_items - first - 1, n_users).astype(int)
    rows = [np.sort(first + rng.permutation(n_items - first)[:size]) for size in sizes]
    rows[-1] = np.setdiff1d(np.arange(first, n_items), [first + 5])
    weights = np.ones(n_items, dtype=np.int64)
    if weighted:
        weights = rng.integers(0, 6, n_items)
        weights[[first, first + 5, -1]] = 2, 3, 5  # the ends, and what the last user is left with
    weights[:first] = 0
    return case_of(rows, n_items, first, weights if weighted else None)


def case_of(rows: list, n_items: int, first: int, weights: np.ndarray | None = None) -> Case:
    """The case of users who took these items."""
    indptr = np.cumsum([0] + [len(row) for row in rows])
    line = Line.build(indptr, np.concatenate(rows).astype(np.int64), n_items, first, weights)
    if weights is None:
        weights = (np.arange(n_items) >= first).astype(np.int64)
    return Case(line, [set(row) for row in rows], weights)


def assert_follows(ids: np.ndarray, q: np.ndarray) -> None:
    """χ² of the drawn ids against q; nothing outside its support."""
    counts = np.bincount(ids, minlength=len(q))
    assert counts[q == 0].sum() == 0
    if (q > 0).sum() > 1:
        assert chisquare(counts[q > 0], counts.sum() * q[q > 0]).pvalue > FALSE_ALARM
