"""What the paper proves and simulates about OPAUC(β) and the Top-K metrics."""

from recbole_hns.theory.bounds import (
    Bounds,
    Interval,
    count_in_topk,
    recall_interval,
    topk_bounds,
    users_outside_bounds,
)
from recbole_hns.theory.correlation import CorrelationResult, correlation

__all__ = [
    "Bounds",
    "CorrelationResult",
    "Interval",
    "correlation",
    "count_in_topk",
    "recall_interval",
    "topk_bounds",
    "users_outside_bounds",
]
