"""Raw interactions, and the paper's preparation of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recbole_hns.errors import Error

Numbers = NDArray[np.int32]
Names = NDArray[np.object_]
Times = NDArray[np.float64]
Parts = NDArray[np.int8]
Places = NDArray[np.int64]

TRAIN, VALID, TEST = 0, 1, 2


@dataclass(frozen=True)
class Interactions:
    """(user, item) pairs as numbers, with the names that the numbers stand for."""

    users: Numbers  # (n,)
    items: Numbers  # (n,)
    user_names: Names | None = None  # by number; None where the numbers are the names
    item_names: Names | None = None
    times: Times | None = None  # (n,)
    parts: Parts | None = None  # (n,) TRAIN, VALID or TEST; None before a split

    def __len__(self) -> int:
        return len(self.users)

    def keep(self, which: NDArray[np.bool_] | Places) -> Interactions:
        """Some of the interactions, by mask or by place."""
        return replace(
            self,
            users=self.users[which],
            items=self.items[which],
            times=None if self.times is None else self.times[which],
            parts=None if self.parts is None else self.parts[which],
        )

    @property
    def n_users(self) -> int:
        """Users that take part."""
        return len(np.unique(self.users))

    @property
    def n_items(self) -> int:
        """Items that take part."""
        return len(np.unique(self.items))


def without_repeats(data: Interactions) -> Interactions:
    """Each (user, item) once: its first occurrence, or the training one where a split is given."""
    order = np.arange(len(data))
    if data.parts is not None:
        order = np.argsort(data.parts, kind="stable")
    keys = data.users[order].astype(np.int64) * (int(data.items.max(initial=0)) + 1) + data.items[order]
    first = np.unique(keys, return_index=True)[1]
    return data if len(first) == len(data) else data.keep(np.sort(order[first]))


def k_core(data: Interactions, k: int) -> Interactions:
    """The largest part in which every user and item has k interactions: filtered until it stays."""
    while len(data):
        enough = (np.bincount(data.users) >= k)[data.users] & (np.bincount(data.items) >= k)[data.items]
        if enough.all():
            return data
        data = data.keep(enough)
    raise Error(f"core={k} leaves nothing: no part of the data has {k} interactions everywhere.")


def split_test(data: Interactions, seed: int, share: float = 0.8) -> Interactions:
    """round(0.8 n) of each user's n interactions to train on, drawn at random; the rest to test on."""
    place, n = _shuffled_places(data.users, seed)
    parts = np.where(place < np.rint(share * n), TRAIN, TEST).astype(np.int8)
    return replace(data, parts=parts)


def hold_out(data: Interactions, seed: int, share: float = 0.1) -> Interactions:
    """round(0.1 n) of each user's n training interactions to validate on, drawn at random."""
    parts = np.zeros(len(data), np.int8) if data.parts is None else data.parts.copy()
    training = np.flatnonzero(parts == TRAIN)
    place, n = _shuffled_places(data.users[training], seed + 1)
    parts[training[place < np.rint(share * n)]] = VALID
    return replace(data, parts=parts)


def _shuffled_places(users: Numbers, seed: int) -> tuple[Places, Places]:
    """A random order of each user's own: the place of every interaction, and how many the user has."""
    shuffled = np.random.default_rng(seed).permutation(len(users))
    order = shuffled[np.argsort(users[shuffled], kind="stable")]
    counts = np.bincount(users) if len(users) else np.zeros(1, dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(counts)])[:-1]
    place = np.empty(len(users), dtype=np.int64)
    place[order] = np.arange(len(users)) - first[users[order]]
    return place, counts[users]


def statistics(data: Interactions) -> dict[str, float]:
    """The paper's table 1; what is held out for validation is part of the training set, as there."""
    users, items, n = data.n_users, data.n_items, len(data)
    numbers = {"users": users, "items": items, "interactions": n}
    if data.parts is not None:
        test = int((data.parts == TEST).sum())
        numbers.update(train=n - test, test=test, held_out=int((data.parts == VALID).sum()))
    return {**numbers, "sparsity": 1 - n / (users * items)}
