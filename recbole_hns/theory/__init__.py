"""What the paper proves and simulates about OPAUC(β) and the Top-K metrics."""

from recbole_hns.theory.bounds import Bounds, count_in_topk, topk_bounds, users_outside_bounds
from recbole_hns.theory.correlation import CorrelationResult, correlation

__all__ = [
    "Bounds",
    "CorrelationResult",
    "correlation",
    "count_in_topk",
    "topk_bounds",
    "users_outside_bounds",
]
