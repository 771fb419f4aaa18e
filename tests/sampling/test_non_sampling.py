"""All negatives of each pair, against autograd over double loops."""

import math

import pytest
import torch
from conftest import negatives_of, query_for, sampler_for

from recbole_hns.losses import BCE, BPR, Hinge, InfoNCE, SampledSoftmax
from recbole_hns.sampling import Method, pools, rules
from recbole_hns.sampling.pools import everything

USERS = torch.tensor([1, 5, 5, 17, 40, 2, 2, 9])


def ell(loss, r_ci, r_cj):
    """The loss of a pair with one negative, by its formula."""
    t = r_ci - r_cj
    if isinstance(loss, Hinge):
        return torch.relu(loss.margin - t)
    if isinstance(loss, BCE):
        return torch.log1p(torch.exp(-r_ci)) + torch.log1p(torch.exp(r_cj))
    if isinstance(loss, InfoNCE):
        t = t / loss.temperature
    return torch.log1p(torch.exp(-t))


def weights(rule, r_cj, L):
    """p over all negatives by the rules' formulas, without gradient."""
    r_cj, L = r_cj.detach(), L.detach()
    if isinstance(rule, rules.DNS):
        place = sorted(range(len(r_cj)), key=lambda j: -float(r_cj[j]))[: rule.M]
        return torch.tensor([1 / rule.M if j in place else 0.0 for j in range(len(r_cj))])
    if isinstance(rule, rules.Softmax):
        return torch.softmax(r_cj / rule.tau, dim=0)
    if isinstance(rule, rules.SoftmaxV):
        return torch.softmax(L / math.sqrt(float(L.var(unbiased=False)) / (2 * rule.rho)), dim=0)
    return torch.full_like(L, 1 / len(L))


def pair_loss(loss, rule, r_ci, r_cj):
    """The loss of one pair with all of its negatives, each drawn with q = 1/n₋."""
    L, n = ell(loss, r_ci, r_cj), len(r_cj)
    p = weights(rule, r_cj, L)
    if isinstance(loss, (SampledSoftmax, InfoNCE)):  # n p is p/q for q = 1/n
        temperature = getattr(loss, "temperature", 1.0)
        return torch.log1p((n * p * torch.exp((r_cj - r_ci) / temperature)).sum())
    return (p * L).sum()


def assert_is_the_double_loop(sampler, loss, rule):
    """Loss and gradient; three times the loss, so that the gradient's scale shows."""
    query = query_for(sampler, USERS)
    context, items = query.vectors.context, query.vectors.items
    for table in (context, items):
        table.requires_grad_()
    value = sampler.select(USERS, query).loss(query, loss)
    gradients = torch.autograd.grad(3 * value, [context, items])
    expected = 0.0
    for b, user in enumerate(USERS.tolist()):
        r_ci = context[user] @ items[int(query.positives.ids[b, 0])]
        r_cj = items[negatives_of(sampler, user)] @ context[user]
        expected = expected + pair_loss(loss, rule, r_ci, r_cj) / len(USERS)
    torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-6)
    reference = torch.autograd.grad(3 * expected, [context, items])
    torch.testing.assert_close(gradients, reference, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("chunk", [1 << 23, 200])  # all at once, and three users at a time
@pytest.mark.parametrize("loss", [BPR(), Hinge(margin=0.5), BCE(), InfoNCE(temperature=0.5)], ids=str)
def test_loss_and_gradient_are_those_of_all_pairs(tiny, backend, chunk, loss, monkeypatch):
    monkeypatch.setitem(everything.CHUNK_NUMBERS, "cpu", chunk)
    sampler = sampler_for(tiny, backend, sampler="non_sampling")
    assert_is_the_double_loop(sampler, loss, rules.Uniform())


@pytest.mark.parametrize(
    ("rule", "loss"),
    [
        (rules.DNS(M=3), BPR()),
        (rules.SoftmaxV(rho=1.0), Hinge(margin=2.0)),
        (rules.Softmax(tau=0.5), SampledSoftmax()),
    ],
    ids=str,
)
def test_a_rule_may_weigh_all_negatives_too(tiny, backend, rule, loss):
    world = sampler_for(tiny, backend, sampler="non_sampling").world
    sampler = Method(pools.Everything(), rule, loss).open(world)
    assert_is_the_double_loop(sampler, loss, rule)


@pytest.mark.parametrize("rule", [rules.Uniform(), rules.Softmax(tau=0.5)], ids=str)
def test_the_mass_is_what_falls_on_each_item(tiny, rule):
    world = sampler_for(tiny, sampler="non_sampling").world
    sampler = Method(pools.Everything(), rule).open(world)
    query = query_for(sampler, USERS)
    mass = sampler.select(USERS, query).mass(world.n_items)
    expected = torch.zeros(world.n_items)
    for user in USERS.tolist():
        j = negatives_of(sampler, user)
        r_cj = query.vectors.items[j] @ query.vectors.context[user]
        expected[j] += weights(rule, r_cj, r_cj)
    torch.testing.assert_close(mass, expected)


@pytest.mark.parametrize("rule", [rules.Uniform(), rules.Softmax(tau=0.5)], ids=str)
def test_one_negative_is_drawn_from_p(tiny, backend, rule):
    """For a composed model's other terms: its share of 20 000 draws, within five standard errors."""
    world = sampler_for(tiny, backend, sampler="non_sampling").world
    sampler = Method(pools.Everything(), rule).open(world)
    users = torch.full((20_000,), 5)
    query = query_for(sampler, users)
    drawn = sampler.select(users, query).draw_one(sampler.generator)
    j = negatives_of(sampler, 5)
    r_cj = query.vectors.items[j] @ query.vectors.context[5]
    p = weights(rule, r_cj, r_cj)
    share = torch.bincount(drawn, minlength=world.n_items)[j] / 20_000
    assert float(share.sum()) == pytest.approx(1)
    assert (abs(share - p) <= 5 * (p * (1 - p) / 20_000).sqrt()).all()
