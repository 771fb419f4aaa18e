"""AOBPR against the distribution of Rendle and Freudenthaler (2014), summed by loops."""

import math

import numpy as np
import pytest
import torch
from conftest import fits, negatives_of, query_for, sampler_for

from recbole_hns.sampling import Method, Positives, World, pools, rules

AOBPR = {"sampler": "aobpr", "lam": 6.0}


def exact_distribution(context, items, lam):
    """p(j | c) = Σ_f p(f | c) p(r_f(j)) over items 1, 2, …, by the definition."""
    n_items = len(items) - 1
    d = len(context)
    columns = [[float(items[j][f]) for j in range(1, n_items + 1)] for f in range(d)]
    sigma = [np.std(column) for column in columns]
    p_factor = np.array([abs(float(context[f])) * sigma[f] for f in range(d)])
    p_factor /= p_factor.sum()
    p_rank = np.array([math.exp(-r / lam) for r in range(1, n_items + 1)])
    p_rank /= p_rank.sum()
    p = np.zeros(n_items + 1)
    for f in range(d):
        best_first = sorted(range(n_items), key=lambda j: -columns[f][j])
        if float(context[f]) < 0:
            best_first.reverse()
        for r, j in enumerate(best_first):
            p[j + 1] += p_factor[f] * p_rank[r]
    return p


@pytest.mark.parametrize("user", [3, 8])
def test_negatives_follow_factor_and_rank(tiny, backend, user):
    """χ² at α = 10⁻⁴, seed fixed; positives of the user are left out and the rest scaled up."""
    sampler = sampler_for(tiny, backend, N=4, **AOBPR)
    users = torch.full((10_000,), user)
    query = query_for(sampler, users)
    v = query.vectors
    assert (v.context[user] < 0).any()
    assert (v.context[user] > 0).any()
    drawn = np.bincount(sampler.select(users, query).ids.flatten(), minlength=sampler.world.n_items)
    p = exact_distribution(v.context[user], v.items, 6.0)
    negatives = negatives_of(sampler, user)
    assert drawn.sum() == drawn[negatives].sum()
    assert fits(drawn[negatives], p[negatives] / p[negatives].sum() * drawn.sum())


@pytest.mark.parametrize("lam", [0.7, 6.0, 500.0])
def test_ranks_are_geometric(tiny, lam):
    sampler = sampler_for(tiny, sampler="aobpr", lam=lam)
    query = query_for(sampler, torch.tensor([1]))
    sampler.source.renew(query.vectors.items)
    ranks = np.bincount(sampler.source.draw_ranks(50_000, 20), minlength=20)
    p = np.exp(-np.arange(20) / lam)
    assert fits(ranks, p / p.sum() * 50_000)


def test_the_order_is_renewed_every_n_log_n_draws_and_every_epoch(tiny):
    sampler = sampler_for(tiny, N=1, **AOBPR)
    n_items = sampler.world.n_items - 1
    users = torch.arange(1, 41)
    renewals = []
    original = sampler.source.renew
    sampler.source.renew = lambda items: (renewals.append(1), original(items))[1]
    query = query_for(sampler, users)
    for _ in range(math.ceil(n_items * math.log(n_items) / 40)):
        sampler.select(users, query)
    assert len(renewals) == 1
    sampler.select(users, query)
    assert len(renewals) == 2
    sampler.start_epoch(1)
    sampler.select(users, query)
    assert len(renewals) == 3


def test_a_user_with_one_negative_gets_it(backend):
    """However low it ranks: the draw ends."""
    only, n_items = 9, 60
    taken = np.setdiff1d(np.arange(1, n_items), [only])
    everything = Positives(np.ones_like(taken), taken, 3, n_items)
    method = Method(pools.AOBPR(lam=0.5), rules.Uniform(), N=1)
    sampler = method.open(World(everything, hns_backend=backend))
    users = torch.tensor([1, 1, 1])
    assert sampler.select(users, query_for(sampler, users)).ids.tolist() == [[only]] * 3


def test_a_resumed_epoch_goes_on_with_the_order_it_began_with(tiny):
    """The order is that of the vectors at the last renewal, not of those at the checkpoint."""
    first, second = (sampler_for(tiny, N=1, **AOBPR) for _ in range(2))
    users = torch.arange(1, 41)
    first.select(users, query_for(first, users, seed=1))
    later = query_for(first, users, seed=2)
    second.load_state_dict(first.state_dict())
    assert second.source.drawn == 40
    second.generator.set_state(first.generator.get_state())
    assert torch.equal(first.select(users, later).ids, second.select(users, later).ids)
