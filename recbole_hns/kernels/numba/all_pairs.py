"""BPR over all of a user's negatives, in Numba: one exponential for all of the user's positives."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from recbole_hns.kernels.numba.base import Job, array, jit, split

TILE = 1024  # items at a time: what is summed for them stays in the nearest cache
REACH = 40.0  # e^±40 times e^±40 is a float still
FULL = math.exp(345)  # two such products are a double still


def bpr_over_all(
    r_ci: torch.Tensor, scores: torch.Tensor, owner: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The sums of ℓ and σ over all pairs of a user and all negatives; see the contract.

    With E_j = e^(r_cj − c) and a_i = e^(c − r_ci), c amid the user's positives, x = E_j a_i is
    e^(r_cj − r_ci): σ is x / (1 + x), and ℓ the logarithm of 1 + x, of which many are multiplied before
    one is taken. A user whose scores lie too far apart for that is summed element by element.
    """
    U = len(scores)
    first = np.searchsorted(owner.numpy(), np.arange(U + 1))
    low = np.minimum.reduceat(array(r_ci), first[:-1])
    high = np.maximum.reduceat(array(r_ci), first[:-1])
    centre, top = (low + high) / 2, scores.amax(dim=1).numpy()
    near = (top - centre <= REACH) & (high - low <= 2 * REACH)  # False for NaN
    values, sums = np.zeros(U), np.zeros(len(r_ci))
    for u in np.flatnonzero(~near):
        own = slice(first[u], first[u + 1])
        v = scores[u] - r_ci[own, None]  # (n, n_items)
        values[u] = F.softplus(v).sum(dtype=torch.float64)
        sums[own] = v.sigmoid_().sum(dim=1, dtype=torch.float64)
        scores[u] = v.sum(dim=0)
    a = np.exp(np.repeat(centre, np.diff(first)) - array(r_ci))
    # How many factors 1 + x a product may have.
    factors = (math.log(FULL) / np.logaddexp(0, np.maximum(top - low, -20.0))).astype(np.int64)
    rows = torch.from_numpy(np.flatnonzero(near))
    E = scores[rows].sub_(torch.from_numpy(centre[near])[:, None]).exp_()
    arrays = (rows.numpy(), E.numpy(), first, a, factors, values, sums)
    split(Job(_sum_rows, len(rows), arrays), work=E.numel())
    scores[rows] = E
    return torch.from_numpy(values).float(), torch.from_numpy(sums).float(), scores


@jit
def _sum_rows(begin, end, rows, E, first, a, factors, values, sums):
    n = E.shape[1]
    g, product = np.empty(TILE, np.float32), np.empty(TILE, np.float64)
    one = np.float32(1)
    for row in range(begin, end):
        u = rows[row]
        value = 0.0
        for start in range(0, n, TILE):
            e = E[row, start : start + TILE]
            g[:] = 0
            product[:] = 1
            left = factors[u]
            for i in range(first[u], first[u + 1]):
                if left == 0:
                    value += _log_of_product(product)
                    product[:] = 1
                    left = factors[u]
                left -= 1
                total = np.float32(0)
                for j in range(len(e)):
                    x = e[j] * a[i]
                    y = one + x
                    sigma = x / y
                    g[j] += sigma
                    total += sigma
                    product[j] *= y
                sums[i] += total
            value += _log_of_product(product)
            for j in range(len(e)):
                e[j] = g[j]
        values[u] = value


@jit
def _log_of_product(factors):
    """Σ log of factors of at most FULL, with few logarithms."""
    total, product = 0.0, 1.0
    for factor in factors:
        product *= factor
        if product > FULL:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)
