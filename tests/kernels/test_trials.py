"""Draws until a score is above a bar, against its definition, on both backends."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from random_lines import assert_follows, random_case

from recbole_hns.kernels import Vectors


@pytest.fixture(params=[0, 1], ids=["from_0", "padded"])
def case(request):
    return random_case(request.param)


@pytest.fixture
def scores():
    """r_cj = j for the one context there is."""
    return Vectors(torch.ones(1, 1), torch.zeros(20_000, dtype=torch.long), torch.arange(30.0)[:, None])


@pytest.mark.parametrize(("above", "max_trials"), [(0.2, 30), (0.8, 3)])
def test_the_first_above_is_any_violator_after_a_geometric_number_of_draws(
    kernels, case, scores, generator, above, max_trials
):
    """Of each t from 1 to ``max_trials``, and of no violator at all, at least five are expected."""
    user = 4
    negatives = case.negatives(user)
    bar = negatives[int(len(negatives) * (1 - above))] - 0.5
    violators = [j for j in negatives if j > bar]
    share = len(violators) / len(negatives)
    users = torch.full((20_000,), user)
    ids, found, trials = kernels.first_above(
        case.line, users, scores, torch.full((20_000,), bar), max_trials, generator
    )
    assert torch.equal(found, ids.float())
    uniform = np.isin(np.arange(30), violators) / len(violators)
    assert_follows(ids[trials > 0, 0].numpy(), uniform)
    t = np.arange(1, max_trials + 1)
    assert_follows(trials.numpy(), np.append((1 - share) ** max_trials, (1 - share) ** (t - 1) * share))


@pytest.mark.parametrize("max_trials", [1, 7, 40])
def test_where_none_is_above_the_last_draw_stands_with_0_trials(
    kernels, case, scores, generator, max_trials
):
    users = torch.arange(12).repeat(1667)[:20_000]
    ids, found, trials = kernels.first_above(
        case.line, users, scores, torch.full((20_000,), 29.0), max_trials, generator
    )
    assert (trials == 0).all()
    assert torch.equal(found, ids.float())
    for user in range(12):
        assert set(ids[users == user, 0].tolist()) == set(case.negatives(user))


def test_a_nan_score_counts_as_above(kernels, case, scores, generator):
    items = torch.full_like(scores.items, torch.nan)
    users = torch.zeros(20_000, dtype=torch.long)
    v, bar = scores._replace(items=items), torch.full((20_000,), torch.inf)
    _, found, trials = kernels.first_above(case.line, users, v, bar, 5, generator)
    assert (trials == 1).all()
    assert found.isnan().all()
