import numpy as np
import pytest
import torch

from recbole_hns import Error
from recbole_hns.sampling import DNS, Softmax, SoftmaxV, Uniform
from recbole_hns.theory import sampling


@pytest.fixture(scope="module")
def pair():
    return sampling.generated_pair(n_users=30, n_items=400, d=8)


def test_ranks_are_the_order_of_the_users_negatives(pair):
    scores = pair.items @ pair.context[pair.user]
    taken = pair.pool.used_ids[pair.user]
    negatives = sorted((j for j in range(1, 401) if j not in taken), key=lambda j: -float(scores[j]))
    assert [int(np.flatnonzero(pair.ranks == k)[0]) for k in (1, 2, 50)] == [
        negatives[k - 1] for k in (1, 2, 50)
    ]
    assert pair.ranks.max() == len(negatives)
    assert pair.positive in taken


@pytest.mark.parametrize(("rule", "N"), [(Uniform(), 1), (DNS(1), 20), (DNS(5), 20), (DNS(5), 100)])
def test_simulated_draws_follow_the_closed_form(pair, rule, N):
    """Kolmogorov's distance of the draws, at a false-alarm rate below 10⁻⁶; the seed is fixed."""
    draws = 4000
    simulated = sampling.cumulative_probability(pair, rule, N, draws, seed=3)
    exact = sampling.exact_probability(rule, N, len(simulated))
    assert simulated[-1] == pytest.approx(1, abs=1e-6)
    assert np.abs(simulated - exact).max() < 2.7 / draws**0.5


def test_the_exact_form_of_dns_is_that_of_a_brute_force_count():
    """All 4² ordered draws of 2 among 4 negatives, the better one kept."""
    kept = np.zeros(4)
    for first in range(4):
        for second in range(4):
            kept[min(first, second)] += 1 / 16
    np.testing.assert_allclose(sampling.exact_probability(DNS(1), 2, 4), np.cumsum(kept))


def test_harder_settings_rise_faster(pair):
    def median_rank(rule, N):
        return np.searchsorted(sampling.cumulative_probability(pair, rule, N, 2000), 0.5)

    assert median_rank(DNS(1), 50) < median_rank(DNS(5), 50) < median_rank(DNS(20), 50)
    assert median_rank(DNS(5), 100) < median_rank(DNS(5), 20)
    assert median_rank(SoftmaxV(10.0), 50) < median_rank(SoftmaxV(0.1), 50) < median_rank(Uniform(), 1)


def test_softmax_rules_have_no_closed_form():
    assert sampling.exact_probability(SoftmaxV(1.0), 10, 50) is None
    assert sampling.exact_probability(Softmax(1.0), 10, 50) is None


def test_a_pair_outside_the_training_set_is_refused(pair):
    dataset = pair.pool.datasets[0]
    stranger = next(j for j in range(1, 401) if j not in pair.pool.used_ids[pair.user])
    with pytest.raises(Error, match="training set"):
        sampling.choose_pair(torch.zeros(31, 8), torch.zeros(401, 8), dataset, 0, pair.user, stranger)


def test_csv_and_figure_are_written(pair, tmp_path):
    settings = {"M": [(DNS(2), 20)], "ρ": [(SoftmaxV(1.0), 20)]}
    curves = sampling.sampling_curves(pair, settings, draws=100, progress=False)
    assert [curve.label for curve in curves] == ["uniform", "DNS(2, 20)", "uniform", "Softmax-v(1, 20)"]
    sampling.write_csv(curves, tmp_path / "s.csv")
    sampling.plot(curves, tmp_path / "s.png")
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert len(lines) == 1 + sum(len(curve.simulated) for curve in curves)
    assert (tmp_path / "s.png").stat().st_size > 10_000
