"""OPAUC and its family as functions of rank counts."""

from recbole_hns.metrics.counts import RankCounts
from recbole_hns.metrics.partial_auc import llpauc, nopauc, opauc, opauc_at_k

__all__ = ["RankCounts", "llpauc", "nopauc", "opauc", "opauc_at_k"]
