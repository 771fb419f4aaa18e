"""Losses over a list, against their formulas, and the relations that the paper's Discussion names."""

import math
from itertools import pairwise

import pytest
import torch
from written_out import N, assert_is, assert_over_all_is, at_great_scores, pairs

from recbole_hns.losses import BPR, InfoNCE, SampledSoftmax
from recbole_hns.sampling.rules import SoftmaxV
from recbole_hns.sampling.scored import Rows


def sampled_softmax(r_ci, r_cj, p, log_q):
    """−log of e^r_ci's share among itself and Σ_j p_cij e^r_cj / q_cj."""
    negatives = sum(w * math.exp(j) / math.exp(lq) for j, w, lq in zip(r_cj, p, log_q))
    return -math.log(math.exp(r_ci) / (math.exp(r_ci) + negatives))


def infonce(temperature):
    """−log of e^(r_ci/t)'s share among itself and n Σ_j p_cij e^(r_cj/t)."""

    def formula(r_ci, r_cj, p, log_q):
        negatives = len(r_cj) * sum(w * math.exp(j / temperature) for j, w in zip(r_cj, p))
        return -math.log(math.exp(r_ci / temperature) / (math.exp(r_ci / temperature) + negatives))

    return formula


def test_sampled_softmax():
    assert_is(SampledSoftmax(), sampled_softmax)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_infonce(temperature):
    assert_is(InfoNCE(temperature=temperature), infonce(temperature))


def test_over_all_negatives(kernels):
    assert_over_all_is(SampledSoftmax(), sampled_softmax, kernels)
    assert_over_all_is(InfoNCE(temperature=0.5), infonce(0.5), kernels)


def test_great_scores():
    assert at_great_scores(SampledSoftmax()) == (2e4, [0, -1], [0, 1])
    value, g_ci, g_cj = at_great_scores(InfoNCE(temperature=0.5))
    assert (value, g_ci, g_cj) == (4e4, [0, -2], [0, 2])


def test_a_negative_that_weighs_nothing_is_not_there():
    """log 0 = −∞ is no NaN in the value or the gradients."""
    x = pairs()
    x["p"][:, 1] = 0
    left = {name: column[:, [0, 2, 3, 4]] if name != "r_ci" else column for name, column in x.items()}
    value, g_ci, g_cj = SampledSoftmax().value_and_gradients(**x, n=N)
    expected = SampledSoftmax().value_and_gradients(**left, n=N - 1)
    torch.testing.assert_close((value, g_ci, g_cj[:, [0, 2, 3, 4]]), expected)
    assert (g_cj[:, 1] == 0).all()


def test_sampled_softmax_estimates_the_sum_over_all_items(generator):
    """The mean of Σ_j e^r_j / (N q_j) over draws is Σ e^r, within 4 standard errors (p < 10⁻⁴)."""
    draws, n = 4000, 20
    r, q = torch.randn(50, generator=generator), torch.rand(50, generator=generator)
    q /= q.sum()
    drawn = torch.multinomial(q.expand(draws, -1), n, replacement=True, generator=generator)
    pair = SampledSoftmax().pair(
        torch.zeros(draws), r[drawn], torch.full((draws, n), 1 / n), q[drawn].log()
    )
    estimate = pair.exp() - 1
    error = float(estimate.std()) / draws**0.5
    assert abs(float(estimate.mean() - r.exp().sum())) < 4 * error


# ----------------------------------------------------------------------------------- the Discussion


def weights(rule, r_ci, r_cj):
    return rule.weigh(Rows(r_ci, r_cj, BPR()))


def kl_to_uniform(p):
    """KL(p ‖ uniform) of each row."""
    return (p * (p * p.shape[1]).log()).nan_to_num(0).sum(dim=1)


def test_softmax_v_bounds_the_softmax_loss_from_above():
    """Σ p ℓ is above log(1 + mean_j e^(r_cj − r_ci)) for p ∝ e^ℓ, by exactly KL(p ‖ uniform).

    For p ∝ exp(ℓ/τ), Σ p ℓ = τ log mean_j exp(ℓ/τ) + τ KL(p ‖ uniform) (Donsker and Varadhan), and
    mean_j exp ℓ = 1 + mean_j e^(r_cj − r_ci) for the ℓ of BPR. A larger ρ only raises Σ p ℓ, so
    Softmax-v is above the softmax loss from the ρ on at which its τ is 1.
    """
    x = pairs()
    L = BPR().ell(x["r_ci"], x["r_cj"])
    softmax_loss = torch.log1p((x["r_cj"] - x["r_ci"][:, None]).exp().mean(dim=1))
    p = torch.softmax(L, dim=1)
    torch.testing.assert_close((p * L).sum(dim=1) - softmax_loss, kl_to_uniform(p))
    for b in range(len(L)):
        rho = float(L[b].var(unbiased=False)) / 2  # τ = √(Var / 2ρ) = 1
        row = x["r_ci"][b : b + 1], x["r_cj"][b : b + 1]
        for factor in (1.0, 2.0, 5.0, 50.0):
            weighed = weights(SoftmaxV(rho=rho * factor), *row)
            assert float((weighed * L[b]).sum()) >= float(softmax_loss[b]) - 1e-9


def test_the_gradient_of_the_softmax_loss_is_bprs_under_softmax_v_weights():
    """With p ∝ e^ℓ: p_j σ(r_cj − r_ci) = e^(r_cj − r_ci) / Σ_k (1 + e^(r_ck − r_ci))."""
    x = pairs()
    p = torch.softmax(BPR().ell(x["r_ci"], x["r_cj"]), dim=1)
    _, _, weighted = BPR().value_and_gradients(x["r_ci"], x["r_cj"], p, N)
    # InfoNCE with 1/n on each negative in the place of 1: log(1 + mean_j e^(r_cj − r_ci))
    thin = torch.full_like(p, 1 / N**2)
    _, _, softmax = InfoNCE().value_and_gradients(x["r_ci"], x["r_cj"], thin, N)
    torch.testing.assert_close(weighted, softmax)


def test_a_lower_temperature_is_harder_as_a_larger_rho_is():
    """Both move the gradient's shares away from uniform, by KL, at each step."""
    x = pairs()
    equal = torch.full_like(x["p"], 1 / N)

    def shares(temperature):
        g = InfoNCE(temperature=temperature).value_and_gradients(x["r_ci"], x["r_cj"], equal, N)[2]
        return g / g.sum(dim=1, keepdim=True)

    by_temperature = [float(kl_to_uniform(shares(t)).mean()) for t in (5.0, 1.0, 0.5, 0.2)]
    rules = [SoftmaxV(rho=rho) for rho in (0.01, 0.1, 1.0, 10.0)]
    by_rho = [float(kl_to_uniform(weights(rule, x["r_ci"], x["r_cj"])).mean()) for rule in rules]
    for hardness in (by_temperature, by_rho):
        assert all(a < b for a, b in pairwise(hardness))
    assert by_rho[0] == pytest.approx(0.01, rel=0.1)  # ρ is that KL, to second order (theorem 2)
