"""The line that items lie on and are drawn from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Line:
    """What drawing needs to know of a pool, as tensors on the model's device.

    Items lie on a line of integer length Σ w_j, item j on [start_j, start_j + w_j). Taking a user's
    positives out of the line leaves the user's negatives on a line of length ``mass``; ``before``
    says where on that shorter line each positive was taken out, ``removed`` how much had been taken
    out until then. A point of the short line is moved back onto the long one by one search in
    ``before``: exact, with no rejection, however many positives a user has.

    Items are the ids from ``first``, 1 where item 0 is a padding as in RecBole, to ``n_items`` − 1.
    """

    indptr: torch.Tensor  # (n_users + 1,) int64, rows of the three below
    items: torch.Tensor  # (nnz,) int32, the positives, ascending inside a row
    before: torch.Tensor  # (nnz,) int32 or int64, ascending inside a row
    removed: torch.Tensor  # (nnz + 1,) int64, running sum of the positives' weights
    mass: torch.Tensor  # (n_users,) int64, length of the user's own line
    start: torch.Tensor | None  # (n_items + 1,) int64; None where every weight is 1
    total: int  # length of the whole line
    n_items: int
    first: int

    @classmethod
    def build(
        cls, indptr: Ints, items: Ints, n_items: int, first: int, weights: Ints | None = None
    ) -> Line:
        """The line of items with these weights, whole numbers and 0 below ``first``; by default 1 each.

        ``items[indptr[u]:indptr[u + 1]]`` are user u's positives, ascending and without repeats.
        """
        if weights is None:
            start = np.maximum(np.arange(n_items + 1) - first, 0)
            weights_of_positives = np.ones(len(items), dtype=np.int64)
        else:
            start = np.concatenate([[0], np.cumsum(weights)])
            weights_of_positives = weights[items]
        removed = np.concatenate([[0], np.cumsum(weights_of_positives)])
        removed_in_row = removed[:-1] - np.repeat(removed[indptr[:-1]], np.diff(indptr))
        # Half the width, twice the SIMD lanes, where the line is short enough.
        narrow = np.int32 if start[-1] < np.iinfo(np.int32).max else np.int64
        return cls(
            indptr=torch.from_numpy(indptr),
            items=torch.from_numpy(items.astype(np.int32)),
            before=torch.from_numpy((start[items] - removed_in_row).astype(narrow)),
            removed=torch.from_numpy(removed),
            mass=torch.from_numpy(start[-1] - (removed[indptr[1:]] - removed[indptr[:-1]])),
            start=None if weights is None else torch.from_numpy(start),
            total=int(start[-1]),
            n_items=n_items,
            first=first,
        )

    def to(self, device: torch.device) -> Line:
        """The same line on another device."""
        return replace(
            self,
            indptr=self.indptr.to(device),
            items=self.items.to(device),
            before=self.before.to(device),
            removed=self.removed.to(device),
            mass=self.mass.to(device),
            start=None if self.start is None else self.start.to(device),
        )

    def negatives_of(self, users: torch.Tensor) -> torch.Tensor:
        """n₋ of each user, (B,): all items but the positives, whatever they weigh."""
        return self.n_items - self.first - self.n_positives_of(users)

    def n_positives_of(self, users: torch.Tensor) -> torch.Tensor:
        """n₊ of each user, (B,)."""
        return self.indptr[users + 1] - self.indptr[users]

    def positives_of(self, users: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Places in ``users`` and the items that the user there took, both (Σ n₊,) and in order."""
        n_pos = self.n_positives_of(users)
        places = torch.repeat_interleave(torch.arange(len(users), device=users.device), n_pos)
        nth = torch.arange(len(places), device=users.device) - (n_pos.cumsum(0) - n_pos)[places]
        return places, self.items[self.indptr[users][places] + nth].long()

    def is_positive(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """Whether each user took each item."""
        key = users * self.n_items + items
        return self.item_keys[torch.searchsorted(self.item_keys, key)] == key

    @cached_property
    def owner(self) -> torch.Tensor:
        """The user of each positive, (nnz,)."""
        users = torch.arange(len(self.mass), device=self.mass.device)
        return torch.repeat_interleave(users, self.indptr.diff())

    @cached_property
    def before_keys(self) -> torch.Tensor:
        """``before`` of all users in one ascending array, so that one search serves a batch."""
        return self.owner * (self.total + 1) + self.before

    @cached_property
    def item_keys(self) -> torch.Tensor:
        """All (user, positive) pairs in one ascending array, and a last key that is greater than any."""
        return F.pad(self.owner * self.n_items + self.items, (0, 1), value=len(self.mass) * self.n_items)

    @cached_property
    def guide(self) -> tuple[Ints | None, int]:
        """An index into ``start``: the item at the beginning of each 2^shift of the line, and shift.

        Indexed search (Chen and Asau 1974): about as many steps as items, so one or two per draw.
        """
        if self.start is None:
            return None, 0
        shift = max(0, self.total.bit_length() - self.n_items.bit_length())
        points = np.arange((self.total >> shift) + 1, dtype=np.int64) << shift
        return np.searchsorted(self.start.numpy(), points, side="right") - 1, shift
