"""The training data as positive-only batches: the sampler brings the negatives."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
from recbole.config import Config
from recbole.data.dataloader import KnowledgeBasedDataLoader, TrainDataLoader
from recbole.data.dataset import Dataset
from recbole.data.interaction import Interaction
from recbole.data.transform import construct_transform
from torch.utils.data.distributed import DistributedSampler

from recbole_hns.sampling.seeding import derive_seed


class PositiveLoader:
    """Batches of ``train_batch_size`` positives, cut as slices out of one permutation per epoch.

    It offers what RecBole's trainers ask of a train loader. The permutation derives from ``seed``
    and the epoch alone, so that a pass can begin anywhere in it. For a method that wants the pairs of a
    user together it is a permutation of the users.
    """

    first = 0  # the batch that the next pass begins with
    before_batch: Callable[[int], None] | None = None  # told each batch's number before it is made

    def __init__(self, config: Config, dataset: Dataset, shuffle: bool):
        self.config, self._dataset, self.shuffle = config, dataset, shuffle
        self.step: int = config["train_batch_size"]
        self.transform = construct_transform(config)
        self.sampler: DistributedSampler[Any] | None = None
        if not config["single_spec"]:
            places: Any = range(len(dataset))
            self.sampler = DistributedSampler(places, shuffle=shuffle, seed=config["seed"])
            self.step = max(1, self.step // config["world_size"])
        self.set_epoch(0)

    @property
    def dataset(self) -> Dataset:
        """The training set, under the name that RecBole's collector uses."""
        return self._dataset

    def set_epoch(self, epoch: int) -> None:
        """Choose the permutation of the next pass."""
        self.epoch = epoch

    def _order(self) -> torch.Tensor:
        n = len(self._dataset)
        if self.sampler is not None:
            self.sampler.set_epoch(self.epoch)
            return torch.tensor(list(self.sampler))
        if not self.shuffle:
            return torch.arange(n)
        generator = torch.Generator().manual_seed(derive_seed(self.config["seed"], self.epoch))
        if not self.config.method.pool.by_user:
            return torch.randperm(n, generator=generator)
        place = torch.randperm(self._dataset.user_num, generator=generator)
        return place[self._dataset.inter_feat[self._dataset.uid_field]].argsort(stable=True)

    def __iter__(self) -> Iterator[Interaction]:
        columns = self._dataset.inter_feat.interaction
        order = self._order()
        pieces = [order[start : start + self.step] for start in range(0, len(order), self.step)]
        first, self.first = self.first, 0
        for number in range(first, len(pieces)):
            if self.before_batch is not None:
                self.before_batch(number)
            index = pieces[number]
            batch = Interaction({name: column[index] for name, column in columns.items()})
            yield self.transform(self._dataset, self._dataset.join(batch))

    def __len__(self) -> int:
        n = len(self._dataset) if self.sampler is None else len(self.sampler)
        return math.ceil(n / self.step)


TrainLoader: TypeAlias = PositiveLoader | KnowledgeBasedDataLoader


def positives_only(
    config: Config, train_data: TrainDataLoader | KnowledgeBasedDataLoader
) -> TrainLoader:
    """RecBole's train loader with its negative sampling taken out."""
    if isinstance(train_data, KnowledgeBasedDataLoader):
        inner, train_data = train_data.general_dataloader, copy.copy(train_data)
        train_data.general_dataloader = PositiveLoader(config, inner._dataset, inner.shuffle)
        train_data.dataset = inner._dataset  # RecBole's collector asks for it, and finds none
        return train_data
    return PositiveLoader(config, train_data._dataset, train_data.shuffle)
