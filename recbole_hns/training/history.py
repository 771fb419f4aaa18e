"""The rows of a run's epochs, and how far the one that runs has come."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from recbole_hns.training.recbole_trainer import RecBoleTrainer

if TYPE_CHECKING:
    from recbole.model.abstract_recommender import AbstractRecommender

    from recbole_hns.bridge.config import LayeredConfig
    from recbole_hns.models.scorer import BatchLoss
    from recbole_hns.training.hardness import Hardness
    from recbole_hns.training.recbole_trainer import Loss


class _Trained(TypedDict):
    epoch: int
    train_loss: float
    train_seconds: float


class EpochRow(_Trained, total=False):
    """An epoch, with its validation if there was one."""

    hardness: Hardness  # measured at its first batch
    valid_seconds: float
    score: float
    valid: dict[str, float]
    best: bool  # so far


def seconds_of(history: Iterable[EpochRow]) -> float:
    """The time that epochs took."""
    return sum(row["train_seconds"] + row.get("valid_seconds", 0) for row in history)


@dataclass
class EpochSoFar:
    """What a run that goes on within an epoch has to know of it."""

    epoch: int = 0
    batch: int = 0  # the number of batches that are done
    loss: Loss | None = None  # their sum
    seconds: float = 0.0
    looked: bool = False  # at its negatives
    hardness: Hardness | None = None  # what was seen
    _started: float = field(default_factory=time.perf_counter)

    def begin(self, epoch: int) -> None:
        """Another epoch, of which nothing is done."""
        self.epoch, self.batch, self.loss, self.seconds = epoch, 0, None, 0.0
        self.looked, self.hardness = False, None

    def look(self, hardness: Hardness | None) -> None:
        """Keep what was measured; the epoch is not measured again."""
        self.looked, self.hardness = True, hardness

    def start_clock(self) -> None:
        """Now."""
        self._started = time.perf_counter()

    def stop_clock(self) -> None:
        """Count the time since it was started."""
        self.seconds += time.perf_counter() - self._started

    def add(self, loss: BatchLoss) -> None:
        """Count a batch's loss, in the order and the precision of RecBole's own sum."""
        if isinstance(loss, tuple):
            parts = tuple(part.item() for part in loss)
            before = self.loss if isinstance(self.loss, tuple) else (0.0,) * len(parts)
            self.loss = tuple(map(sum, zip(before, parts)))
        else:
            self.loss = (self.loss if isinstance(self.loss, float) else 0.0) + loss.item()

    def row(self, loss: Loss) -> EpochRow:
        """The epoch, once it is over."""
        total = sum(loss) if isinstance(loss, tuple) else loss
        row: EpochRow = {"epoch": self.epoch, "train_loss": total, "train_seconds": self.seconds}
        if self.hardness is not None:
            row["hardness"] = self.hardness
        return row


class HistoryMixin(RecBoleTrainer):
    """Keeps a row for each epoch."""

    def __init__(self, config: LayeredConfig, model: AbstractRecommender):
        super().__init__(config, model)
        self.history: list[EpochRow] = []
        self.so_far = EpochSoFar()

    def _valid_epoch(
        self, valid_data: object, show_progress: bool = False
    ) -> tuple[float, dict[str, float]]:
        start = time.perf_counter()
        score, result = super()._valid_epoch(valid_data, show_progress)
        seen = [row["score"] for row in self.history if "score" in row]
        best = all(score >= other if self.valid_metric_bigger else score <= other for other in seen)
        row = self.history[-1]
        row["valid_seconds"] = time.perf_counter() - start
        row["score"], row["valid"], row["best"] = score, result, best
        return score, result
