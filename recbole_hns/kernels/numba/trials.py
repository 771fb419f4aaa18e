"""Draws until a candidate scores high enough."""

from __future__ import annotations

import numpy as np
import torch

from recbole_hns.kernels.line import Line
from recbole_hns.kernels.numba.base import GOLDEN, Job, arrays_of, jit, mix, new_seed, split
from recbole_hns.kernels.numba.drawing import FEW_DRAWS, arrays_of_line, draw_any, draw_own, mark
from recbole_hns.kernels.numba.scoring import score_row
from recbole_hns.kernels.types import Vectors

AT_ONCE = 16  # draws of one pair that are under way at a time


def first_above(
    line: Line,
    users: torch.Tensor,
    v: Vectors,
    bar: torch.Tensor,
    max_trials: int,
    generator: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw for each pair until a score is above its bar; see the contract."""
    ids = torch.empty((len(users), 1), dtype=torch.int32)
    scores = torch.empty((len(users), 1), dtype=torch.float32)
    trials = torch.empty(len(users), dtype=torch.int64)
    inputs = (users.numpy(), new_seed(generator), arrays_of_line(line), arrays_of(v), bar.numpy())
    out = (ids.numpy(), scores.numpy(), trials.numpy())
    split(Job(_first_above_rows, len(users), (*inputs, max_trials, out)), work=4 * len(users))
    return ids, scores, trials


@jit
def _first_above_rows(first, last, users, seed, line, v, bar, max_trials, out):
    ids, scores, trials = out
    some, their_scores = np.empty(AT_ONCE, dtype=np.int32), np.empty(AT_ONCE, dtype=np.float32)
    taken = np.zeros(line.n_items, dtype=np.bool_)
    for b in range(first, last):
        u, c = users[b], v.context[v.rows[b]]
        state = mix(seed + np.uint64(b) * GOLDEN)
        state_own = mix(state)
        trials[b] = 0
        marked = False
        t = 0
        while t < max_trials and trials[b] == 0:
            count = min(1 if t < FEW_DRAWS else AT_ONCE, max_trials - t)
            if t >= FEW_DRAWS and not marked:  # only now worth a list of what is taken
                marked = True
                mark(taken, u, line, True)
            for k in range(count):
                j = draw_any(state + np.uint64(t + k) * GOLDEN, line)
                if not marked or taken[j]:
                    j = draw_own(state_own + np.uint64(t + k) * GOLDEN, u, line)
                some[k] = j
            score_row(c, v.items, some[:count], their_scores)
            for k in range(count):
                ids[b, 0], scores[b, 0] = some[k], their_scores[k]
                if not (scores[b, 0] <= bar[b]):  # NaN counts as above
                    trials[b] = t + k + 1
                    break
            t += count
        if marked:
            mark(taken, u, line, False)
