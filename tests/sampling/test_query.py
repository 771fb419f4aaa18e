"""A batch's scores and their gradient, against gathers and autograd."""

import pytest
import torch

from recbole_hns import Error
from recbole_hns.kernels import Candidates
from recbole_hns.sampling.query import DotQuery, vectors_of

B, N, N_CONTEXTS, N_ITEMS, D = 12, 9, 5, 30, 4


@pytest.fixture
def tables(generator):
    """Contexts' and items' vectors, with gradient, and which context and positive each pair has."""
    context = torch.randn(N_CONTEXTS, D, generator=generator, requires_grad=True)
    items = torch.randn(N_ITEMS, D, generator=generator, requires_grad=True)
    rows = torch.randint(N_CONTEXTS - 1, (B,), generator=generator)  # one context has no pair
    return context, items, rows, torch.randint(N_ITEMS, (B,), generator=generator)


@pytest.fixture
def candidates(generator):
    """With repeats, as draws have them."""
    return Candidates(torch.randint(N_ITEMS, (B, N), generator=generator, dtype=torch.int32))


def dots(context, items, ids):
    """⟨c, items[j]⟩ for every j of a row, by a gather."""
    return (context[:, None, :] * items[ids.long()]).sum(dim=2)


def test_scores_are_dot_products_without_gradient(kernels, tables, candidates):
    context, items, rows, positives = tables
    query = DotQuery(context, items, positives, rows, kernels)
    scores = query.score(candidates)
    torch.testing.assert_close(scores, dots(context[rows], items, candidates.ids).detach())
    torch.testing.assert_close(query.r_ci, (context[rows] * items[positives]).sum(dim=1).detach())
    assert not scores.requires_grad
    assert not query.r_ci.requires_grad


def test_the_hardest_come_first(kernels, tables, candidates):
    context, items, rows, positives = tables
    ids, scores = DotQuery(context, items, positives, rows, kernels).top(candidates, 3)
    expected = dots(context[rows], items, candidates.ids).detach().sort(dim=1, descending=True)
    torch.testing.assert_close(scores, expected.values[:, :3])
    torch.testing.assert_close(dots(context[rows], items, ids).detach(), scores)


def test_pair_b_has_context_b_unless_told(kernels, tables, candidates):
    context, items, rows, positives = tables
    own = DotQuery(context[rows], items, positives, backend=kernels)
    told = DotQuery(context, items, positives, rows, kernels)
    torch.testing.assert_close(own.score(candidates), told.score(candidates))


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_are_autograds(kernels, tables, candidates, generator, sparse):
    """Of any function of both scores; sparse ones hold the rows that the pairs name, and no others."""
    context, items, rows, positives = tables
    query = DotQuery(context, items, positives, rows, kernels, sparse)
    r_ci, r_cj = query.pair_scores(candidates)
    g_ci, g_cj = torch.randn(B, generator=generator), torch.randn(B, N, generator=generator)
    ours = torch.autograd.grad((g_ci * r_ci).sum() + (g_cj * r_cj).sum(), (context, items))
    own = (context[rows] * items[positives]).sum(dim=1)
    others = dots(context[rows], items, candidates.ids)
    theirs = torch.autograd.grad((g_ci * own).sum() + (g_cj * others).sum(), (context, items))
    for mine, reference in zip(ours, theirs):
        assert mine.is_sparse == sparse
        torch.testing.assert_close(mine.to_dense(), reference, rtol=1e-5, atol=1e-5)
    if sparse:
        touched = {*positives.tolist(), *candidates.ids.flatten().tolist()}
        assert set(ours[0].coalesce().indices()[0].tolist()) == set(rows.tolist())
        assert set(ours[1].coalesce().indices()[0].tolist()) == touched


def test_known_scores_are_taken_as_they_are(kernels, tables, candidates):
    context, items, rows, positives = tables
    query = DotQuery(context, items, positives, rows, kernels)
    known = torch.full((B, N), 7.0)
    assert torch.equal(query.pair_scores(candidates, known)[1], known)


def test_positives_are_scored_once(tables, candidates, monkeypatch):
    context, items, rows, positives = tables
    query = DotQuery(context, items, positives, rows)
    scored, original = [], query.backend.score
    monkeypatch.setattr(query.backend, "score", lambda v, c: (scored.append(c), original(v, c))[1])
    query.r_ci, query.r_ci, query.pair_scores(candidates)
    assert [c.ids.shape[1] for c in scored] == [1, N]


def test_at_is_the_query_of_some_of_the_pairs(kernels, tables, candidates):
    context, items, rows, positives = tables
    query, pairs = DotQuery(context, items, positives, rows, kernels), torch.tensor([7, 2, 7])
    part = query.at(pairs)
    torch.testing.assert_close(part.r_ci, query.r_ci[pairs])
    some = Candidates(candidates.ids[pairs])
    torch.testing.assert_close(part.score(some), query.score(candidates)[pairs])


def test_narrow_vectors_are_scored_in_32_bits_and_get_their_own_gradient(tables, candidates):
    context, items, rows, positives = tables
    narrow = context.detach().bfloat16().requires_grad_()
    r_ci, r_cj = DotQuery(narrow, items, positives, rows).pair_scores(candidates)
    torch.testing.assert_close(r_cj, dots(narrow.float()[rows], items, candidates.ids).detach())
    (gradient,) = torch.autograd.grad(r_ci.sum(), narrow)
    assert gradient.dtype == torch.bfloat16
    expected = torch.zeros(N_CONTEXTS, D).index_add_(0, rows, items[positives].detach())
    torch.testing.assert_close(gradient.float(), expected, rtol=1e-2, atol=1e-2)


def test_what_needs_vectors_says_so_where_there_are_none():
    with pytest.raises(Error, match="scores by a dot product: use a DotQuery"):
        vectors_of(None)
