"""BCE against its formula, Σ_j p_cij (log(1 + e^−r_ci) + log(1 + e^r_cj))."""

import pytest
import torch
from written_out import assert_is, assert_over_all_is, at_great_scores, softplus

from recbole_hns.losses import BCE


def formula(r_ci, r_cj, p, log_q):
    return sum(w * (softplus(-r_ci) + softplus(j)) for j, w in zip(r_cj, p))


def test_value_and_gradients():
    assert_is(BCE(), formula)


def test_over_all_negatives(kernels):
    assert_over_all_is(BCE(), formula, kernels)


def test_positives_and_negatives_are_classified_apart():
    """The positive's gradient does not depend on the negatives, nor theirs on it."""
    p = torch.full((1, 2), 0.5)
    one, other = (
        BCE().value_and_gradients(torch.tensor([i]), torch.tensor([[j, 1.0]]), p, 2)
        for i, j in ((0.3, -2.0), (0.3, 5.0))
    )
    assert float(one[1]) == float(other[1]) == pytest.approx(-1 / (1 + 2.718281828**0.3), rel=1e-6)
    assert (
        float(one[2][0, 1])
        == float(other[2][0, 1])
        == pytest.approx(0.5 / (1 + 1 / 2.718281828), rel=1e-6)
    )


def test_one_weight_for_all_negatives_counts_n_times():
    """p (B, 1), as over all items: Σ_j p = n p."""
    r_ci, r_cj = torch.tensor([0.5]), torch.tensor([[0.1, -0.4, 2.0]])
    alike = BCE().value_and_gradients(r_ci, r_cj, torch.full((1, 3), 1 / 3), 3)
    torch.testing.assert_close(
        BCE().value_and_gradients(r_ci, r_cj, torch.full((1, 1), 1 / 3), 3), alike
    )


def test_great_scores():
    assert at_great_scores(BCE()) == (2e4, [0, -1], [0, 1])
