"""The kernels in plain torch, for any device, and readable: the reference of the Numba ones."""

from __future__ import annotations

from recbole_hns.kernels.torch.counting import bpr_over_all, negatives_above
from recbole_hns.kernels.torch.drawing import draw, first_above
from recbole_hns.kernels.torch.gradients import add_rows, score_backward, score_backward_rows
from recbole_hns.kernels.torch.scoring import score, top
from recbole_hns.kernels.torch.tree import draw_kernel

name = "torch"

__all__ = [
    "add_rows",
    "bpr_over_all",
    "draw",
    "draw_kernel",
    "first_above",
    "name",
    "negatives_above",
    "score",
    "score_backward",
    "score_backward_rows",
    "top",
]
