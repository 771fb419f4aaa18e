"""Draws by the kernel tree against the exact kernel distribution of Blanc and Rendle (2018)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from random_lines import assert_follows, random_case

from recbole_hns.kernels import Vectors, build_tree

ALPHA = 3.0


def q_by_loops(case, v, user):
    """q(j | c) = K(h, w_j) / Σ K over the user's negatives, K = α⟨h, w_j⟩² + 1."""
    K = np.zeros(case.line.n_items)
    for j in case.negatives(user):
        K[j] = ALPHA * float(v.context[user].double() @ v.items[j].double()) ** 2 + 1
    return K / K.sum()


@pytest.mark.parametrize("d", [2, 4, 40])  # many leaves, some, and a single bucket
@pytest.mark.parametrize("weighted", [False, True])  # the line's weights play no part
@pytest.mark.parametrize("first", [0, 1])
def test_draws_follow_the_kernel_over_the_users_negatives(kernels, generator, first, weighted, d):
    case = random_case(first, weighted)
    users = torch.arange(12).repeat(200)
    context = torch.randn(12, d, generator=generator) * d**-0.25
    v = Vectors(context, users, torch.randn(30, d, generator=generator) * d**-0.25)
    tree = build_tree(v.items, ALPHA, first)
    candidates = kernels.draw_kernel(tree, case.line, users, v, 20, generator)
    for user in range(12):
        q, ids = q_by_loops(case, v, user), candidates.ids[users == user].numpy()
        assert_follows(ids.flatten(), q)
        np.testing.assert_allclose(candidates.log_q[users == user], np.log(q[ids]), atol=1e-4)


@pytest.mark.parametrize("first", [0, 1])
def test_a_node_holds_the_mass_of_the_items_below_it(first):
    torch.manual_seed(0)
    items, h = torch.randn(100, 3), torch.randn(3)
    tree = build_tree(items, 2.0, first)
    phi = torch.stack([h[a] * h[b] for a in range(3) for b in range(a, 3)])
    for node in range(1, 2 * tree.L):
        level = int(math.log2(node))
        width = tree.L * tree.bucket >> level
        low = (node - (1 << level)) * width
        below = range(max(low, first), min(low + width, 100))
        expected = sum(float(h @ items[j]) ** 2 for j in below)
        assert float(phi @ tree.nodes[node]) == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(("n", "d"), [(41, 3), (64, 64)])  # padded to whole buckets, and not
def test_building_the_tree_leaves_the_vectors_as_they_are(n, d):
    items = torch.ones(n, d)
    build_tree(items, 1.0, 1)
    assert (items == 1).all()
