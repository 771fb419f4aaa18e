"""RecBole's data as the world that pools draw from, and pools as RecBole's samplers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from recbole.data.dataset import Dataset
from recbole.sampler import Sampler as RecBoleSampler

from recbole_hns.errors import Error
from recbole_hns.sampling.pools import Pool
from recbole_hns.sampling.pools.base import Source
from recbole_hns.sampling.positives import Ids, Positives
from recbole_hns.sampling.world import World


def world_of(train: Dataset, config: Any, rank: int = 0) -> World:
    """The world of a training set, on the device and with the seed of a run."""
    users, items = taken(train)
    positives = Positives(users, items, train.user_num, train.item_num)
    return World(
        positives,
        counts_of(train),
        hns_backend=config["hns_backend"],
        device=config["device"],
        seed=config["seed"],
        rank=rank,
        names=lambda users: tokens_of(train, users),
    )


def taken(dataset: Dataset) -> tuple[Ids, Ids]:
    """(users, items) of a data set: its interactions and, for sequential models, the histories."""
    parts = list(_taken(dataset))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _taken(dataset: Dataset) -> Iterator[tuple[Ids, Ids]]:
    users = dataset.inter_feat[dataset.uid_field].numpy()
    yield users, dataset.inter_feat[dataset.iid_field].numpy()
    history_field = dataset.iid_field + dataset.config["LIST_SUFFIX"]
    if history_field in dataset.inter_feat:
        history = dataset.inter_feat[history_field].numpy()  # (n, length), padded with 0
        row, column = np.nonzero(history)
        yield users[row], history[row, column]


def counts_of(*datasets: Dataset) -> Ids:
    """How often each item was taken in the data sets, (n_items,)."""
    counts = np.zeros(datasets[0].item_num)
    for dataset in datasets:
        items = dataset.inter_feat[dataset.iid_field].numpy()
        counts += np.bincount(items, minlength=dataset.item_num)
    return counts


def tokens_of(dataset: Dataset, users: Ids) -> list[str]:
    """The users' ids as the data's files have them."""
    return [str(token) for token in dataset.id2token(dataset.uid_field, users)]


class PoolSampler(RecBoleSampler):
    """A pool as a RecBole sampler, for RecBole's own data loaders: a CSR matrix instead of sets.

    A phase's positives are what was taken in it or before it.
    """

    def __init__(
        self, phases: list[str], datasets: list[Dataset], pool: Pool, hns_backend: str = "auto"
    ):
        self.pool, self.hns_backend = pool, hns_backend
        super().__init__(phases, datasets, "uniform")

    def get_used_ids(self) -> dict[str, Positives]:
        """The positives of each phase."""
        used: dict[str, Positives] = {}
        users, items = [], []
        for phase, dataset in zip(self.phases, self.datasets):
            own = taken(dataset)
            users.append(own[0])
            items.append(own[1])
            used[phase] = Positives(
                np.concatenate(users), np.concatenate(items), self.user_num, self.item_num
            )
        full = used[self.phases[-1]].users_without_negatives()
        if len(full):
            refuse_users_without_negatives(self.datasets[0], full)
        return used

    def set_phase(self, phase: str) -> PoolSampler:
        """The sampler of one phase."""
        one: PoolSampler = super().set_phase(phase)
        one.seed = torch.initial_seed()
        return one

    @cached_property
    def source(self) -> Source:
        """What draws; a ranking among all items asks for nothing but what was taken."""
        world = World(
            self.used_ids,
            counts_of(*self.datasets),
            hns_backend=self.hns_backend,
            names=lambda users: tokens_of(self.datasets[0], users),
        )
        world.generator.manual_seed(self.seed)
        return self.pool.open(world)

    def sample_by_key_ids(self, key_ids: Ids, num: int) -> torch.Tensor:
        """``num`` negatives per user in RecBole's order: all first ones, then all second ones, …"""
        users = torch.as_tensor(np.asarray(key_ids), dtype=torch.long)
        drawn: torch.Tensor = self.source.draw(users, num).ids
        return drawn.T.reshape(-1).long()


def refuse_users_without_negatives(dataset: Dataset, users: Ids) -> None:
    """Name the users who took every item, with RecBole's own remedy."""
    names, more = tokens_of(dataset, users[:3]), len(users) - 3
    who = f"user{'s' if len(users) > 1 else ''} {', '.join(names)}" + (
        f" and {more} more" if more > 0 else ""
    )
    raise Error(
        f"{who} took every item, so there is no negative to draw: set "
        f'user_inter_num_interval, e.g. "[0,{dataset.item_num - 2}]", to leave such users out.'
    )
