"""WARP against loops written from Weston, Bengio and Usunier (2011)."""

import numpy as np
import pytest
import torch
from conftest import fits, negatives_of, query_for, sampler_for

WARP = {"sampler": "warp", "max_trials": 30}


def draw_until_above(sampler, users, query, max_trials):
    kernels, line, bar = sampler.world.backend, sampler.source.line, query.r_ci - 1
    return kernels.first_above(line, users, query.vectors, bar, max_trials, sampler.generator)


def test_draws_until_the_first_violator_of_the_margin(tiny, backend):
    """The negative violates, and the t that was counted is geometric; χ² at α = 10⁻⁴, seed fixed."""
    sampler = sampler_for(tiny, backend, **WARP)
    users = torch.full((20_000,), 7)
    query = query_for(sampler, users)
    scores = (query.vectors.items @ query.vectors.context[7]).tolist()
    bar = scores[int(query.positives.ids[0, 0])] - 1
    negatives = negatives_of(sampler, 7)
    violators = [j for j in negatives if scores[j] > bar]
    share = len(violators) / len(negatives)
    assert 0.05 < share < 0.95

    ids, _, trials = draw_until_above(sampler, users, query, 30)
    found = trials > 0
    drawn = np.bincount(ids[found, 0], minlength=len(scores))
    assert drawn.sum() == drawn[violators].sum()
    assert fits(drawn[violators], np.full(len(violators), drawn.sum() / len(violators)))
    t = np.arange(1, 31)
    expected = np.append((1 - share) ** (t - 1) * share, (1 - share) ** 30) * len(users)
    observed = np.append(np.bincount(trials, minlength=31)[1:], (~found).sum())
    assert fits(observed, expected)


def test_the_weight_is_phi_of_the_estimated_rank(tiny):
    sampler = sampler_for(tiny, **WARP)
    users = torch.tensor([1, 2, 3, 4])
    trials = torch.tensor([1, 2, 17, 0])
    weights = sampler.weights(users, trials)
    for user, t, weight in zip(users.tolist(), trials.tolist(), weights.tolist()):
        rank = len(negatives_of(sampler, user)) // t if t else 0
        assert weight == pytest.approx(sum(1 / m for m in range(1, rank + 1)), rel=1e-6)


def test_the_estimated_rank_follows_the_true_one(tiny):
    """The estimate ⌊n₋ / t⌋ is near the number of violators, within a factor of 2, on average over t.

    E[1/t] = p log(1/p)/(1 − p) for a share p of violators: the known upward bias of WARP's estimate.
    """
    sampler = sampler_for(tiny, **{**WARP, "max_trials": 1000})
    users = torch.full((5000,), 7)
    query = query_for(sampler, users)
    scores = query.vectors.items @ query.vectors.context[7]
    bar = float(query.r_ci[0]) - 1
    negatives = negatives_of(sampler, 7)
    p = sum(float(scores[j]) > bar for j in negatives) / len(negatives)
    trials = draw_until_above(sampler, users, query, 1000)[2]
    estimate = float((len(negatives) / trials).mean())
    assert estimate == pytest.approx(len(negatives) * p * np.log(1 / p) / (1 - p), rel=0.05)


def test_the_loss_is_the_weighed_hinge_with_its_gradient(tiny, backend):
    sampler = sampler_for(tiny, backend, **WARP)
    users = torch.arange(1, 31)
    query = query_for(sampler, users)
    context, items = query.vectors.context, query.vectors.items
    for table in (context, items):
        table.requires_grad_()
    negatives = sampler.select(users, query)
    loss = negatives.loss(query, sampler.method.loss)
    gradients = torch.autograd.grad(loss, [context, items])

    expected = 0.0
    for b, user in enumerate(users):
        r_ci = context[user] @ items[int(query.positives.ids[b, 0])]
        r_cj = context[user] @ items[int(negatives.ids[b, 0])]
        expected = expected + negatives.weights[b, 0] * torch.relu(1 - r_ci + r_cj) / len(users)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
    reference = torch.autograd.grad(expected, [context, items])
    torch.testing.assert_close(gradients, reference, rtol=1e-4, atol=1e-6)


def test_no_violator_no_loss(tiny, backend):
    """Each context scores its own positive 5 and all else 0: nothing comes within the margin."""
    sampler = sampler_for(tiny, backend, **WARP)
    users = torch.tensor([1, 2])
    query = query_for(sampler, users)
    v = query.vectors
    v.context.zero_()
    v.items.zero_()
    for place, user in enumerate(users.tolist()):
        v.context[user, place] = 1
        v.items[int(query.positives.ids[place, 0]), place] = 5
    negatives = sampler.select(users, query)
    assert negatives.weights.tolist() == [[0.0], [0.0]]
    assert float(negatives.loss(query, sampler.method.loss)) == 0
