import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch

from recbole_hns import Error
from recbole_hns.kernels import Candidates
from recbole_hns.sampling import Method, Positives, World, pools, rules
from recbole_hns.theory import sampling


def dns(M, N):
    return Method(rule=rules.DNS(M=M), N=N)


UNIFORM = Method(rule=rules.Uniform(), N=1)


@pytest.fixture
def pair():
    return sampling.generated_pair(n_users=30, n_items=400, d=8, seed=3)


def small_pair(scores, taken=(1,)):
    """A user who took ``taken``, of items 1, 2, … with these scores."""
    taken = np.array(taken)
    positives = Positives(np.ones(len(taken), np.int64), taken, 2, len(scores) + 1)
    scores = torch.tensor([0.0, *scores])
    return sampling.Pair(World(positives, seed=1), 1, int(taken[0]), scores)


def test_ranks_are_the_order_of_the_users_negatives():
    pair = small_pair([9.0, 1.0, 3.0, 8.0, 2.0, 3.0], taken=[1, 4])
    assert pair.ranks.tolist() == [0, 0, 4, 1, 0, 3, 2]  # of items 3 and 6 the first comes first


def test_generated_pairs_are_of_users_who_took_thirty_items(pair):
    assert pair.positive in pair.world.positives.row(pair.user)
    assert np.diff(pair.world.positives.indptr)[1:].tolist() == [30] * 30
    assert sorted(pair.ranks) == [0] * 31 + list(range(1, 371))


def test_a_query_looks_scores_up():
    pair = small_pair([9.0, 1.0, 3.0, 8.0, 2.0, 3.0])
    query = sampling.PairQuery(pair, torch.tensor([1, 1]))
    drawn = Candidates(torch.tensor([[2, 3, 4], [6, 5, 3]], dtype=torch.int32))
    assert query.r_ci.tolist() == [9.0, 9.0]
    assert query.score(drawn).tolist() == [[1.0, 3.0, 8.0], [3.0, 2.0, 3.0]]
    ids, scores = query.top(drawn, 2)
    assert ids.tolist() == [[4, 3], [3, 6]]
    assert scores.tolist() == [[8.0, 3.0], [3.0, 3.0]]
    assert query.at(torch.tensor([1])).positives.tolist() == [1]


@pytest.mark.parametrize("method", [UNIFORM, dns(1, 20), dns(5, 20), dns(5, 100)])
def test_simulated_draws_follow_the_closed_form(pair, method):
    """Kolmogorov's distance of the draws, at a false-alarm rate below 10⁻⁶; the seed is fixed."""
    draws = 4000
    simulated = sampling.cumulative_probability(pair, method, draws)
    exact = sampling.exact_probability(method, len(simulated))
    assert simulated[-1] == pytest.approx(1, abs=1e-6)
    assert np.abs(simulated - exact).max() < 2.7 / draws**0.5


@pytest.mark.parametrize(("M", "N"), [(1, 2), (2, 3), (3, 3)])
def test_the_exact_form_of_dns_is_that_of_a_brute_force_count(M, N):
    """All 4ᴺ ordered draws of N among 4 negatives, the M best kept."""
    kept = np.zeros(4)
    for drawn in itertools.product(range(4), repeat=N):
        for rank in sorted(drawn)[:M]:
            kept[rank] += 1 / M / 4**N
    np.testing.assert_allclose(sampling.exact_probability(dns(M, N), 4), np.cumsum(kept))


def test_softmax_v_is_the_mean_of_its_weights_over_all_draws():
    """p_cij ∝ exp(ℓ/τ), τ = √(Var ℓ / 2ρ), averaged over all 3² ordered draws of 2 among 3 negatives."""
    scores, rho = [1.0, 2.0, 0.5, -1.0], 0.7
    expected = np.zeros(3)
    for drawn in itertools.product(range(3), repeat=2):
        ell = np.log1p(np.exp([scores[1 + j] - scores[0] for j in drawn]))
        tau = np.sqrt(ell.var() / (2 * rho))
        p = np.exp(ell / tau) if tau > 0 else np.ones(2)
        np.add.at(expected, list(drawn), p / p.sum() / 9)
    method = Method(rule=rules.SoftmaxV(rho=rho), N=2)
    simulated = sampling.cumulative_probability(small_pair(scores), method, draws=40_000)
    np.testing.assert_allclose(simulated, np.cumsum(expected), atol=0.01)


def test_equal_scores_are_ranked_as_they_are_drawn():
    """A model with ties is simulated like one without: DNS follows its closed form."""
    pair = small_pair([1.0] * 20)
    simulated = sampling.cumulative_probability(pair, dns(2, 6), 20_000)
    exact = sampling.exact_probability(dns(2, 6), 19)
    assert np.abs(simulated - exact).max() < 2.7 / 20_000**0.5


def test_harder_settings_rise_faster(pair):
    def median_rank(method):
        return np.searchsorted(sampling.cumulative_probability(pair, method, 2000), 0.5)

    def soft(rho):
        return Method(rule=rules.SoftmaxV(rho=rho), N=50)

    assert median_rank(dns(1, 50)) < median_rank(dns(5, 50)) < median_rank(dns(20, 50))
    assert median_rank(dns(5, 100)) < median_rank(dns(5, 20))
    assert median_rank(soft(10.0)) < median_rank(soft(0.1)) < median_rank(UNIFORM)


def test_what_has_no_closed_form_gets_none():
    for method in (
        Method(rule=rules.SoftmaxV(), N=10),
        Method(rule=rules.Softmax(), N=10),
        Method(pools.Popularity(), rules.DNS(M=2), N=10),
    ):
        assert sampling.exact_probability(method, 50) is None


def test_draws_come_in_batches_that_fit_into_memory(pair, monkeypatch):
    monkeypatch.setattr(sampling, "CANDIDATES", 60)
    shapes = []
    score = sampling.PairQuery.score
    monkeypatch.setattr(
        sampling.PairQuery, "score", lambda query, c: shapes.append(c.ids.shape) or score(query, c)
    )
    method = Method(rule=rules.SoftmaxV(), N=20)
    simulated = sampling.cumulative_probability(pair, method, 10)
    assert [tuple(shape) for shape in shapes] == [(3, 20), (3, 20), (3, 20), (1, 20)]
    assert simulated[-1] == pytest.approx(1, abs=1e-6)


def test_a_pair_is_drawn_by_seed_or_named():
    positives = Positives(np.array([1, 1, 3]), np.array([2, 5, 4]), 4, 6)
    drawn = {sampling.choose_pair(positives, seed) for seed in range(40)}
    assert drawn == {(1, 2), (1, 5), (3, 4)}
    assert sampling.choose_pair(positives, 7) == sampling.choose_pair(positives, 7)
    assert sampling.choose_pair(positives, 0, 1, 5) == (1, 5)
    assert sampling.choose_pair(positives, 0, 3) == (3, 4)
    for user, item in ((1, 4), (2, None), (2, 4)):  # user 2 took nothing
        with pytest.raises(Error, match="no such training item"):
            sampling.choose_pair(positives, 0, user, item)


def test_labels_are_those_of_reports():
    methods = [dns(2, 20), Method(rule=rules.SoftmaxV(rho=0.1), N=20), UNIFORM]
    methods.append(Method(rule=rules.Softmax(tau=0.5), N=20))
    labels = [sampling.label_of(method) for method in methods]
    assert labels == ["DNS(2, 20)", "Softmax-v(0.1, 20)", "uniform", "Softmax(0.5, 20)"]


def test_csv_is_written(pair, tmp_path):
    settings = {"M": [dns(2, 20)], "ρ": [Method(rule=rules.SoftmaxV(rho=1.0), N=20)]}
    curves = sampling.sampling_curves(pair, settings, draws=100, progress=False)
    assert [curve.label for curve in curves] == ["uniform", "DNS(2, 20)", "uniform", "Softmax-v(1, 20)"]
    assert [curve.reference for curve in curves] == [True, False, True, False]
    sampling.write_csv(curves, tmp_path / "s.csv")
    head, first, *rest = (tmp_path / "s.csv").read_text().splitlines()
    assert head == "panel,setting,rank,simulated,exact"
    assert first == f"M,uniform,1,{curves[0].simulated[0]:.6f},{1 / 370:.6f}"
    assert rest[-1] == 'ρ,"Softmax-v(1, 20)",370,1.000000,'
    assert len(rest) == 4 * 370 - 1


def test_theory_is_numbers_only():
    """It imports neither RecBole nor anything that reads data or draws figures."""
    code = (
        "import sys; blocked = ('recbole', 'ray', 'pandas', 'matplotlib', 'plotly')\n"
        "sys.modules.update(dict.fromkeys(blocked))\n"
        "from recbole_hns.theory import sampling, correlation, topk_bounds\n"
        "from recbole_hns.sampling import Method, rules\n"
        "pair = sampling.generated_pair(20, 100, 4)\n"
        "method = Method(rule=rules.DNS(M=1), N=5)\n"
        "print(sampling.cumulative_probability(pair, method, 50)[-1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert float(done.stdout) == pytest.approx(1)
