"""What pools draw from: who took what, and with which seeds and kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch

from recbole_hns.errors import Error
from recbole_hns.kernels import Backend, Line, get_kernels
from recbole_hns.sampling.positives import Ids, Positives
from recbole_hns.sampling.seeding import derive_seed
from recbole_hns.settings.words import listed


class World:
    """The users' positives, with all that a pool needs to draw negatives of them.

    Args:
        positives: what users took: a SciPy CSR matrix of users × items, or :class:`Positives`.
        counts: how often each item was taken, (n_items,); from the positives by default.
        hns_backend: ``numba`` (CPU), ``torch`` (any device), or ``auto``.
        seed, rank: everything random is a function of these and of the epoch.
        names: what messages call users, given their ids.
    """

    def __init__(
        self,
        positives: Any,
        counts: Ids | None = None,
        *,
        hns_backend: str = "auto",
        device: torch.device | str = "cpu",
        seed: int = 0,
        rank: int = 0,
        names: Callable[[Ids], list[str]] | None = None,
    ):
        self.positives = positives if isinstance(positives, Positives) else Positives.from_csr(positives)
        self.device = torch.device(device)
        self.backend: Backend = get_kernels(hns_backend, self.device)
        self.generator = torch.Generator(self.device)
        self.seed, self.rank = seed, rank
        self._counts, self._names = counts, names
        self.start_epoch(0)

    @property
    def n_users(self) -> int:
        """How many users there are, RecBole's padding among them."""
        return self.positives.n_users

    @property
    def n_items(self) -> int:
        """How many item ids there are, RecBole's padding among them."""
        return self.positives.n_items

    @property
    def counts(self) -> Ids:
        """How often each item was taken, (n_items,)."""
        if self._counts is not None:
            return self._counts
        return np.bincount(self.positives.items, minlength=self.n_items)

    def start_epoch(self, epoch: int) -> None:
        """Begin the random stream of an epoch."""
        self.generator.manual_seed(derive_seed(self.seed, self.rank, epoch))

    @cached_property
    def line(self) -> Line:
        """All items alike, on a line from which each user's positives can be taken out."""
        full = self.positives.users_without_negatives()
        if len(full):
            raise Error(
                f"{self.name_users(full)} took every item, so there is no negative to draw: set "
                f'user_inter_num_interval, e.g. "[0,{self.n_items - 2}]", to leave such users out.'
            )
        return self.weighted_line(None)

    def weighted_line(self, weights: Ids | None) -> Line:
        """The items on a line, each as long as its weight, a whole number."""
        p = self.positives
        return Line.build(p.indptr, p.items, p.n_items, p.first, weights).to(self.device)

    def name_users(self, users: Ids) -> str:
        """``users 196, 186 and 3 more``."""
        names = [str(user) for user in users[:3]] if self._names is None else self._names(users[:3])
        more = f" and {len(users) - 3} more" if len(users) > 3 else ""
        text = f"{', '.join(names)}{more}" if more else listed(names)
        return f"user{'s' if len(users) > 1 else ''} {text}"
