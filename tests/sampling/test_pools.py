"""Pools that draw by fixed weights: positives left out, exact q, blocks, and refusals."""

import numpy as np
import pytest
import torch
from conftest import negatives_of, sampler_for
from scipy.sparse import csr_matrix
from scipy.stats import chisquare

from recbole_hns import Error
from recbole_hns.kernels import Candidates
from recbole_hns.sampling import Method, World, pools, rules

POOLS = [pools.Uniform(), pools.Popularity(), pools.Popularity(alpha=0.5)]


@pytest.fixture
def world(backend):
    """12 users from no positive at all to all of 30 items but one; popular items more often."""
    rng = np.random.default_rng(1)
    matrix = np.zeros((12, 30), dtype=int)
    for user, size in enumerate(np.linspace(0, 29, 12).astype(int)):
        matrix[user, rng.choice(30, size, replace=False, p=np.arange(30, 0, -1) / 465)] = 1
    return World(csr_matrix(matrix), 1 + np.arange(30) ** 2, hns_backend=backend, seed=7)


def q_of(pool, world, user):
    """q(j | c) ∝ count_j^α over the user's negatives, by definition."""
    q = np.ones(world.n_items)
    if isinstance(pool, pools.Popularity):
        q = np.array([float(count) ** pool.alpha for count in world.counts])
    q[list(world.positives[user])] = 0
    return q / q.sum()


# A block of 4 holds each user once, so that a user's draws stay independent.
@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_draws_and_log_q_follow_the_definition(world, pool, block):
    """χ² at α = 10⁻⁴, seed fixed; nothing that the user took."""
    source = pool.open(world, block)
    users = torch.arange(12).repeat(1000)
    candidates = source.draw(users, 20)
    log_q = source.log_q(users, candidates, candidates)
    for user in range(12):
        q = q_of(pool, world, user)
        ids = candidates.ids[users == user]
        drawn = np.bincount(ids.flatten(), minlength=len(q))
        assert drawn[q == 0].sum() == 0
        if (q > 0).sum() > 1:
            assert chisquare(drawn[q > 0], 20_000 * q[q > 0]).pvalue > 1e-4
        own = log_q[users == user].expand(1000, 20)
        np.testing.assert_allclose(own, np.log(q[ids]), atol=1e-5)


def test_candidates_of_a_block_are_shared_but_for_what_a_user_took(world):
    users = torch.arange(12)
    candidates = pools.Uniform().open(world, block=4).draw(users, 50)
    for b, user in enumerate(users.tolist()):
        shared = candidates.shared.ids[b // 4]
        kept = torch.tensor([int(j) not in world.positives[user] for j in shared])
        assert torch.equal(candidates.ids[b, kept], shared[kept])
        assert not set(candidates.ids[b].tolist()) & world.positives[user]


@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_log_q_of_the_chosen_is_that_of_the_drawn(world, pool):
    """DNS hands on some of the candidates: what is known of their draw is found again."""
    source, users = pool.open(world), torch.arange(12)
    drawn = source.draw(users, 20)
    place = torch.randint(20, (12, 5), generator=torch.Generator().manual_seed(2))
    chosen = Candidates(drawn.ids.gather(1, place))
    everyone = source.log_q(users, drawn, drawn).expand(12, 20)
    found = source.log_q(users, drawn, chosen).expand(12, 5)
    torch.testing.assert_close(found, everyone.gather(1, place))


def test_a_uniform_pool_needs_no_log_q(world):
    assert pools.Uniform().open(world).draw(torch.tensor([1, 2]), 5).log_q is None


@pytest.mark.parametrize("alpha", [0.0, 0.75, 1.0, 60.0])
def test_weights_are_whole_numbers_in_proportion_to_counts_to_the_power(alpha):
    """Also where count^α overflows: the greatest count weighs the most, the least one at least 1."""
    counts = np.array([0, 3, 1, 10_000_000, 500])
    world = World(csr_matrix(np.eye(3, 5)), counts)
    weights = pools.Popularity(alpha=alpha).weights(world)
    assert weights.dtype == np.int64
    assert weights[0] == (alpha == 0)  # nobody took it; α = 0 makes all alike
    assert (weights[1:] >= 1).all()
    expected = (counts[1:] / counts.max()) ** alpha
    np.testing.assert_allclose(weights[1:] / weights.max(), expected, rtol=1e-4, atol=1e-9)


def test_counts_that_are_whole_numbers_are_weights_as_they_are(world):
    assert pools.Popularity().weights(world).tolist() == world.counts.tolist()


def test_popularity_refuses_a_user_who_took_everything_with_a_count():
    taken = csr_matrix([[1, 1, 0, 0], [0, 1, 0, 0]])
    with pytest.raises(Error, match=r"pool=popularity cannot draw for user 0, who .* pool=uniform"):
        pools.Popularity().open(World(taken))


def test_counts_of_a_run_are_those_of_its_training_set(tiny):
    """By hand, over RecBole's data set."""
    sampler = sampler_for(tiny, sampler="popularity", N=4)
    counts = np.zeros(sampler.world.n_items)
    for user in range(sampler.world.n_users):
        for item in sampler.world.positives[user]:
            counts[item] += 1
    assert sampler.world.counts.tolist() == counts.tolist()
    drawn = sampler.source.draw(torch.tensor([5]).repeat(1000), 20)
    q = counts.copy()
    q[list(sampler.world.positives[5])] = 0
    seen = np.bincount(drawn.ids.flatten(), minlength=len(q))
    assert seen.sum() == seen[negatives_of(sampler, 5)].sum()
    assert chisquare(seen[q > 0], 20_000 * q[q > 0] / q.sum()).pvalue > 1e-4


def test_a_batch_is_drawn_anew_with_every_call_and_alike_in_the_same_epoch(world):
    sampler = Method(pools.Uniform(), rules.Uniform(), N=6).open(world)
    users = torch.arange(12)
    sampler.start_epoch(3)
    first, second = (sampler.select(users, None).ids for _ in range(2))
    assert not torch.equal(first, second)
    sampler.start_epoch(3)
    assert torch.equal(sampler.select(users, None).ids, first)
