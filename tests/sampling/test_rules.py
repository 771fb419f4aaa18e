"""Rules against brute-force loops written from Algorithms 1 and 2."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import binom, chisquare

from recbole_hns import Error
from recbole_hns.kernels import Candidates, get_kernels
from recbole_hns.losses import Hinge
from recbole_hns.sampling import DotQuery, Scored, World
from recbole_hns.sampling.pools import Uniform as UniformPool
from recbole_hns.sampling.rules import DNS, Softmax, SoftmaxV, Uniform


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


class Known:
    """A query whose scores are known."""

    def __init__(self, r_ci, r_cj):
        self.r_ci, self.r_cj = r_ci, r_cj

    def score(self, candidates):
        return self.r_cj


def weigh(rule, r_ci, r_cj, log_q=None, loss=None):
    ids = torch.arange(r_cj.shape[1]).repeat(len(r_cj), 1)
    return rule.weigh(Scored(Known(r_ci, r_cj), Candidates(ids, log_q=log_q), loss))


@pytest.fixture
def scores(generator):
    return torch.randn(8, generator=generator), torch.randn(8, 25, generator=generator)


@pytest.mark.parametrize("rho", [0.01, 0.1, 1.0, 10.0, 100.0])
def test_softmax_v_is_algorithm_2(scores, rho):
    r_ci, r_cj = scores
    weights = weigh(SoftmaxV(rho), r_ci, r_cj)
    for i, row in enumerate(weights):
        expected = softmax_v_by_loops(float(r_ci[i]), r_cj[i].tolist(), rho)
        np.testing.assert_allclose(row, expected, rtol=2e-4, atol=1e-6)


def test_softmax_v_weighs_by_the_loss_that_is_learned(scores):
    """The triplet loss instead of BPR: losses that are equal, 0 within the margin, weigh alike."""
    r_ci, r_cj = scores
    weights = weigh(SoftmaxV(1.0), r_ci, r_cj, loss=Hinge(margin=0.5))
    for i, row in enumerate(weights):
        L = [max(0.0, 0.5 - float(r_ci[i] - r)) for r in r_cj[i]]
        mean = sum(L) / len(L)
        tau = math.sqrt(sum((x - mean) ** 2 for x in L) / len(L) / 2)
        terms = [math.exp((x - max(L)) / tau) for x in L]
        np.testing.assert_allclose(row, [x / sum(terms) for x in terms], rtol=2e-4, atol=1e-6)


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
        weigh(Softmax(0.5), r_ci, r_cj), weigh(Softmax(0.5), r_ci, r_cj, constant)
    )


def query_with(r_cj: torch.Tensor, backend: str = "torch") -> tuple[DotQuery, Candidates]:
    """A query whose candidates 1..N of context b have the scores r_cj[b]."""
    B, N = r_cj.shape
    items = torch.cat([torch.zeros(1, B), r_cj.T]).contiguous()  # item j of context b: r_cj[b, j]
    kernels = get_kernels(backend, torch.device("cpu"))
    query = DotQuery(torch.eye(B), items, torch.ones(B).long(), backend=kernels)
    return query, Candidates(torch.arange(1, N + 1).repeat(B, 1).int())


@pytest.mark.parametrize("backend", ["numba", "torch"])
@pytest.mark.parametrize("M", [1, 2, 5, 25])
def test_dns_is_algorithm_1(scores, M, backend):
    r_cj = scores[1]
    query, candidates = query_with(r_cj, backend)
    scored = Scored(query, candidates)
    negatives = DNS(M).choose(scored)
    weights = torch.zeros(8, 26).scatter_(1, negatives.ids.long(), negatives.weights)[:, 1:]
    for i, row in enumerate(weights):
        np.testing.assert_allclose(row, dns_by_loops(r_cj[i].tolist(), M), rtol=1e-6)
    torch.testing.assert_close(negatives.r_cj, r_cj.gather(1, negatives.ids.long() - 1))
    torch.testing.assert_close(DNS(M).weigh(scored), weights)


def test_uniform_weighs_all_alike_and_scores_nothing(scores):
    negatives = Uniform().choose(Scored(None, Candidates(torch.ones(8, 25).int())))
    assert (negatives.weights == 1 / 25).all()
    assert negatives.r_cj is None


def test_what_a_rule_has_looked_at_is_handed_on(scores):
    """Scores and losses are not computed again by the loss."""
    scored = Scored(Known(*scores), Candidates(torch.arange(25).repeat(8, 1)))
    negatives = SoftmaxV().choose(scored)
    assert negatives.r_cj is scored.r_cj
    assert negatives.ell is scored.ell
    assert Softmax().choose(Scored(Known(*scores), scored.candidates)).ell is None


@pytest.mark.parametrize("backend", ["numba", "torch"])
@pytest.mark.parametrize(("M", "N"), [(1, 10), (3, 10), (5, 50)])
def test_frequency_of_each_rank_under_dns_matches_the_closed_form(backend, M, N):
    """P(the m-th hardest has rank ≤ k) = P(Binomial(N, k/n₋) ≥ m); χ² at α = 10⁻⁴, seed fixed."""
    trials, n_neg = 20_000, 30
    world = World(csr_matrix((1, 30), dtype=int), hns_backend=backend, seed=5)  # one user, nothing taken
    users = torch.zeros(trials, dtype=torch.long)
    items = torch.zeros(30, 2)
    items[:, 0] = -torch.arange(30.0)  # item k has rank k + 1
    candidates = UniformPool().open(world).draw(users, N)
    query = DotQuery(torch.ones(1, 2), items, users, users, world.backend)
    hardest = DNS(M).choose(Scored(query, candidates)).ids.numpy()
    ranks = np.arange(n_neg + 1)
    for m in range(1, M + 1):  # each order statistic by itself: its draws are independent
        expected = np.diff(binom.sf(m - 1, N, ranks / n_neg)) * trials
        observed = np.bincount(hardest[:, m - 1], minlength=30)
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
    weights = weigh(SoftmaxV(1.0), torch.tensor([0.1, 2.0, -5.0]), equal)
    torch.testing.assert_close(weights, torch.full((3, 7), 1 / 7))
    one_candidate = weigh(SoftmaxV(1.0), torch.zeros(2), torch.randn(2, 1))
    assert (one_candidate == 1).all()


finite = st.floats(-50, 50, width=32)


@settings(max_examples=200, deadline=None)
@given(st.lists(finite, min_size=1, max_size=30), finite, st.sampled_from([0.01, 0.3, 1.0, 100.0]))
def test_weights_are_a_distribution_that_prefers_harder_negatives(r_cj, r_ci, rho):
    r_cj, r_ci = torch.tensor([r_cj]), torch.tensor([r_ci])
    for rule in (SoftmaxV(rho), Softmax(rho)):
        weights = weigh(rule, r_ci, r_cj)[0]
        assert torch.isfinite(weights).all()
        assert float(weights.sum()) == pytest.approx(1, abs=1e-4)
        by_score = weights[r_cj[0].argsort(stable=True)]
        assert (by_score.diff() >= -1e-6).all()


def test_larger_rho_is_harder(scores):
    r_ci, r_cj = scores
    expected = [(weigh(SoftmaxV(rho), r_ci, r_cj) * r_cj).sum() for rho in (0.01, 0.1, 1, 10)]
    assert expected == sorted(expected)


def test_more_of_the_hardest_than_there_are_candidates_are_refused():
    DNS(M=20).check(20)
    DNS(M=20).check(None)  # of all negatives
    with pytest.raises(Error, match=r"^M=20 is not allowed: a whole number from 1 to 19 .* N=19"):
        DNS(M=20).check(19)


@pytest.mark.parametrize(
    ("rule", "beta"),
    [(Uniform(), 1.0), (DNS(M=5), 0.1), (Softmax(), None), (SoftmaxV(rho=2.0), math.exp(-2))],
    ids=str,
)
def test_beta_is_that_of_the_theorems(rule, beta):
    """Theorem 1: M/N, with N = 50; theorem 2: e^−ρ. A fixed temperature has none."""
    assert rule.beta(50) == (beta if beta is None else pytest.approx(beta))
