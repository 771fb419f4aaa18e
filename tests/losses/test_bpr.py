"""BPR against its formula, Σ_j p_cij log(1 + e^(r_cj − r_ci))."""

import math

import pytest
import torch
from written_out import assert_is, assert_over_all_is, at_great_scores, softplus

from recbole_hns.losses import BPR


def formula(r_ci, r_cj, p, log_q):
    return sum(w * softplus(j - r_ci) for j, w in zip(r_cj, p))


def test_value_and_gradients():
    assert_is(BPR(), formula)


def test_equal_scores_cost_log_2_and_pull_by_a_half():
    zero, p = torch.zeros(1), torch.tensor([[0.25, 0.75]])
    value, g_ci, g_cj = BPR().value_and_gradients(zero, torch.zeros(1, 2), p, 2)
    assert float(value) == pytest.approx(math.log(2))
    assert g_ci.tolist() == [-0.5]
    assert g_cj.tolist() == [[0.125, 0.375]]


def test_over_all_negatives(kernels):
    assert_over_all_is(BPR(), formula, kernels)
    assert_over_all_is(BPR(), formula, None)


def test_great_scores():
    assert at_great_scores(BPR()) == (2e4, [0, -1], [0, 1])
