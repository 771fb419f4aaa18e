"""A run that is asked to stop does so between two batches, and goes on from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from recbole.trainer import Trainer

from recbole_hns.data.loader import PositiveLoader
from recbole_hns.training.saving import SavingMixin
from recbole_hns.training.stopping import RunStopped

if TYPE_CHECKING:
    from recbole.data.interaction import Interaction
    from recbole.model.abstract_recommender import AbstractRecommender

    from recbole_hns.bridge.config import LayeredConfig
    from recbole_hns.data.loader import TrainLoader
    from recbole_hns.models.scorer import BatchLoss
    from recbole_hns.training.checkpoint import Content
    from recbole_hns.training.recbole_trainer import Loss, LossFunction, Scores


class BetweenBatchesMixin(SavingMixin):
    """Saves the run before every epoch and, when it is asked to stop, before a batch of one.

    The latter where an epoch is one pass over one :class:`~.data.loader.PositiveLoader`; trainers whose
    epochs are more than that (knowledge-aware models, NCL) go back to the epoch's beginning.
    """

    def __init__(self, config: LayeredConfig, model: AbstractRecommender, trust: bool = False):
        super().__init__(config, model, trust)
        self._can_be_cut = False
        self._validating: Content | None = None  # the moment before a validation

    def _know_data(self, train_data: TrainLoader) -> None:
        super()._know_data(train_data)
        theirs = [c for c in type(self).__mro__ if c.__module__ == Trainer.__module__]
        own_epochs = any("_train_epoch" in vars(c) for c in theirs if c is not Trainer)
        self._can_be_cut = isinstance(train_data, PositiveLoader) and not own_epochs

    # ------------------------------------------------------------- training

    def _train_epoch(
        self,
        train_data: TrainLoader,
        epoch_idx: int,
        loss_func: LossFunction | None = None,
        show_progress: bool = False,
    ) -> Loss:
        self._begin_epoch(train_data, epoch_idx)
        if self._can_be_cut and loss_func is not None:
            loss_func = self._summed(loss_func)
        loss = super()._train_epoch(train_data, epoch_idx, loss_func, show_progress)
        self._restore_moment()  # of a run that was stopped after the last batch
        self.so_far.stop_clock()
        self._refuse_broken_parameters()
        return loss if self.so_far.loss is None else self.so_far.loss

    def _begin_epoch(self, train_data: TrainLoader, epoch: int) -> None:
        """Save the state or restore it."""
        self.so_far.begin(epoch)
        pending = self._pending
        if pending is None or pending["epoch"] != epoch:
            self._pending = None
            self._save_last(epoch)
        elif pending.get("batch", 0) == 0:
            self._restore_moment()
        else:
            self.so_far.batch, self.so_far.loss = pending["batch"], pending["loss"]
            self.so_far.seconds = pending["seconds"]
            self.so_far.look(pending.get("hardness"))
            train_data.first = self.so_far.batch
        self._stop_if_asked()
        if self._can_be_cut:
            train_data.before_batch = self._before_batch
        self.so_far.start_clock()

    def _before_batch(self, number: int) -> None:
        self._restore_moment()
        self.so_far.batch = number
        if self.stop.signum is not None:
            if number > 0:
                self.so_far.stop_clock()
                self._save_last(self.so_far.epoch, number)
            self._stop_if_asked()

    def _check_nan(self, loss: torch.Tensor) -> None:
        super()._check_nan(loss)
        self.so_far.batch += 1
        if not self._can_be_cut:
            self._stop_if_asked()

    def _summed(self, loss_func: LossFunction) -> LossFunction:
        """The loss, added up here: RecBole's own sum cannot begin in the middle of an epoch."""

        def summed(batch: Interaction) -> BatchLoss:
            loss = loss_func(batch)
            self.so_far.add(loss)
            return loss

        return summed

    # ------------------------------------------------------------- validation

    def _valid_epoch(
        self, valid_data: object, show_progress: bool = False
    ) -> tuple[float, dict[str, float]]:
        self._validating = self._moment()
        score, result = super()._valid_epoch(valid_data, show_progress)
        self._validating = None
        return score, result

    def _full_sort_batch_eval(self, batched_data: object) -> Scores:
        self._before_evaluation_batch()
        return super()._full_sort_batch_eval(batched_data)

    def _neg_sample_batch_eval(self, batched_data: object) -> Scores:
        self._before_evaluation_batch()
        return super()._neg_sample_batch_eval(batched_data)

    def _before_evaluation_batch(self) -> None:
        """A signal in a validation: it is repeated as a whole after the resume."""
        if self.stop.signum is not None and self._validating and self._can_be_cut:
            self._save_last(self.so_far.epoch, self.so_far.batch, self._validating)
        self._stop_if_asked()

    def _stop_if_asked(self) -> None:
        if self.stop.signum is not None:
            raise RunStopped(self.stop.signum, self.stop.checkpoint)
