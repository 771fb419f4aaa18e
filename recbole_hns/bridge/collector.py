"""Makes the metrics known to RecBole, so that any RecBole evaluation can use them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from recbole.config import Config
from recbole.data.interaction import Interaction
from recbole.evaluator import register as recbole_register
from recbole.evaluator.collector import Collector, DataStruct

from recbole_hns.bridge.metrics import COUNTS, METRICS
from recbole_hns.errors import Error
from recbole_hns.kernels import Backend, get_kernels
from recbole_hns.metrics.counts import RankCounts, can_count

if TYPE_CHECKING:
    from recbole.data.dataloader import AbstractDataLoader
    from recbole.trainer import Trainer

TOPK = "rec.topk"  # RecBole's name for the hits among the top K


def register() -> None:
    """Add the metrics to RecBole's tables, and what they need to its collector.

    RecBole finds metrics by scanning one module of its own at import and keeps them in module-level
    dictionaries, which are added to here. The collector is extended, never replaced: where none of
    our metrics is asked for it collects what it always did. On a CPU the hits among the top K come from
    counting, too, which is faster than to sort them out. Registering again changes nothing.
    """
    if set(METRICS) <= set(recbole_register.metrics_dict):
        return
    for name, metric in METRICS.items():
        recbole_register.metrics_dict[name] = metric
        recbole_register.metric_information[name] = list(metric.metric_need)
        recbole_register.metric_types[name] = metric.metric_type

    Collector.eval_batch_collect = _counting(Collector.eval_batch_collect)
    Collector.get_data_struct = _handing_over(Collector.get_data_struct)


def _counting(collect_batch: Callable[..., None]) -> Callable[..., None]:
    """RecBole's collecting of a batch, with the counts."""

    def eval_batch_collect(
        self: Collector,
        scores_tensor: torch.Tensor,
        interaction: Interaction,
        positive_u: torch.Tensor,
        positive_i: torch.Tensor,
    ) -> None:
        asks = self.register
        counted = asks.need(TOPK) and can_count(scores_tensor, positive_u, positive_i)
        if counted or asks.need(COUNTS):
            kernels = _kernels(self.config, scores_tensor.device)
            counts = RankCounts.from_scores(scores_tensor, positive_u, positive_i, kernels)
        if counted:  # RecBole would copy all hits so far with every batch
            self.__dict__.setdefault("hits", []).append(counts.hits(max(self.topk)))
        else:
            _hand_over_hits(self)  # the order of the users stays
        if asks.need(COUNTS):
            _check_cut(self.config["opauc_k"], scores_tensor.shape[1] - 1)
            self.__dict__.setdefault("rank_counts", []).append(counts)
        with _left_out(asks, TOPK) if counted else nullcontext():
            collect_batch(self, scores_tensor, interaction, positive_u, positive_i)

    return eval_batch_collect


def _handing_over(
    get_data_struct: Callable[[Collector], DataStruct],
) -> Callable[[Collector], DataStruct]:
    """RecBole's handing over of what was collected, with the counts."""

    def get_data_struct_with_counts(self: Collector) -> DataStruct:
        _hand_over_hits(self)
        # RecBole moves everything to the CPU, also what is no tensor: counters and numbers.
        collected = self.data_struct._data_dict
        plain = {k: v for k, v in collected.items() if not isinstance(v, torch.Tensor)}
        for key in plain:
            del collected[key]
        struct = get_data_struct(self)
        for key, value in plain.items():
            self.data_struct.set(key, value)
            struct.set(key, value)
        if "rank_counts" in self.__dict__:
            struct.set(COUNTS, RankCounts.concatenate(self.__dict__.pop("rank_counts")))
        return struct

    return get_data_struct_with_counts


def _kernels(config: Config, device: torch.device) -> Backend:
    """Those of ``hns_backend``, where the configuration has it and the device allows it."""
    wanted = config["hns_backend"] if "hns_backend" in config else None  # noqa: SIM401 it has no get
    return get_kernels(wanted or "auto", device)


def _hand_over_hits(collector: Collector) -> None:
    if "hits" in collector.__dict__:
        collector.data_struct.update_tensor(TOPK, torch.cat(collector.__dict__.pop("hits")))


@contextmanager
def _left_out(register: recbole_register.Register, name: str) -> Iterator[None]:
    """Let the collector believe that no metric needs ``name``."""
    setattr(register, name, False)
    try:
        yield
    finally:
        setattr(register, name, True)


def _check_cut(topk: int | Sequence[int] | None, n_items: int) -> None:
    for k in [topk or 1] if topk is None or isinstance(topk, int) else topk:
        if k > n_items:
            raise Error(f"opauc_k={k} is not allowed: the data set has {n_items} items.")


def evaluate_counts(trainer: Trainer, eval_data: AbstractDataLoader) -> RankCounts:
    """The counts of a trained model on evaluation data, for anything beyond the metrics.

    ``trainer`` is a RecBole trainer with OPAUC, NOPAUC or LLPAUC among its ``metrics``.
    """
    if not trainer.eval_collector.register.need(COUNTS):
        raise Error("the counts are collected for OPAUC only: add OPAUC to metrics.")
    kept: list[RankCounts] = []
    evaluator = trainer.evaluator

    class Keep:
        def evaluate(self, struct: DataStruct) -> Any:
            kept.append(struct.get(COUNTS))
            return evaluator.evaluate(struct)

    trainer.evaluator = Keep()
    try:
        trainer.evaluate(eval_data, load_best_model=False)
    finally:
        trainer.evaluator = evaluator
    return kept[0]
