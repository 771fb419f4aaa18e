"""RecBole's trainer, with the types that it does not have: what our parts of a trainer build on."""

from __future__ import annotations

from collections.abc import Callable
from logging import Logger
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from recbole.trainer import Trainer

if TYPE_CHECKING:
    from recbole.data.dataloader import KnowledgeBasedDataLoader, TrainDataLoader
    from recbole.data.interaction import Interaction
    from recbole.model.abstract_recommender import AbstractRecommender
    from torch.utils.tensorboard import SummaryWriter

    from recbole_hns.bridge.config import LayeredConfig
    from recbole_hns.data.loader import TrainLoader
    from recbole_hns.models.scorer import BatchLoss

    Loss = float | tuple[float, ...]  # of an epoch; a model's loss may have parts
    LossFunction = Callable[[Interaction], BatchLoss]
    Scores = tuple[Interaction, torch.Tensor, Any, Any]  # of an evaluation batch, its second
    AnyTrainLoader: TypeAlias = TrainLoader | TrainDataLoader | KnowledgeBasedDataLoader

    class RecBoleTrainer:
        """What we use of it."""

        config: LayeredConfig
        model: AbstractRecommender
        logger: Logger
        device: torch.device
        optimizer: torch.optim.Optimizer
        tensorboard: SummaryWriter
        saved_model_file: str
        learning_rate: float
        enable_amp: bool
        epochs: int
        eval_step: int
        stopping_step: int
        start_epoch: int
        cur_step: int
        valid_metric_bigger: bool
        best_valid_score: float
        best_valid_result: dict[str, float] | None
        train_loss_dict: dict[int, float]

        def __init__(self, config: LayeredConfig, model: AbstractRecommender) -> None: ...

        def fit(
            self,
            train_data: AnyTrainLoader,
            valid_data: object = None,
            verbose: bool = True,
            saved: bool = True,
            show_progress: bool = False,
            callback_fn: Callable[[int, float], None] | None = None,
        ) -> tuple[float, dict[str, float] | None]: ...

        def evaluate(
            self,
            eval_data: object,
            load_best_model: bool = True,
            model_file: str | None = None,
            show_progress: bool = False,
        ) -> dict[str, float] | None: ...

        def resume_checkpoint(self, resume_file: str) -> None: ...

        def _train_epoch(
            self,
            train_data: TrainLoader,
            epoch_idx: int,
            loss_func: LossFunction | None = None,
            show_progress: bool = False,
        ) -> Loss: ...

        def _valid_epoch(
            self, valid_data: object, show_progress: bool = False
        ) -> tuple[float, dict[str, float]]: ...

        def _build_optimizer(self, **kwargs: object) -> torch.optim.Optimizer: ...

        def _save_checkpoint(self, epoch: int, verbose: bool = True, **kwargs: str) -> None: ...

        def _check_nan(self, loss: torch.Tensor) -> None: ...

        def _full_sort_batch_eval(self, batched_data: object) -> Scores: ...

        def _neg_sample_batch_eval(self, batched_data: object) -> Scores: ...

else:
    RecBoleTrainer = Trainer
