"""OPAUC and its family: RecBole metrics, and the same as functions of counts."""

from recbole_hns.evaluator.counts import RankCounts
from recbole_hns.evaluator.metrics import LLPAUC, NOPAUC, OPAUC
from recbole_hns.evaluator.partial_auc import llpauc, nopauc, opauc, opauc_at_k
from recbole_hns.evaluator.register import evaluate_counts, register

__all__ = [
    "LLPAUC",
    "NOPAUC",
    "OPAUC",
    "RankCounts",
    "evaluate_counts",
    "llpauc",
    "nopauc",
    "opauc",
    "opauc_at_k",
    "register",
]
