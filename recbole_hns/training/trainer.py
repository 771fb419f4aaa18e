"""The training step, put into whichever trainer RecBole picks for the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from recbole.data.dataloader import KnowledgeBasedDataLoader
from recbole.trainer import Trainer
from recbole.utils import get_trainer, set_color

from recbole_hns.bridge.config import LayeredConfig
from recbole_hns.bridge.world import world_of
from recbole_hns.data.loader import PositiveLoader, positives_only
from recbole_hns.errors import Error
from recbole_hns.files import cannot_be_written
from recbole_hns.models.cards import scorer_of
from recbole_hns.models.optim import fuse
from recbole_hns.settings.registry import name_of
from recbole_hns.training.between_batches import BetweenBatchesMixin
from recbole_hns.training.hardness import aimed_at, in_words, measured, out_of_reach
from recbole_hns.training.recbole_trainer import RecBoleTrainer
from recbole_hns.training.schedule import decay_learning_rate

if TYPE_CHECKING:
    from recbole.data.interaction import Interaction
    from recbole.model.abstract_recommender import AbstractRecommender

    from recbole_hns.data.loader import TrainLoader
    from recbole_hns.models.scorer import BatchLoss
    from recbole_hns.training.recbole_trainer import AnyTrainLoader, Loss, LossFunction


class HNSTrainerMixin(BetweenBatchesMixin):
    """Adds a negative sampler to a RecBole trainer, which can be killed and go on.

    ``fit`` builds the sampler from the training set; :meth:`sampled_loss` is one training step.
    """

    def fit(
        self,
        train_data: AnyTrainLoader,
        valid_data: object = None,
        verbose: bool = True,
        saved: bool = True,
        show_progress: bool = False,
        callback_fn: Callable[[int, float], None] | None = None,
    ) -> tuple[float, dict[str, float] | None]:
        """RecBole's ``fit``, after the sampler has been built.

        ``train_data`` may be the loader of RecBole's own ``data_preparation``.
        """
        train_data = _positives(self.config, train_data)
        self.prepare(train_data)
        with self.alone(saved):
            if self._pending is not None and "moment" not in self._pending:
                # RecBole's own checkpoint stays as it is; ours begin with what it holds.
                self._save_checkpoint(self.start_epoch - 1, verbose=verbose)
                self._save_last(self.start_epoch)
            if self._pending is not None and self.is_trained:
                self.logger.info("This run has been trained to its end: nothing is left but the test.")
                return self.best_valid_score, self.best_valid_result
            every = self.eval_step
            try:
                result = super().fit(train_data, valid_data, verbose, saved, show_progress, callback_fn)
            finally:
                self.eval_step = every
                self.tensorboard.close()  # it opens again if it is used again
            self._save_last(self.so_far.epoch + 1 if self.train_loss_dict else self.start_epoch)
        return result

    def prepare(self, train_data: TrainLoader) -> None:
        """Build what a training step needs."""
        config, dataset = self.config, train_data._dataset
        rank = config["local_rank"] + (config["offset"] or 0)
        self._know_data(train_data)
        method, world = config.method, world_of(dataset, config, rank)
        scorer = scorer_of(type(self.model))
        loss = method.loss, config["reg_weight"]
        self.scorer = scorer(self.model, dataset, world.backend, *loss)
        self.sampler = method.open(world)
        aim, impossible = aimed_at(self.sampler), out_of_reach(self.sampler)
        if aim is not None:
            self.logger.info(set_color("hardness", "pink") + f": {aim}")
        if impossible is not None:
            self.logger.warning(impossible)

    def sampled_loss(self, batch: Interaction) -> BatchLoss:
        """Encode once, choose negatives without gradient, learn from them.

        ``enable_amp`` is for the model's own layers; negatives are chosen in single precision.
        """
        query = self.scorer.encode(batch)
        with torch.autocast(self.device.type, enabled=False):  # the choice takes 32 bits
            negatives = self.sampler.select(batch[self.config["USER_ID_FIELD"]], query)
        if not self.so_far.looked:
            self.so_far.look(measured(self.config.method, negatives))
        return self.scorer.loss(batch, query, negatives, self.sampler.generator)

    def _train_epoch(
        self,
        train_data: TrainLoader,
        epoch_idx: int,
        loss_func: LossFunction | None = None,
        show_progress: bool = False,
    ) -> Loss:
        self._start_epoch(train_data, epoch_idx)
        loss_func = loss_func or self.sampled_loss
        loss = super()._train_epoch(train_data, epoch_idx, loss_func, show_progress)
        self.history.append(self.so_far.row(loss))
        if self.so_far.hardness is not None:
            words = in_words(self.so_far.hardness, name_of(self.config.method.pool))
            self.logger.info(set_color(f"epoch {epoch_idx} hardness", "pink") + f": {words}")
        if epoch_idx == self.epochs - 1:  # RecBole validates next where eval_step divides the epochs
            self.eval_step = min(self.eval_step, 1)
        return loss

    def _start_epoch(self, train_data: TrainLoader, epoch: int) -> None:
        """Everything that changes with the epoch is a function of it, so resuming needs no state."""
        if isinstance(train_data, KnowledgeBasedDataLoader):
            train_data = train_data.general_dataloader
        train_data.set_epoch(epoch)
        self.sampler.start_epoch(epoch)
        step_size, gamma = self.config["lr_step_size"], self.config["lr_gamma"]
        if step_size:
            decay_learning_rate(self.optimizer, self.learning_rate, step_size, gamma, epoch)

    def _build_optimizer(self, **kwargs: object) -> torch.optim.Optimizer:
        """RecBole's optimiser, fused where it can be."""
        optimizer = fuse(super()._build_optimizer(**kwargs), self.config["hns_backend"])
        if isinstance(optimizer, torch.optim.SparseAdam):
            for module in self.model.modules():
                if isinstance(module, torch.nn.Embedding):
                    module.sparse = True  # torch's own mark of a table that takes sparse gradients
        return optimizer


class SampledLossTrainer(RecBoleTrainer):
    """RecBole's trainer with the sampled loss wherever the model's own would be the default."""

    sampled_loss: LossFunction
    _start_epoch: Callable[[TrainLoader, int], None]

    def _train_epoch(
        self,
        train_data: TrainLoader,
        epoch_idx: int,
        loss_func: LossFunction | None = None,
        show_progress: bool = False,
    ) -> Loss:
        self._start_epoch(train_data, epoch_idx)
        return super()._train_epoch(train_data, epoch_idx, loss_func or self.sampled_loss, show_progress)


def make_trainer(
    config: LayeredConfig, model: AbstractRecommender, trust: bool = False
) -> HNSTrainerMixin:
    """RecBole's trainer for the model, with hard negative sampling.

    Some RecBole trainers pass the loss on, some call the plain epoch without it (KG), some write the
    epoch anew (NCL): the mixin in front and the class behind catch them all. ``trust`` allows to read
    pickled checkpoints, RecBole's own, which can run code of whoever wrote them.
    """
    if not isinstance(config, LayeredConfig):
        raise Error(
            f"make_trainer takes recbole_hns.HNSConfig and not {type(config).__name__}, which knows no "
            "sampler: make the configuration with it."
        )
    base = get_trainer(config["MODEL_TYPE"], config["model"])
    behind = () if base is Trainer else (base,)
    bases = (HNSTrainerMixin, *behind, SampledLossTrainer)
    try:
        trainer: HNSTrainerMixin = type(f"HNS{base.__name__}", bases, {})(config, model, trust)
    except OSError as error:  # RecBole makes the folders of checkpoints and TensorBoard
        raise cannot_be_written(error.filename or config["checkpoint_dir"], error) from error
    return trainer


def _positives(config: LayeredConfig, train_data: AnyTrainLoader) -> TrainLoader:
    """RecBole's own loaders without their negatives; ours as they are."""
    is_ours = isinstance(getattr(train_data, "general_dataloader", train_data), PositiveLoader)
    return train_data if is_ours else positives_only(config, train_data)
