"""Losses, parameters and scores that stay numbers, or the run ends with a sentence."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from recbole_hns.errors import Error
from recbole_hns.training.history import HistoryMixin

if TYPE_CHECKING:
    from recbole_hns.training.recbole_trainer import Scores


def broken_score(scores: torch.Tensor) -> float | None:
    """NaN or inf if one is among the scores, in one pass; −inf marks items that are left out."""
    top = scores.max().item()  # NaN where one score is
    return top if math.isnan(top) or top == math.inf else None


def broken_parameter(model: torch.nn.Module) -> str | None:
    """The name of a parameter that is not finite."""
    for name, value in model.named_parameters():
        # One pass without a mask; a sum may overflow where no number does.
        if not torch.isfinite(value.sum()) and not torch.isfinite(value).all():
            return name
    return None


class FiniteMixin(HistoryMixin):
    """Looks at every loss, at the parameters after every epoch and at the scores of an evaluation."""

    def _check_nan(self, loss: torch.Tensor) -> None:
        """RecBole's hook, called with every batch's loss."""
        value, now = loss.item(), self.so_far
        if not math.isfinite(value):
            raise self._diverged(f"the loss is {value} in epoch {now.epoch}, batch {now.batch}")

    def _full_sort_batch_eval(self, batched_data: object) -> Scores:
        return self._with_finite_scores(super()._full_sort_batch_eval(batched_data))

    def _neg_sample_batch_eval(self, batched_data: object) -> Scores:
        return self._with_finite_scores(super()._neg_sample_batch_eval(batched_data))

    def _with_finite_scores(self, result: Scores) -> Scores:
        broken = broken_score(result[1])
        if broken is not None:
            raise self._diverged(
                f"a score is {broken} in the evaluation after epoch {self.so_far.epoch}"
            )
        return result

    def _refuse_broken_parameters(self) -> None:
        name, now = broken_parameter(self.model), self.so_far
        if name is not None:
            raise self._diverged(
                f"{name} is no longer finite after {now.batch} batches of epoch {now.epoch}"
            )

    def _diverged(self, what: str) -> Error:
        remedy = f"try a learning_rate below {self.learning_rate}"
        if self.enable_amp:
            remedy += ", or enable_amp=False, as numbers overflow sooner in mixed precision"
        good = self._good_checkpoint()
        kept = f" The last good checkpoint is kept: {good}." if good else ""
        return Error(f"{what}: the model has diverged, {remedy}.{kept}")

    def _good_checkpoint(self) -> Path | None:
        """A file of this run from before."""
        return None
