"""The training positives I_c⁺ of every user, as a CSR matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[Any]


class Positives:
    """Which items each user took: sorted item ids, one row per user.

    ``items[indptr[u]:indptr[u + 1]]`` are the items of user ``u``, ascending and without repeats.
    It also stands in for RecBole's array of Python sets: ``positives[u]`` is the set of user ``u``.
    """

    def __init__(self, users: Ids, items: Ids, n_users: int, n_items: int, first: int = 1):
        keys = np.unique(users.astype(np.int64) * n_items + items)
        owners, self.items = keys // n_items, keys % n_items
        counts = np.bincount(owners, minlength=n_users)
        self.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.n_users, self.n_items, self.first = n_users, n_items, first

    @classmethod
    def from_csr(cls, matrix: Any, first: int = 0) -> Positives:
        """Of a SciPy matrix of users × items; ids below ``first`` stand for no item."""
        coo = matrix.tocoo()
        taken = (coo.data != 0) & (coo.col >= first)
        n_users, n_items = matrix.shape
        return cls(coo.row[taken], coo.col[taken], n_users, n_items, first)

    @property
    def counts(self) -> Ids:
        """n₊ of every user, (n_users,)."""
        counts: Ids = np.diff(self.indptr)
        return counts

    def row(self, user: int) -> Ids:
        """The sorted items of one user."""
        items: Ids = self.items[self.indptr[user] : self.indptr[user + 1]]
        return items

    def __getitem__(self, user: int | None) -> set[int]:
        if user is None:  # RecBole's full-sort loader asks for the user before the first
            return set()
        return set(self.row(int(user)).tolist())

    def __len__(self) -> int:
        return self.n_users

    def users_without_negatives(self) -> Ids:
        """Users who took every item; item 0 is RecBole's padding and never counts."""
        return np.flatnonzero(self.counts >= self.n_items - self.first)
