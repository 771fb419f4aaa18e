"""AdaSIR: pools that follow the softmax distribution, renewed once an epoch."""

import numpy as np
import pytest
import torch
from conftest import negatives_of, query_for, sampler_for

from recbole_hns.errors import Error

ADASIR = {"pool_size": 50, "proposals": 200, "keep": 0.5, "N": 5}


@pytest.mark.parametrize("name", ["adasir_u", "adasir_p"])
def test_the_pool_approaches_the_softmax_distribution_as_the_proposal_grows(tiny, backend, name):
    """Total variation to softmax(r/τ) over the user's (drawable) negatives, over 4000 resamplings."""
    distances = []
    for proposals in (1, 10, 1000):
        sampler = sampler_for(tiny, backend, sampler=name, **{**ADASIR, "proposals": proposals})
        users = torch.full((4000,), 6)
        query = query_for(sampler, users, scale=0.7)
        v = query.vectors
        pools = sampler.source.resample(users, query)
        share = np.bincount(pools.flatten(), minlength=sampler.world.n_items) / pools.numel()
        drawable = [j for j in negatives_of(sampler, 6) if name == "adasir_u" or sampler.world.counts[j]]
        assert share[drawable].sum() == pytest.approx(1)
        target = torch.softmax(v.items[drawable] @ v.context[6], dim=0).numpy()
        distances.append(abs(share[drawable] - target).sum() / 2)
    assert distances[0] > 2 * distances[1] > 4 * distances[2]
    assert distances[2] < 0.05


def test_every_pool_is_renewed_once_an_epoch_and_half_of_it_stays(tiny, backend):
    sampler = sampler_for(tiny, backend, sampler="adasir_u", **{**ADASIR, "pool_size": 500})
    users = torch.arange(1, 41).repeat(3)
    query = query_for(sampler, users, scale=0)
    sampler.select(users, query)
    first = sampler.source.pools.clone()
    sampler.select(users, query)
    assert torch.equal(sampler.source.pools, first)
    sampler.start_epoch(1)
    sampler.select(users, query)
    same = (sampler.source.pools[1:] == first[1:]).float().mean(dim=1)
    for user in range(1, 41):  # a slot drawn anew is the same item again now and then
        chance = 1 / len(negatives_of(sampler, user))
        assert float(same[user - 1]) == pytest.approx(0.5 + 0.5 * chance, abs=0.1)


def test_a_pool_is_resampled_by_the_first_pair_of_its_user(tiny, backend):
    """Each user's vector decides about the user's own pool, in whatever order the batch comes."""
    sampler = sampler_for(tiny, backend, sampler="adasir_u", **{**ADASIR, "proposals": 2000})
    users = torch.tensor([9, 3, 9, 12, 3])
    query = query_for(sampler, users)
    favourite = {user: negatives_of(sampler, user)[user] for user in (3, 9, 12)}
    query.vectors.context.zero_()
    query.vectors.items.zero_()
    for place, user in enumerate((3, 9, 12)):
        query.vectors.context[user, place] = 1
        query.vectors.items[favourite[user], place] += 20
    sampler.source.renew(users, query)
    for user in (3, 9, 12):
        assert (sampler.source.pools[user] == favourite[user]).all()
    assert (sampler.source.pools[[1, 2, 4]] == 0).all()


def test_negatives_come_from_the_users_pool_and_weigh_alike(tiny, backend):
    sampler = sampler_for(tiny, backend, sampler="adasir_p", **ADASIR)
    users = torch.arange(1, 41)
    negatives = sampler.select(users, query_for(sampler, users))
    assert (negatives.weights == 1 / 5).all()
    for user, row in zip(users.tolist(), negatives.ids.tolist()):
        pool = set(sampler.source.pools[user].tolist())
        assert set(row) <= pool <= set(negatives_of(sampler, user))


def test_pools_take_users_times_pool_size_numbers(tiny):
    sampler = sampler_for(tiny, sampler="adasir_u", **ADASIR)
    pools = sampler.state_dict()["pools"]
    assert pools.shape == (41, 50)
    assert pools.element_size() == 4


@pytest.mark.parametrize(("name", "key"), [("adasir_u", "pools"), ("aobpr", "order")])
@pytest.mark.parametrize("wrong", [-1, 60, 2**30, 0.5])
def test_a_saved_state_that_names_no_item_is_refused(tiny, name, key, wrong):
    """Kernels look the numbers up without a question: a wrong one reads memory that is none of ours."""
    settings = {**ADASIR} if name == "adasir_u" else {"lam": 10, "N": 5}
    sampler = sampler_for(tiny, sampler=name, **settings)
    assert sampler.world.n_items == 60  # with the padding
    sampler.select(torch.tensor([1, 2]), query_for(sampler, torch.tensor([1, 2])))
    state = {name: v.clone() if torch.is_tensor(v) else v for name, v in sampler.state_dict().items()}
    sampler.load_state_dict(state)
    bad = state[key].double() if isinstance(wrong, float) else state[key].clone()
    bad[0, 0] = wrong
    with pytest.raises(Error, match="names items beyond the 59 that there are"):
        sampler.load_state_dict({**state, key: bad})
