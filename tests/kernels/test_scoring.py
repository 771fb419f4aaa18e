"""Scores and the hardest candidates against loops in double precision, on both backends."""

from __future__ import annotations

import pytest
import torch
from random_lines import random_case

from recbole_hns.kernels import Candidates, Vectors


@pytest.fixture(params=[(37, 11, 1), (37, 11, 8), (5, 1, 1)], ids=["pairs", "blocks", "one"])
def batch(request, kernels, generator):
    """Random vectors and candidates."""
    B, N, block = request.param
    users = torch.randint(12, (B,), generator=generator)
    context = torch.randn(12, 9, generator=generator)
    items = torch.randn(30, 9, generator=generator)
    candidates = kernels.draw(random_case(0).line, users, N, block, generator)
    return Vectors(context, users, items), candidates


def score_by_loops(v, ids):
    context, items = v.context.double(), v.items.double()
    return torch.tensor([[float(context[c] @ items[j]) for j in row] for c, row in zip(v.rows, ids)])


def test_scores_are_dot_products(kernels, batch):
    v, candidates = batch
    expected = score_by_loops(v, candidates.ids)
    torch.testing.assert_close(kernels.score(v, candidates), expected)


def test_top_keeps_the_highest_scores_in_order(kernels, batch):
    v, candidates = batch
    M = min(4, candidates.ids.shape[1])
    ids, scores = kernels.top(v, candidates, M)
    expected = score_by_loops(v, candidates.ids).sort(descending=True).values
    torch.testing.assert_close(scores, expected[:, :M])
    torch.testing.assert_close(scores, score_by_loops(v, ids))
    for chosen, drawn in zip(ids, candidates.ids):
        assert set(chosen.tolist()) <= set(drawn.tolist())


def test_a_nan_score_is_the_hardest(kernels, generator):
    ids = torch.arange(10).repeat(3, 1).int()
    items = torch.randn(10, 4, generator=generator)
    items[5] = torch.nan
    v = Vectors(torch.randn(3, 4, generator=generator), torch.arange(3), items)
    chosen, scores = kernels.top(v, Candidates(ids), 2)
    assert chosen[:, 0].tolist() == [5, 5, 5]
    assert scores.isnan().tolist() == [[True, False]] * 3
