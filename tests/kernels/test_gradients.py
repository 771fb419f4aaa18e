"""Gradients of scores against autograd and against each other, on both backends."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_lines import random_case

from recbole_hns.kernels import Candidates, Vectors, get_kernels


@pytest.mark.parametrize(("B", "N", "block"), [(37, 11, 1), (37, 11, 8), (5, 1, 1)])
def test_backward_is_autograds(kernels, generator, B, N, block):
    rows = torch.randint(12, (B,), generator=generator)
    context = torch.randn(12, 9, generator=generator)
    items = torch.randn(30, 9, generator=generator)
    positives = Candidates(torch.randint(30, (B, 1), generator=generator).int())
    drawn = kernels.draw(random_case(0).line, rows, N, block, generator)
    parts = [(c, torch.randn(c.ids.shape, generator=generator)) for c in (positives, drawn)]
    ours = kernels.score_backward(Vectors(context, rows, items), parts)
    context.requires_grad_()
    items.requires_grad_()
    sum(
        (grad * (context[rows][:, None] * items[part.ids.long()]).sum(-1)).sum() for part, grad in parts
    ).backward()
    for gradient, table in zip(ours, (context, items)):
        torch.testing.assert_close(gradient, table.grad, rtol=1e-5, atol=1e-5)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    B=st.integers(1, 40),
    block=st.sampled_from([1, 2, 5]),
    Ns=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    n_users=st.integers(2, 12),
    n_items=st.sampled_from([7, 30, 63, 64, 65, 200]),
)
def test_backward_by_rows_is_the_dense_gradient_of_the_touched_rows_alone(
    kernels, seed, B, block, Ns, n_users, n_items
):
    generator = torch.Generator().manual_seed(seed)
    line = random_case(seed % 2, n_users=n_users, n_items=n_items).line
    rows = torch.randint(n_users, (B,), generator=generator)
    context = torch.randn(n_users, 5, generator=generator)
    v = Vectors(context, rows, torch.randn(n_items, 5, generator=generator))
    parts = []
    for N in Ns:  # both kinds of candidates, one after the other
        candidates = kernels.draw(line, rows, N, block if parts else 1, generator)
        parts.append((candidates, torch.randn(B, N, generator=generator)))
    dense, sparse = kernels.score_backward(v, parts), kernels.score_backward_rows(v, parts)
    touched = rows.unique(), torch.cat([c.ids.flatten() for c, _ in parts]).unique().long()
    for (found, grad), expected_rows, expected in zip(sparse, touched, dense):
        assert torch.equal(found, expected_rows)
        torch.testing.assert_close(grad, expected[found], rtol=1e-5, atol=1e-5)
        rest = torch.ones(len(expected), dtype=torch.bool)
        rest[found] = False
        assert (expected[rest] == 0).all()


def test_a_shared_candidate_that_all_its_pairs_replaced_is_not_touched(kernels, generator):
    line = random_case(0, n_users=6).line
    users = torch.full((8,), 5)  # took all items but one, so every pair replaces nearly everything
    candidates = kernels.draw(line, users, 20, 4, generator)
    assert len(candidates.shared.ids.unique()) > 1
    v = Vectors(torch.randn(6, 4), users, torch.randn(30, 4))
    parts = [(candidates, torch.randn(8, 20))]
    _, (touched, grad) = kernels.score_backward_rows(v, parts)
    assert touched.tolist() == [5]
    torch.testing.assert_close(grad, kernels.score_backward(v, parts)[1][touched])


def test_add_rows_counts_repeats(kernels):
    table, values = torch.ones(4, 2), torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    kernels.add_rows(table, torch.tensor([2, 0, 2]), values)
    assert table.tolist() == [[11, 21], [1, 1], [102, 203], [1, 1]]


def test_numba_results_do_not_depend_on_the_number_of_threads(generator):
    numba = get_kernels("numba", torch.device("cpu"))
    line = random_case(1, n_users=300, n_items=500).line
    users = torch.randint(300, (2048,), generator=generator)
    v = Vectors(torch.randn(300, 16), users, torch.randn(500, 16))
    grad = torch.randn(2048, 50)
    results, threads = [], torch.get_num_threads()
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            drawn = numba.draw(line, users, 50, 1, torch.Generator().manual_seed(1))
            ids, scores = numba.top(v, drawn, 5)
            grads = numba.score_backward(v, [(drawn, grad)])
            by_rows = numba.score_backward_rows(v, [(drawn, grad)])
            results.append((drawn.ids, ids, scores, *grads, *by_rows[0], *by_rows[1]))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))
