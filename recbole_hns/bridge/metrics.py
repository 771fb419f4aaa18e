"""OPAUC, NOPAUC and LLPAUC as RecBole metrics."""

from __future__ import annotations

from collections.abc import Iterable
from logging import getLogger
from typing import Any

import numpy as np
from recbole.config import Config
from recbole.evaluator.base_metric import AbstractMetric
from recbole.evaluator.collector import DataStruct
from recbole.utils import EvaluatorType

from recbole_hns.errors import Error
from recbole_hns.metrics.counts import RankCounts
from recbole_hns.metrics.partial_auc import check_beta, llpauc, nopauc, opauc, opauc_at_k

COUNTS = "rec.above"  # the name under which the collector hands over the counts
DEFAULTS = {"opauc_beta": [0.001, 0.01, 0.1, 1], "opauc_k": [], "llpauc_alpha": 0.5}


class PartialAUC(AbstractMetric):
    """A metric made of :class:`RankCounts`: a subclass names its keys and their values."""

    metric_type = EvaluatorType.RANKING
    metric_need = (COUNTS,)

    def __init__(self, config: Config):
        super().__init__(config)
        check_mode(config)
        settings = read_settings(config)
        self.betas, self.topk = settings["opauc_beta"], settings["opauc_k"]
        self.alpha = settings["llpauc_alpha"]

    def values(self, counts: RankCounts) -> dict[str, float]:
        """The metric's keys and values."""
        raise NotImplementedError

    def calculate_metric(self, dataobject: DataStruct) -> dict[str, float]:
        """RecBole's entry: round, and tell which users had to be left out."""
        counts, left_out = dataobject.get(COUNTS).with_negatives()
        if left_out:
            getLogger().warning(
                f"{type(self).__name__}: {left_out} users without a negative item are left out."
            )
        values = self.values(counts).items()
        return {key: round(value, self.decimal_place) for key, value in values}


class OPAUC(PartialAUC):
    """One-way partial AUC, keys ``opauc@β`` and ``opauc@k=K`` (:func:`.partial_auc.opauc`)."""

    def values(self, counts: RankCounts) -> dict[str, float]:
        """Every β of ``opauc_beta`` and every K of ``opauc_k``."""
        of_beta = {_key("opauc", beta): opauc(counts, beta) for beta in self.betas}
        return {**of_beta, **{f"opauc@k={k}": opauc_at_k(counts, k) for k in self.topk}}


class NOPAUC(PartialAUC):
    """Normalised OPAUC, keys ``nopauc@β``; ``nopauc@1`` is AUC (:func:`.partial_auc.nopauc`)."""

    def values(self, counts: RankCounts) -> dict[str, float]:
        """Every β of ``opauc_beta``."""
        return {_key("nopauc", beta): nopauc(counts, beta) for beta in self.betas}


class LLPAUC(PartialAUC):
    """Lower-left partial AUC with TPR ≤ ``llpauc_alpha``, keys ``llpauc@β``."""

    def values(self, counts: RankCounts) -> dict[str, float]:
        """Every β of ``opauc_beta``."""
        return {_key("llpauc", beta): llpauc(counts, self.alpha, beta) for beta in self.betas}


METRICS: dict[str, type[PartialAUC]] = {m.__name__.lower(): m for m in (OPAUC, NOPAUC, LLPAUC)}


def read_settings(config: Config) -> dict[str, Any]:
    """``opauc_beta``, ``opauc_k`` and ``llpauc_alpha`` of a configuration, checked.

    Raises:
        Error: for a value that makes no sense.
    """
    settings: dict[str, Any] = dict(DEFAULTS)
    for key in DEFAULTS:
        if key in config and config[key] is not None:
            settings[key] = config[key]
    for key in ("opauc_beta", "opauc_k"):
        if not isinstance(settings[key], (list, tuple)):
            settings[key] = [settings[key]]
    if not settings["opauc_beta"]:
        raise Error("opauc_beta is empty: give at least one false positive rate, e.g. [0.01, 1].")
    for beta in settings["opauc_beta"]:
        check_beta(beta)
    for k in settings["opauc_k"]:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise Error(f"opauc_k={k!r} is not allowed: a Top-K cut is a whole number of at least 1.")
    alpha = settings["llpauc_alpha"]
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 < alpha <= 1:
        raise Error(f"llpauc_alpha={alpha!r} is not allowed: a true positive rate is in (0, 1].")
    return settings


def check_mode(config: Config) -> None:
    """Refuse an evaluation without rankings."""
    mode = (config["eval_args"] or {}).get("mode", "full") if "eval_args" in config else "full"
    if "labeled" in (mode.values() if isinstance(mode, dict) else [mode]):
        raise Error(
            "OPAUC ranks positives among negatives, and eval_args mode=labeled has no negatives: use "
            "full, uni100 or pop100."
        )


def metric_keys(config: Config, metric: str) -> Iterable[str]:
    """The keys that one of our metrics will have under this configuration."""
    settings = read_settings(config)
    keys = [_key(metric, beta) for beta in settings["opauc_beta"]]
    return keys + [f"opauc@k={k}" for k in settings["opauc_k"] if metric == "opauc"]


def _key(metric: str, beta: float) -> str:
    return f"{metric}@{np.format_float_positional(beta, trim='-')}"
