"""Rules against brute-force loops written from Algorithms 1 and 2."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chisquare

from recbole_hns.kernels import Candidates, get_kernels
from recbole_hns.losses import BPR
from recbole_hns.models.scorers import DotQuery
from recbole_hns.sampling import DNS, Softmax, SoftmaxV, Uniform


def loss(t):
    """ℓ(t) = log(1 + e^−t)."""
    return math.log1p(math.exp(-t)) if t > -30 else -t


def dns_by_loops(r_cj, M):
    """Algorithm 1, line 6."""
    order = sorted(range(len(r_cj)), key=lambda j: -r_cj[j])
    return [1 / M if j in order[:M] else 0.0 for j in range(len(r_cj))]


def softmax_v_by_loops(r_ci, r_cj, rho):
    """Algorithm 2, line 6, with the population variance of equation (18)."""
    L = [loss(r_ci - r) for r in r_cj]
    mean = sum(L) / len(L)
    variance = sum((x - mean) ** 2 for x in L) / len(L)
    tau = math.sqrt(variance / (2 * rho))
    terms = [math.exp((x - max(L)) / tau) for x in L]
    return [term / sum(terms) for term in terms]


def softmax_by_loops(r_cj, tau, log_q):
    logits = [r / tau - q for r, q in zip(r_cj, log_q)]
    terms = [math.exp(x - max(logits)) for x in logits]
    return [term / sum(terms) for term in terms]


def weigh(rule, r_ci, r_cj, log_q=None):
    return rule.weigh(r_cj, BPR().ell(r_ci[:, 0], r_cj), log_q)


@pytest.fixture
def scores(generator):
    return torch.randn(8, 1, generator=generator), torch.randn(8, 25, generator=generator)


@pytest.mark.parametrize("rho", [0.01, 0.1, 1.0, 10.0, 100.0])
def test_softmax_v_is_algorithm_2(scores, rho):
    r_ci, r_cj = scores
    weights = weigh(SoftmaxV(rho), r_ci, r_cj, None)
    for i, row in enumerate(weights):
        expected = softmax_v_by_loops(float(r_ci[i]), r_cj[i].tolist(), rho)
        np.testing.assert_allclose(row, expected, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("tau", [0.05, 1.0, 20.0])
def test_softmax_corrects_for_the_pool(scores, generator, tau):
    r_ci, r_cj = scores
    log_q = torch.randn(8, 25, generator=generator)
    weights = weigh(Softmax(tau), r_ci, r_cj, log_q)
    for i, row in enumerate(weights):
        expected = softmax_by_loops(r_cj[i].tolist(), tau, log_q[i].tolist())
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-6)


def test_softmax_without_log_q_is_equation_3(scores):
    r_ci, r_cj = scores
    constant = torch.full_like(r_cj, -3.0)
    torch.testing.assert_close(
        weigh(Softmax(0.5), r_ci, r_cj, None), weigh(Softmax(0.5), r_ci, r_cj, constant)
    )


def query_with(r_cj: torch.Tensor, backend: str = "torch") -> tuple[DotQuery, Candidates]:
    """A query whose candidates 1..N of context b have the scores r_cj[b]."""
    B, N = r_cj.shape
    items = torch.cat([torch.zeros(1, B), r_cj.T]).contiguous()  # item j of context b: r_cj[b, j]
    kernels = get_kernels(backend, torch.device("cpu"))
    query = DotQuery(torch.eye(B), torch.arange(B), items, torch.ones(B).long(), kernels)
    return query, Candidates(torch.arange(1, N + 1).repeat(B, 1).int())


@pytest.mark.parametrize("backend", ["numba", "torch"])
@pytest.mark.parametrize("M", [1, 2, 5, 25])
def test_dns_is_algorithm_1(scores, M, backend):
    r_cj = scores[1]
    query, candidates = query_with(r_cj, backend)
    negatives = DNS(M).choose(candidates, query)
    weights = torch.zeros(8, 26).scatter_(1, negatives.ids.long(), negatives.weights)[:, 1:]
    for i, row in enumerate(weights):
        np.testing.assert_allclose(row, dns_by_loops(r_cj[i].tolist(), M), rtol=1e-6)
    torch.testing.assert_close(negatives.scores, r_cj.gather(1, negatives.ids.long() - 1))


def test_uniform_weighs_all_alike_and_scores_nothing(scores):
    candidates = Candidates(torch.ones(8, 25).int())
    negatives = Uniform().choose(candidates, query=None)
    assert (negatives.weights == 1 / 25).all()


@pytest.mark.parametrize("backend", ["numba", "torch"])
@pytest.mark.parametrize(("M", "N"), [(1, 10), (3, 10), (5, 50)])
def test_frequency_of_each_rank_under_dns_matches_the_closed_form(tables, backend, M, N):
    """P(the m-th hardest has rank ≤ k) = P(Binomial(N, k/n₋) ≥ m); χ² at α = 10⁻⁴, seed fixed."""
    kernels = get_kernels(backend, torch.device("cpu"))
    trials, n_neg, user = 20_000, 29, 0  # user 0 took nothing
    users = torch.full((trials,), user)
    items = torch.zeros(30, 2)
    items[1:, 0] = -torch.arange(1.0, 30.0)  # item k has rank k
    candidates = kernels.draw(tables, users, N, 1, torch.Generator().manual_seed(5))
    query = DotQuery(torch.ones(12, 2), users, items, users + 1, kernels)
    hardest = DNS(M).choose(candidates, query).ids.numpy()
    ranks = np.arange(n_neg + 1)
    for m in range(1, M + 1):  # each order statistic by itself: its draws are independent
        expected = np.diff(binom.sf(m - 1, N, ranks / n_neg)) * trials
        observed = np.bincount(hardest[:, m - 1], minlength=30)[1:]
        tail = expected < 5  # χ² needs filled cells: rare ranks are counted together
        observed = np.append(observed[~tail], observed[tail].sum())
        expected = np.append(expected[~tail], expected[tail].sum())
        if expected[-1] < 5:
            observed, expected = (
                observed[:-1],
                expected[:-1] * observed[:-1].sum() / expected[:-1].sum(),
            )
        assert chisquare(observed, expected).pvalue > 1e-4


def test_weights_are_uniform_where_no_candidate_is_harder():
    equal = torch.full((3, 7), 0.3)
    weights = weigh(SoftmaxV(1.0), torch.tensor([[0.1], [2.0], [-5.0]]), equal, None)
    torch.testing.assert_close(weights, torch.full((3, 7), 1 / 7))
    one_candidate = weigh(SoftmaxV(1.0), torch.zeros(2, 1), torch.randn(2, 1), None)
    assert (one_candidate == 1).all()


finite = st.floats(-50, 50, width=32)


@settings(max_examples=200, deadline=None)
@given(st.lists(finite, min_size=1, max_size=30), finite, st.sampled_from([0.01, 0.3, 1.0, 100.0]))
def test_weights_are_a_distribution_that_prefers_harder_negatives(r_cj, r_ci, rho):
    r_cj, r_ci = torch.tensor([r_cj]), torch.tensor([[r_ci]])
    for rule in (SoftmaxV(rho), Softmax(rho)):
        weights = weigh(rule, r_ci, r_cj, None)[0]
        assert torch.isfinite(weights).all()
        assert float(weights.sum()) == pytest.approx(1, abs=1e-4)
        by_score = weights[r_cj[0].argsort(stable=True)]
        assert (by_score.diff() >= -1e-6).all()


def test_larger_rho_is_harder(scores):
    r_ci, r_cj = scores
    expected = [(weigh(SoftmaxV(rho), r_ci, r_cj, None) * r_cj).sum() for rho in (0.01, 0.1, 1, 10)]
    assert expected == sorted(expected)


def test_draw_one_follows_the_weights(generator):
    candidates = Candidates(torch.tensor([[3, 7, 9]]).repeat(20_000, 1).int())
    weights = torch.tensor([[0.5, 0.2, 0.3]]).repeat(20_000, 1)
    from recbole_hns.sampling import Negatives

    chosen = Negatives(candidates, weights).draw_one(generator)
    counts = np.bincount(chosen, minlength=10)[[3, 7, 9]]
    assert chisquare(counts, [10_000, 4_000, 6_000]).pvalue > 1e-4
