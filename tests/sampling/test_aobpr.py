"""AOBPR against the distribution of Rendle and Freudenthaler (2014), summed by loops."""

import math

import numpy as np
import pytest
import torch
from conftest import fits, negatives_of, query_for, sampler_for

from recbole_hns.sampling.pools import _draw_tables
from recbole_hns.sampling.positives import Positives

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
    assert (query.context[user] < 0).any()
    assert (query.context[user] > 0).any()
    drawn = np.bincount(sampler.select(users, query).ids.flatten(), minlength=sampler.pool.item_num)
    p = exact_distribution(query.context[user], query.items, 6.0)
    negatives = negatives_of(sampler, user)
    assert drawn.sum() == drawn[negatives].sum()
    assert fits(drawn[negatives], p[negatives] / p[negatives].sum() * drawn.sum())


@pytest.mark.parametrize("lam", [0.7, 6.0, 500.0])
def test_ranks_are_geometric(tiny, lam):
    sampler = sampler_for(tiny, sampler="aobpr", lam=lam)
    query = query_for(sampler, torch.tensor([1]))
    sampler.renew(query.items)
    ranks = np.bincount(sampler.draw_ranks(50_000, 20), minlength=20)
    p = np.exp(-np.arange(20) / lam)
    assert fits(ranks, p / p.sum() * 50_000)


def test_the_order_is_renewed_every_n_log_n_draws_and_every_epoch(tiny):
    sampler = sampler_for(tiny, N=1, **AOBPR)
    n_items = sampler.pool.item_num - 1
    users = torch.arange(1, 41)
    renewals = []
    original = sampler.renew
    sampler.renew = lambda items: (renewals.append(1), original(items))
    query = query_for(sampler, users)
    for _ in range(math.ceil(n_items * math.log(n_items) / 40)):
        sampler.select(users, query)
    assert len(renewals) == 1
    sampler.select(users, query)
    assert len(renewals) == 2
    sampler.start_epoch(1)
    sampler.select(users, query)
    assert len(renewals) == 3


def test_a_user_with_one_negative_gets_it(tiny, backend):
    """However low it ranks: the draw ends."""
    sampler = sampler_for(tiny, backend, sampler="aobpr", lam=0.5)
    only, n_items = 9, sampler.pool.item_num
    taken = np.setdiff1d(np.arange(1, n_items), [only])
    everything = Positives(np.ones_like(taken), taken, sampler.pool.user_num, n_items)
    sampler.pool.tables = _draw_tables(everything, None)
    users = torch.tensor([1, 1, 1])
    query = query_for(sampler, users)
    assert sampler.select(users, query).ids.tolist() == [[only]] * 3
