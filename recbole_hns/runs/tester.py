"""RecBole's trainer with only what evaluation needs."""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING

import torch
from recbole.config import Config
from recbole.data.dataset import Dataset
from recbole.evaluator import Collector, Evaluator
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.trainer import Trainer
from recbole.utils import WandbLogger

from recbole_hns.errors import Error
from recbole_hns.training.finite import broken_score

if TYPE_CHECKING:
    from recbole.data.interaction import Interaction

    from recbole_hns.training.recbole_trainer import Scores


class Tester(Trainer):
    """Evaluates a model and writes nothing: the whole trainer opens folders to write to."""

    def __init__(self, config: Config, model: AbstractRecommender):
        self.config, self.model = config, model
        self.logger, self.wandblogger = getLogger(), WandbLogger(config)
        self.device, self.test_batch_size = config["device"], config["eval_batch_size"]
        self.gpu_available = torch.cuda.is_available() and config["use_gpu"]
        self.eval_collector, self.evaluator = Collector(config), Evaluator(config)
        self.item_tensor = self.tot_item_num = None

    def _full_sort_batch_eval(self, batched_data: object) -> Scores:
        return refuse_broken_scores(super()._full_sort_batch_eval(batched_data))

    def _neg_sample_batch_eval(self, batched_data: object) -> Scores:
        return refuse_broken_scores(super()._neg_sample_batch_eval(batched_data))

    def scores(
        self, interaction: Interaction, known: tuple[torch.Tensor, torch.Tensor], dataset: Dataset
    ) -> torch.Tensor:
        """The scores of all items, −inf for ``known`` (rows, items), as in full-sort evaluation."""
        if self.item_tensor is None:
            self.item_tensor = dataset.get_item_feature().to(self.device)
            self.tot_item_num = dataset.item_num
        with torch.no_grad():
            scores: torch.Tensor = self._full_sort_batch_eval((interaction, known, None, None))[1]
        return scores


def refuse_broken_scores(result: Scores) -> Scores:
    """What a batch's evaluation gave, if its scores are numbers."""
    broken = broken_score(result[1])
    if broken is not None:
        raise Error(f"a score is {broken}: the model had diverged when the checkpoint was written.")
    return result
