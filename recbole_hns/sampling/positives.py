"""The training positives I_c⁺ of every user, as a CSR matrix."""

from __future__ import annotations

import numpy as np


class Positives:
    """Which items each user took: sorted item ids, one row per user.

    ``items[indptr[u]:indptr[u + 1]]`` are the items of user ``u``, ascending and without repeats.
    It also stands in for RecBole's array of Python sets: ``positives[u]`` is the set of user ``u``.
    """

    def __init__(self, users: np.ndarray, items: np.ndarray, n_users: int, n_items: int):
        keys = np.unique(users.astype(np.int64) * n_items + items)
        owners, self.items = keys // n_items, keys % n_items
        counts = np.bincount(owners, minlength=n_users)
        self.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.n_users, self.n_items = n_users, n_items

    @property
    def counts(self) -> np.ndarray:
        """n₊ of every user, (n_users,)."""
        return np.diff(self.indptr)

    def row(self, user: int) -> np.ndarray:
        """The sorted items of one user."""
        return self.items[self.indptr[user] : self.indptr[user + 1]]

    def __getitem__(self, user: int) -> set:
        if user is None:  # RecBole's full-sort loader asks for the user before the first
            return set()
        return set(self.row(int(user)).tolist())

    def __len__(self) -> int:
        return self.n_users

    def users_without_negatives(self) -> np.ndarray:
        """Users who took every item; item 0 is RecBole's padding and never counts."""
        return np.flatnonzero(self.counts >= self.n_items - 1)
