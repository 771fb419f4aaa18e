"""Pools: where the candidates for a context come from."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import torch
from recbole.data.dataset import Dataset
from recbole.sampler import Sampler

from recbole_hns.errors import Error
from recbole_hns.kernels import Candidates, DrawTables, get_kernels
from recbole_hns.sampling.positives import Positives

# Weights are whole numbers, so that draws are exact; those that are not are scaled up to this total.
POPULARITY_TOTAL = 1 << 40


class Pool(Sampler):
    """Draws candidates independently from q, restricted to each user's negatives I_c⁻.

    The negatives of a user are the items absent from the user's training set, never the padding
    item 0. It is a RecBole sampler with a CSR matrix where RecBole has sets, so RecBole's own data
    loaders can use it too; a subclass says only which weights the items have.

    Args:
        phases, datasets: as RecBole's ``Sampler``; a training pool has the training set alone.
        block: G pairs of a batch share one drawn set, each still leaving out its own positives. A
            pair's candidates keep their distribution; only candidates within a block are dependent.
        kernels: the backend; by default the one for the CPU.
        generator: the source of all randomness, on the device of the draws.
    """

    distribution_name = ""

    def __init__(
        self,
        phases: str | list[str],
        datasets: Dataset | list[Dataset],
        alpha: float = 1.0,
        block: int = 1,
        kernels: ModuleType | None = None,
        generator: torch.Generator | None = None,
    ):
        self.block = block
        self.kernels = kernels or get_kernels("auto", torch.device("cpu"))
        self.generator = generator or torch.Generator().manual_seed(torch.initial_seed())
        super().__init__(phases, datasets, self.distribution_name, alpha)

    def item_weights(self) -> np.ndarray | None:
        """Whole numbers ∝ q, (n_items,), zero for the padding item; None where all are equal."""
        raise NotImplementedError

    def draw(self, users: torch.Tensor, N: int) -> Candidates:
        """N candidates for each user, (B, N)."""
        candidates = self.kernels.draw(self.tables, users, N, self.block, self.generator)
        if self.tables.start is not None:
            candidates.log_q = self.log_q(users, candidates)
        return candidates

    def log_q(self, users: torch.Tensor, candidates: Candidates) -> torch.Tensor:
        """log q(j | c) of the draw, restricted to the user's negatives, (B, N), or (B, 1) if uniform."""
        shared, log_mass = candidates.shared, self.tables.mass[users].double().log().float()
        if self.tables.start is None:
            return -log_mass[:, None]
        if shared is None:
            log_w = self._log_weights_of(candidates.ids)
        else:  # a block's weights are looked up once, and a pair's own put in
            log_w = self._log_weights_of(shared.ids).repeat_interleave(shared.G, dim=0)[: len(users)]
            own = candidates.ids[shared.pair, shared.slot]
            log_w[shared.pair, shared.slot] = self._log_weights_of(own)
        return log_w.sub_(log_mass[:, None])

    def _log_weights_of(self, ids: torch.Tensor) -> torch.Tensor:
        return self._log_weights.index_select(0, ids.flatten()).view(ids.shape)

    def negatives_of(self, users: torch.Tensor) -> torch.Tensor:
        """n₋ of each user, (B,)."""
        tables = self.tables
        return tables.n_items - 1 - (tables.indptr[users + 1] - tables.indptr[users])

    # ------------------------------------------------------------------- RecBole's interface

    def set_distribution(self, distribution: str) -> None:
        """Kept from RecBole's interface: the pool's class decides."""
        self.distribution = self.distribution_name

    def get_used_ids(self) -> dict[str, Positives]:
        """The positives of each phase: what was taken in it or before it."""
        used, users, items = {}, [], []
        for phase, dataset in zip(self.phases, self.datasets):
            for user_column, item_column in _taken(dataset):
                users.append(user_column)
                items.append(item_column)
            used[phase] = Positives(
                np.concatenate(users), np.concatenate(items), self.user_num, self.item_num
            )
        full = used[self.phases[-1]].users_without_negatives()
        if len(full):
            refuse_users_without_negatives(self.datasets[0], full)
        return used

    def set_phase(self, phase: str) -> Pool:
        """The pool of one phase, ready to draw."""
        pool = super().set_phase(phase)
        weights = pool.item_weights()
        pool.tables = _draw_tables(pool.used_ids, weights)
        if weights is not None:
            empty = np.flatnonzero(pool.tables.mass.numpy() == 0)
            if len(empty):
                raise Error(
                    f"pool=popularity cannot draw for {_name_users(self.datasets[0], empty)}, who took "
                    "every item that has a count: use pool=uniform, or filter with "
                    "user_inter_num_interval."
                )
            with np.errstate(divide="ignore"):
                pool._log_weights = torch.from_numpy(np.log(weights)).float()
        return pool

    def to(self, device: torch.device) -> Pool:
        """The same pool with its tables on another device."""
        pool = copy.copy(self)
        pool.tables = self.tables.to(device)
        if hasattr(self, "_log_weights"):
            pool._log_weights = self._log_weights.to(device)
        return pool

    def sample_by_key_ids(self, key_ids: np.ndarray, num: int) -> torch.Tensor:
        """``num`` negatives per user in RecBole's order: all first ones, then all second ones, …"""
        users = torch.as_tensor(np.asarray(key_ids), dtype=torch.long)
        return self.draw(users, num).ids.T.reshape(-1).long()


class UniformPool(Pool):
    """q(j | c) = 1 / n₋: every negative of the user alike."""

    distribution_name = "uniform"

    def item_weights(self) -> None:
        """Equal weights need no table."""
        return None


class PopularityPool(Pool):
    """q(j | c) ∝ count_j^α over the user's negatives, with count_j from the data sets given."""

    distribution_name = "popularity"

    def item_weights(self) -> np.ndarray:
        """count_j^α as whole numbers; items nobody took are never drawn (α = 0 makes all equal)."""
        counts = np.zeros(self.item_num)
        for dataset in self.datasets:
            items = dataset.inter_feat[self.iid_field].numpy()
            counts += np.bincount(items, minlength=self.item_num)
        with np.errstate(over="ignore"):
            weights = counts**self.alpha
        weights[0] = 0
        taken = weights > 0
        total = min(POPULARITY_TOTAL, (1 << 62) // (self.user_num + 1))
        if (weights != np.rint(weights)).any() or weights.sum() > total:
            weights = (counts / counts.max()) ** self.alpha  # at most 1, however large α is
            weights[0] = 0
            weights *= total / weights.sum()
        return np.where(taken, np.maximum(1, np.rint(weights)), 0).astype(np.int64)


POOLS: dict[str, type[Pool]] = {pool.distribution_name: pool for pool in (UniformPool, PopularityPool)}


def _taken(dataset: Dataset) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(users, items) of a data set: the interactions and, for sequential models, the histories."""
    users = dataset.inter_feat[dataset.uid_field].numpy()
    yield users, dataset.inter_feat[dataset.iid_field].numpy()
    history_field = dataset.iid_field + dataset.config["LIST_SUFFIX"]
    if history_field in dataset.inter_feat:
        history = dataset.inter_feat[history_field].numpy()  # (n, length), padded with 0
        row, column = np.nonzero(history)
        yield users[row], history[row, column]


def _draw_tables(positives: Positives, weights: np.ndarray | None) -> DrawTables:
    indptr, items = positives.indptr, positives.items
    if weights is None:
        start = np.maximum(np.arange(positives.n_items + 1) - 1, 0)
        weights_of_positives = np.ones(len(items), dtype=np.int64)
    else:
        start = np.concatenate([[0], np.cumsum(weights)])
        weights_of_positives = weights[items]
    removed = np.concatenate([[0], np.cumsum(weights_of_positives)])
    removed_in_row = removed[:-1] - np.repeat(removed[indptr[:-1]], np.diff(indptr))
    # Half the width, twice the SIMD lanes, where the line is short enough.
    narrow = np.int32 if start[-1] < np.iinfo(np.int32).max else np.int64
    tensors = {
        "indptr": indptr,
        "items": items.astype(np.int32),
        "before": (start[items] - removed_in_row).astype(narrow),
        "removed": removed,
        "mass": start[-1] - (removed[indptr[1:]] - removed[indptr[:-1]]),
    }
    return DrawTables(
        **{name: torch.from_numpy(array) for name, array in tensors.items()},
        start=None if weights is None else torch.from_numpy(start),
        total=int(start[-1]),
        n_items=positives.n_items,
    )


def refuse_users_without_negatives(dataset: Dataset, users: np.ndarray) -> None:
    """Name the users who took every item, with RecBole's own remedy."""
    raise Error(
        f"{_name_users(dataset, users)} took every item, so there is no negative to draw: set "
        f'user_inter_num_interval, e.g. "[0,{dataset.item_num - 2}]", to leave such users out.'
    )


def _name_users(dataset: Dataset, users: np.ndarray) -> str:
    tokens = [str(token) for token in dataset.id2token(dataset.uid_field, users[:3])]
    more = f" and {len(users) - 3} more" if len(users) > 3 else ""
    return f"user{'s' if len(users) > 1 else ''} {', '.join(tokens)}{more}"
