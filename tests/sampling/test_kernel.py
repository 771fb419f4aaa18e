"""Kernel-based sampling against the exact kernel distribution of Blanc and Rendle (2018)."""

import math

import numpy as np
import pytest
import torch
from conftest import fits, negatives_of, query_for, sampler_for

from recbole_hns.kernels import build_tree

KERNEL = {"sampler": "kernel", "kernel_alpha": 3.0, "N": 8}


def exact_distribution(sampler, query, user, alpha):
    """q(j | c) = K(h, w_j) / Σ K over the user's negatives, by a loop."""
    K = np.zeros(sampler.world.n_items)
    for j in negatives_of(sampler, user):
        dot = sum(
            float(a) * float(b) for a, b in zip(query.vectors.context[user], query.vectors.items[j])
        )
        K[j] = alpha * dot**2 + 1
    return K / K.sum()


@pytest.mark.parametrize("d", [2, 4, 70])  # many leaves, some, and a single bucket
def test_draws_follow_the_kernel_over_the_users_negatives(tiny, backend, d):
    """χ² at α = 10⁻⁴, seed fixed, and log q is the distribution's own."""
    sampler = sampler_for(tiny, backend, **KERNEL)
    for user in (1, 17):
        users = torch.full((4000,), user)
        query = query_for(sampler, users, d=d, scale=d**-0.25)
        candidates = sampler.source.draw(users, 8, query)
        q = exact_distribution(sampler, query, user, 3.0)
        drawn = np.bincount(candidates.ids.flatten(), minlength=len(q))
        assert drawn[q == 0].sum() == 0
        assert fits(drawn, q * drawn.sum())
        np.testing.assert_allclose(candidates.log_q, np.log(q[candidates.ids]), atol=1e-4)


def test_positives_that_hold_nearly_all_of_the_mass_are_still_left_out(tiny, backend):
    sampler = sampler_for(tiny, backend, **KERNEL)
    users = torch.full((2000,), 4)
    query = query_for(sampler, users)
    v = query.vectors
    taken = torch.from_numpy(sampler.world.positives.row(4)).long()
    v.items[taken] = 300 * v.context[4]  # K some 10⁶ times that of the others
    candidates = sampler.source.draw(users, 8, query)
    q = exact_distribution(sampler, query, 4, 3.0)
    drawn = np.bincount(candidates.ids.flatten(), minlength=len(q))
    assert drawn[q == 0].sum() == 0
    # float32 cannot tell the negatives' mass from the positives' any more: only the support is exact.
    assert torch.isfinite(candidates.log_q).all()


def test_a_node_holds_the_mass_of_the_items_below_it():
    torch.manual_seed(0)
    items = torch.randn(100, 3)
    h = torch.randn(3)
    tree = build_tree(items, 2.0, 1)
    phi = torch.stack([h[a] * h[b] for a in range(3) for b in range(a, 3)])
    for node in range(1, 2 * tree.L):
        level = int(math.log2(node))
        width = tree.L * tree.bucket >> level
        low = (node - (1 << level)) * width
        below = range(max(low, 1), min(low + width, 100))
        expected = sum(float(h @ items[j]) ** 2 for j in below)
        assert float(phi @ tree.nodes[node]) == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(("n", "d"), [(40_989, 32), (1683, 64), (10, 32), (1_000, 1)])
def test_the_tree_is_no_larger_than_it_says(n, d):
    tree = build_tree(torch.zeros(n, d), 1.0, 1)
    assert tree.nodes.numel() <= max(n, 2 * d) * (d + 1)
    assert tree.L * tree.bucket >= n


def test_the_tree_follows_the_embeddings(tiny, backend):
    """Built from the vectors of the very step: changed vectors, changed distribution."""
    sampler = sampler_for(tiny, backend, **KERNEL)
    users = torch.full((4000,), 2)
    query = query_for(sampler, users)
    v = query.vectors
    sampler.source.draw(users, 8, query)
    favourite = negatives_of(sampler, 2)[0]
    v.items[favourite] = 50 * v.context[2]
    drawn = sampler.source.draw(users, 8, query).ids
    assert float((drawn == favourite).float().mean()) > 0.9


def test_weights_are_the_softmax_corrected_for_the_kernel(tiny, backend):
    sampler = sampler_for(tiny, backend, **KERNEL)
    users = torch.tensor([1, 2, 3])
    query = query_for(sampler, users)
    v = query.vectors
    negatives = sampler.select(users, query)
    for b, user in enumerate(users.tolist()):
        q = exact_distribution(sampler, query, user, 3.0)
        ids = negatives.ids[b].tolist()
        terms = [math.exp(float(v.context[user] @ v.items[j])) / q[j] for j in ids]
        expected = [term / sum(terms) for term in terms]
        np.testing.assert_allclose(negatives.weights[b], expected, rtol=1e-3)
