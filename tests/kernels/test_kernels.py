"""One suite over both backends: distribution of the draws, scores, gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import random_positives
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from recbole_hns.kernels import Candidates, get_kernels
from recbole_hns.sampling.pools import _draw_tables

FALSE_ALARM = 1e-4  # of each χ² test; the seeds are fixed


def expected_q(positives, weights, user):
    """q(j | c) by definition: the weights of the user's negatives, normalised."""
    q = np.array(weights, dtype=float)
    q[0] = 0
    q[positives.row(user)] = 0
    return q / q.sum()


def assert_follows(ids, q):
    counts = np.bincount(ids, minlength=len(q))
    assert counts[q == 0].sum() == 0
    if (q > 0).sum() > 1:
        assert chisquare(counts[q > 0], counts.sum() * q[q > 0]).pvalue > FALSE_ALARM


# A block of 4 or 12 holds each of the 12 users once, so a user's draws stay independent.
@pytest.mark.parametrize("block", [1, 4, 12])
@pytest.mark.parametrize("N", [3, 50])
def test_draws_are_uniform_over_the_users_negatives(kernels, tables, positives, generator, block, N):
    users = torch.arange(positives.n_users).repeat(20_000 // N)
    ids = kernels.draw(tables, users, N, block, generator).ids
    for user in range(positives.n_users):
        q = expected_q(positives, np.ones(positives.n_items), user)
        assert_follows(ids[users == user].flatten().numpy(), q)


@pytest.mark.parametrize("block", [1, 4, 12])
def test_weighted_draws_follow_the_weights(kernels, weighted_tables, positives, generator, block):
    tables, weights = weighted_tables
    users = torch.arange(positives.n_users).repeat(1000)
    ids = kernels.draw(tables, users, 20, block, generator).ids
    for user in range(positives.n_users):
        q = expected_q(positives, weights, user)
        assert_follows(ids[users == user].flatten().numpy(), q)


def test_draws_with_weights_beyond_32_bits_follow_them_too(kernels, positives, generator):
    weights = np.arange(positives.n_items).astype(np.int64) << 34
    tables = _draw_tables(positives, weights)
    assert tables.before.dtype == torch.int64
    users = torch.arange(positives.n_users - 1).repeat(1000)
    ids = kernels.draw(tables, users, 20, 1, generator).ids
    for user in range(positives.n_users - 1):
        assert_follows(ids[users == user].flatten().numpy(), expected_q(positives, weights, user))


@pytest.mark.parametrize("n_items", [400, 3000])
def test_many_positives_are_left_out_as_exactly_as_few(kernels, generator, n_items):
    positives = random_positives(n_users=6, n_items=n_items)
    tables = _draw_tables(positives, None)
    users = torch.arange(6).repeat_interleave(200)
    for block in (1, 16):
        ids = kernels.draw(tables, users, 40, block, generator).ids
        assert ids.min() >= 1
        assert ids.max() < n_items
        for user in range(6):
            drawn = np.unique(ids[users == user].numpy())
            assert not np.isin(drawn, positives.row(user)).any()
    only = np.setdiff1d(np.arange(1, n_items), positives.row(5))  # all items but one
    assert (ids[users == 5] == int(only[0])).all()


def test_draws_within_a_block_are_shared_and_blocks_are_independent(
    kernels, tables, positives, generator
):
    users = torch.zeros(64, dtype=torch.long)  # no positives: nothing to replace
    candidates = kernels.draw(tables, users, 30, 16, generator)
    blocks = candidates.ids.view(4, 16, 30)
    assert (blocks == blocks[:, :1]).all()
    assert (candidates.shared.ids == blocks[:, 0]).all()
    assert len({tuple(row.tolist()) for row in candidates.shared.ids}) == 4
    assert len(candidates.shared.pair) == 0


def test_replaced_slots_are_exactly_those_that_differ(kernels, tables, positives, generator):
    users = torch.arange(positives.n_users).repeat(9)[:101]  # the last block is not full
    candidates = kernels.draw(tables, users, 30, 8, generator)
    shared = candidates.shared
    common = shared.ids.repeat_interleave(8, dim=0)[:101]
    taken = torch.tensor([[int(j) in positives[u] for j in row] for u, row in zip(users, common)])
    marked = torch.zeros_like(taken)
    marked[shared.pair, shared.slot] = True
    assert (marked == taken).all()
    assert (candidates.ids[~taken] == common[~taken]).all()


def test_the_same_generator_state_draws_the_same(kernels, tables):
    users = torch.arange(12).repeat(10)
    one = kernels.draw(tables, users, 40, 1, torch.Generator().manual_seed(3)).ids
    two = kernels.draw(tables, users, 40, 1, torch.Generator().manual_seed(3)).ids
    other = kernels.draw(tables, users, 40, 1, torch.Generator().manual_seed(4)).ids
    assert (one == two).all()
    assert not (one == other).all()


# ---------------------------------------------------------------------- scores and gradients


@pytest.fixture(params=[(37, 11, 1), (37, 11, 8), (5, 1, 1)], ids=["pairs", "blocks", "one"])
def batch(request, kernels, tables, positives, generator):
    """Random tables and candidates: (context, rows, items, candidates)."""
    B, N, block = request.param
    users = torch.randint(positives.n_users, (B,), generator=generator)
    context = torch.randn(positives.n_users, 9, generator=generator)
    items = torch.randn(positives.n_items, 9, generator=generator)
    return context, users, items, kernels.draw(tables, users, N, block, generator)


def score_by_loops(context, rows, items, ids):
    return torch.tensor(
        [[float(context[c].double() @ items[j].double()) for j in row] for c, row in zip(rows, ids)]
    )


def test_scores_are_dot_products(kernels, batch):
    context, rows, items, candidates = batch
    expected = score_by_loops(context, rows, items, candidates.ids)
    torch.testing.assert_close(kernels.score(context, rows, items, candidates), expected)


def test_top_keeps_the_highest_scores_in_order(kernels, batch):
    context, rows, items, candidates = batch
    M = min(4, candidates.ids.shape[1])
    ids, scores = kernels.top(context, rows, items, candidates, M)
    expected = score_by_loops(context, rows, items, candidates.ids).sort(descending=True).values
    torch.testing.assert_close(scores, expected[:, :M])
    torch.testing.assert_close(scores, score_by_loops(context, rows, items, ids))
    for chosen, drawn in zip(ids, candidates.ids):
        assert set(chosen.tolist()) <= set(drawn.tolist())


def test_backward_is_autograds(kernels, batch, generator):
    context, rows, items, candidates = batch
    context, items = context.requires_grad_(), items.requires_grad_()
    positives = Candidates(torch.randint(1, len(items), (len(rows), 1), generator=generator).int())
    parts, total = [], 0
    for part in (positives, candidates):
        grad = torch.randn(part.ids.shape, generator=generator)
        parts.append((part, grad))
        total = total + (grad * (context[rows][:, None] * items[part.ids.long()]).sum(-1)).sum()
    total.backward()
    grad_context, grad_items = kernels.score_backward(context.detach(), rows, items.detach(), parts)
    torch.testing.assert_close(grad_context, context.grad, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(grad_items, items.grad, rtol=1e-5, atol=1e-5)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    B=st.integers(1, 40),
    block=st.sampled_from([1, 2, 5]),
    Ns=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    n_users=st.integers(2, 12),
    n_items=st.sampled_from([3, 30, 63, 64, 65, 200]),
)
def test_backward_by_rows_is_the_dense_gradient_of_the_touched_rows_alone(
    kernels, seed, B, block, Ns, n_users, n_items
):
    generator = torch.Generator().manual_seed(seed)
    tables = _draw_tables(random_positives(n_users, n_items), None)
    rows = torch.randint(n_users, (B,), generator=generator)
    context = torch.randn(n_users, 5, generator=generator)
    items = torch.randn(n_items, 5, generator=generator)
    parts = []
    for N in Ns:  # both kinds of candidates, one after the other
        candidates = kernels.draw(tables, rows, N, block if parts else 1, generator)
        parts.append((candidates, torch.randn(B, N, generator=generator)))
    dense = kernels.score_backward(context, rows, items, parts)
    sparse = kernels.score_backward_rows(context, rows, items, parts)
    touched = rows.unique(), torch.cat([c.ids.flatten() for c, _ in parts]).unique().long()
    for (found, grad), expected_rows, expected in zip(sparse, touched, dense):
        assert torch.equal(found, expected_rows)
        torch.testing.assert_close(grad, expected[found], rtol=1e-5, atol=1e-5)
        rest = torch.ones(len(expected), dtype=torch.bool)
        rest[found] = False
        assert (expected[rest] == 0).all()


def test_a_shared_candidate_that_all_its_pairs_replaced_is_not_touched(kernels, generator):
    positives = random_positives(n_users=6, n_items=30)
    tables = _draw_tables(positives, None)
    users = torch.full((8,), 5)  # took all items but one, so every pair replaces nearly everything
    candidates = kernels.draw(tables, users, 20, 4, generator)
    assert len(candidates.shared.ids.unique()) > 1
    context, items = torch.randn(6, 4), torch.randn(30, 4)
    parts = [(candidates, torch.randn(8, 20))]
    _, (touched, grad) = kernels.score_backward_rows(context, users, items, parts)
    assert touched.tolist() == candidates.ids.unique().tolist()
    assert len(touched) == 1
    torch.testing.assert_close(
        grad[0], kernels.score_backward(context, users, items, parts)[1][touched[0]]
    )


def test_a_nan_score_is_kept_so_that_it_shows(kernels, tables, generator):
    users = torch.zeros(3, dtype=torch.long)
    candidates = kernels.draw(tables, users, 10, 1, generator)
    items = torch.randn(30, 4)
    items[candidates.ids[1, 5].long()] = float("nan")
    scores = kernels.top(torch.randn(12, 4), users, items, candidates, 2)[1]
    assert torch.isnan(scores[1]).any()


def test_numba_results_do_not_depend_on_the_number_of_threads(generator):
    numba = get_kernels("numba", torch.device("cpu"))
    positives = random_positives(n_users=300, n_items=500)
    tables = _draw_tables(positives, None)
    users = torch.randint(300, (2048,), generator=generator)
    context, items = torch.randn(300, 16), torch.randn(500, 16)
    grad = torch.randn(2048, 50)
    results, threads = [], torch.get_num_threads()
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            drawn = numba.draw(tables, users, 50, 1, torch.Generator().manual_seed(1))
            ids, scores = numba.top(context, users, items, drawn, 5)
            grads = numba.score_backward(context, users, items, [(drawn, grad)])
            by_rows = numba.score_backward_rows(context, users, items, [(drawn, grad)])
            results.append((drawn.ids, ids, scores, *grads, *by_rows[0], *by_rows[1]))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))
