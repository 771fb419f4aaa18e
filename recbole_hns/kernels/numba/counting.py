"""Ranks of positives by counting, not by sorting."""

from __future__ import annotations

import numpy as np
import torch

from recbole_hns.kernels.numba.base import Job, array, jit, split


def negatives_above(
    scores: torch.Tensor, first: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Negatives above each positive, ties one half; ties; and items that take part per user."""
    above, tied = (torch.empty(len(values), dtype=torch.float64) for _ in range(2))
    n_items = torch.empty(len(scores), dtype=torch.int64)
    counted = (above.numpy(), tied.numpy(), n_items.numpy())
    arrays = (array(scores), first.numpy(), array(values), *counted)
    passes = len(values) + len(scores)  # over a row; each as much as scores.shape[1] / 16 short vectors
    split(Job(_negatives_above, passes, arrays), work=passes * scores.shape[1] // 16)
    return above, tied, n_items


@jit
def _negatives_above(first_pass, last_pass, scores, first, values, above, tied, n_items):
    """The users whose passes begin in the stretch: threads share passes evenly, and no user."""
    one, zero = np.float32(1), np.float32(0)  # SIMD counts floats at twice the speed of whole numbers
    for u in range(scores.shape[0]):
        if not first_pass <= first[u] + u < last_pass:
            continue
        row = scores[u]
        finite, proper = zero, zero
        for i in range(row.shape[0]):
            finite += one if row[i] > -np.inf else zero
            proper += one if row[i] >= -np.inf else zero  # all but NaN
        n_items[u] = np.int64(finite) if proper == row.shape[0] else -1
        for p in range(first[u], first[u + 1]):
            value = values[p]
            greater, at_least = zero, zero
            for i in range(row.shape[0]):
                greater += one if row[i] > value else zero
                at_least += one if row[i] >= value else zero
            for q in range(first[u], first[u + 1]):  # the user's positives are no negatives
                greater -= one if values[q] > value else zero
                at_least -= one if values[q] >= value else zero
            above[p] = (greater + at_least) / 2
            tied[p] = at_least - greater
