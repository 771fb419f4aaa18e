"""Non-sampling against autograd over a double loop."""

import pytest
import torch
import torch.nn.functional as F
from conftest import negatives_of, query_for, sampler_for

from recbole_hns import losses


@pytest.mark.parametrize("chunk", [1 << 23, 200])  # all at once, and three pairs at a time
def test_loss_and_gradient_are_those_of_all_pairs(tiny, backend, chunk, monkeypatch):
    monkeypatch.setitem(losses.CHUNK_NUMBERS, "cpu", chunk)
    sampler = sampler_for(tiny, backend, sampler="non_sampling")
    users = torch.tensor([1, 5, 5, 17, 40, 2, 2, 9])
    query = query_for(sampler, users)
    for table in (query.context, query.items):
        table.requires_grad_()
    negatives = sampler.select(users, query)
    loss = negatives.loss(query, sampler.pair_loss)
    gradients = torch.autograd.grad(3 * loss, [query.context, query.items])

    expected = 0.0
    for b, user in enumerate(users.tolist()):
        r_ci = query.context[user] @ query.items[int(query.positives.ids[b, 0])]
        everyone = negatives_of(sampler, user)
        for j in everyone:
            r_cj = query.context[user] @ query.items[j]
            expected = expected + F.softplus(r_cj - r_ci) / len(everyone) / len(users)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
    reference = torch.autograd.grad(3 * expected, [query.context, query.items])
    torch.testing.assert_close(gradients, reference, rtol=1e-4, atol=1e-6)


def test_the_mass_is_what_falls_on_each_item(tiny):
    sampler = sampler_for(tiny, sampler="non_sampling")
    users = torch.tensor([1, 5, 5, 17])
    mass = sampler.select(users, query_for(sampler, users)).mass(sampler.pool.item_num)
    expected = torch.zeros(sampler.pool.item_num)
    for user in users.tolist():
        everyone = negatives_of(sampler, user)
        expected[everyone] += 1 / len(everyone)
    torch.testing.assert_close(mass, expected)
