"""The kernels in Numba: no (B, N, d) tensor, and every core at work.

Each function splits its rows among threads that run compiled code without the GIL. Results do not
depend on the number of threads: every pair has a random stream of its own, and every row of a
gradient is summed by one thread in the order of the batch.
"""

from __future__ import annotations

from recbole_hns.kernels.numba.all_pairs import bpr_over_all
from recbole_hns.kernels.numba.counting import negatives_above
from recbole_hns.kernels.numba.drawing import draw
from recbole_hns.kernels.numba.gradients import add_rows, score_backward, score_backward_rows
from recbole_hns.kernels.numba.scoring import score, top
from recbole_hns.kernels.numba.tree import draw_kernel
from recbole_hns.kernels.numba.trials import first_above

name = "numba"

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
