"""IRGAN: the generator's gradient is that of the expected reward."""

import copy
import itertools

import numpy as np
import torch
from conftest import fits, negatives_of, query_for, sampler_for

from recbole_hns.sampling.rules.irgan import policy_gradient

IRGAN = {"sampler": "irgan", "N": 20, "generator_size": 6}


def test_the_policy_gradient_is_unbiased():
    """Its mean over every possible draw is the exact gradient of 1/|B| Σ_b E_{j ~ p_b}[reward_bj]."""
    torch.manual_seed(0)
    tau, B, N = 0.7, 3, 4
    g = torch.randn(B, N, dtype=torch.float64, requires_grad=True)
    reward = torch.rand(B, N, dtype=torch.float64)
    p = torch.softmax(g / tau, dim=1)
    (exact,) = torch.autograd.grad((p * reward).sum() / B, g)
    p = p.detach()
    mean = torch.zeros_like(p)
    for draw in itertools.product(range(N), repeat=B):
        place = torch.tensor(draw)[:, None]
        probability = p.gather(1, place).prod()
        mean += probability * policy_gradient(p, place, reward.gather(1, place)[:, 0], tau)
    torch.testing.assert_close(mean, exact, rtol=1e-10, atol=1e-12)


def test_negatives_follow_the_generators_softmax(tiny, backend):
    """With as many candidates as to fill the pool evenly; χ² at α = 10⁻⁴, seed fixed."""
    sampler = sampler_for(tiny, backend, **{**IRGAN, "N": 2000})
    sampler.optimizer.param_groups[0]["lr"] = 0.0
    users = torch.full((2000,), 5)
    sampler.tables[0][5] *= 3
    query = query_for(sampler, users)
    drawn = np.bincount(sampler.select(users, query).ids[:, 0], minlength=sampler.world.n_items)
    negatives = negatives_of(sampler, 5)
    logits = (sampler.tables[1][negatives] @ sampler.tables[0][5]).double() / sampler.rule.tau
    expected = torch.softmax(logits, dim=0).numpy() * 2000
    assert fits(drawn[negatives], expected)


def test_the_generator_learns_what_the_model_ranks_wrongly(tiny, backend):
    """With a fixed model, the reward of what is drawn goes up."""
    sampler = sampler_for(tiny, backend, generator_learning_rate=0.01, **IRGAN)
    users = torch.arange(1, 41).repeat(20)
    query = query_for(sampler, users)

    def reward():
        negatives = sampler.select(users, query)
        return float(torch.nn.functional.softplus(negatives.r_cj[:, 0] - query.r_ci).mean())

    before = np.mean([reward() for _ in range(5)])
    for _ in range(200):
        reward()
    assert np.mean([reward() for _ in range(5)]) > 1.2 * before


def test_a_step_is_adam_on_the_expected_reward(tiny, backend):
    """The gradient that reaches the generator's tables is autograd's of Σ ascent · g."""
    sampler = sampler_for(tiny, backend, **IRGAN)
    sampler.optimizer.param_groups[0]["lr"] = 0.0
    users = torch.tensor([1, 1, 2, 9])
    query = query_for(sampler, users)
    sampler.start_epoch(4)
    candidates = sampler.source.draw(users, 20, query)
    sampler.start_epoch(4)
    negatives = sampler.select(users, query)
    tables = [table.clone().requires_grad_() for table in sampler.tables]
    g = (tables[0][users][:, None, :] * tables[1][candidates.ids.long()]).sum(dim=2)
    p = torch.softmax(g / sampler.rule.tau, dim=1)
    reward = torch.nn.functional.softplus(negatives.r_cj[:, 0] - query.r_ci)
    baseline = torch.stack([(reward.sum() - r) / 3 for r in reward])
    chosen = (candidates.ids == negatives.ids).int().argmax(dim=1)
    log_p = p.log()[torch.arange(4), chosen]
    loss = -((reward - baseline) * log_p).sum() / 4
    loss.backward()
    for table, ours in zip(tables, sampler.tables):
        torch.testing.assert_close(ours.grad, table.grad, rtol=1e-4, atol=1e-6)


def test_the_state_holds_generator_and_optimiser(tiny):
    first, second = (sampler_for(tiny, seed=seed, **IRGAN) for seed in (1, 2))
    users = torch.arange(1, 41)
    query = query_for(first, users)
    first.select(users, query)
    assert not torch.equal(first.tables[0], second.tables[0])
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    second.world.seed = first.world.seed
    for sampler in (first, second):
        sampler.start_epoch(1)
        sampler.select(users, query)
    for mine, other in zip(first.tables, second.tables):
        assert torch.equal(mine, other)
