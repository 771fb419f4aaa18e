"""The hinge against its formula, and what its margin has in common with DNS's M."""

import pytest
import torch
from written_out import N, assert_is, assert_over_all_is, at_great_scores, pairs

from recbole_hns.errors import Error
from recbole_hns.losses import Hinge


def formula(margin):
    """Σ_j p_cij max(0, margin − r_ci + r_cj)."""
    return lambda r_ci, r_cj, p, log_q: sum(w * max(0.0, margin - r_ci + j) for j, w in zip(r_cj, p))


@pytest.mark.parametrize("margin", [0.1, 1.0, 3.0])
def test_value_and_gradients(margin):
    assert_is(Hinge(margin=margin), formula(margin))


def test_over_all_negatives(kernels):
    assert_over_all_is(Hinge(), formula(1.0), kernels)


def test_at_the_margin_there_is_no_gradient():
    r_cj = torch.tensor([[0.0, 0.5, -0.5]])
    value, g_ci, g_cj = Hinge(margin=1.0).value_and_gradients(
        torch.ones(1), r_cj, torch.full((1, 3), 0.2), 3
    )
    assert float(value) == pytest.approx(0.1)
    assert g_cj.tolist() == [[0, pytest.approx(0.2), 0]]
    assert g_ci.tolist() == [pytest.approx(-0.2)]


def test_great_scores():
    assert at_great_scores(Hinge(margin=1.0)) == (20001, [0, -1], [0, 1])
    assert at_great_scores(Hinge(margin=1e30)) == (pytest.approx(2e30), [-1, -1], [1, 1])


@pytest.mark.parametrize("margin", [0, -1.0, float("nan"), "1", None])
def test_a_margin_is_a_number_above_0(margin):
    with pytest.raises(Error, match="is not allowed: it must be a number greater than 0"):
        Hinge(margin=margin)


@pytest.mark.parametrize("M", [1, 3, 4])
def test_a_margin_keeps_the_negatives_that_dns_keeps(M):
    """Between the M-th and the next violation: the same M negatives, all with the same gradient."""
    x = pairs()
    for i, row in zip(x["r_ci"], x["r_cj"]):
        v = (row - i).sort(descending=True).values + 10  # a margin is above 0
        margin = float(10 - (v[M - 1] + v[M]) / 2 + 10)
        p = torch.full((1, N), 1 / N, dtype=torch.float64)
        _, _, g = Hinge(margin=margin).value_and_gradients(i[None] + 10, row[None], p, N)
        kept = torch.zeros(N, dtype=torch.float64).scatter(0, row.topk(M).indices, 1 / N)
        torch.testing.assert_close(g[0], kept)
