from functools import partial

import pytest
import torch

from recbole_hns.loss import logistic, weighted_pair_loss


@pytest.fixture
def scores(generator):
    r_ci = 4 * torch.randn(12, generator=generator)
    r_cj = 4 * torch.randn(12, 7, generator=generator)
    return r_ci, r_cj, torch.rand(12, 7, generator=generator).softmax(dim=1)


def by_autograd(r_ci, r_cj, p):
    """1/|B| Σ Σ p log(1 + e^−(r_ci − r_cj)), as it is written."""
    return (p * torch.log1p(torch.exp(-(r_ci[:, None] - r_cj)))).sum(dim=1).mean()


def test_value_and_gradient_are_those_of_the_definition(scores):
    r_ci, r_cj, p = scores
    results = []
    L = logistic(r_cj - r_ci[:, None])
    with_losses = partial(weighted_pair_loss, L=L)
    for function in (by_autograd, weighted_pair_loss, with_losses):
        a, b = r_ci.clone().requires_grad_(), r_cj.clone().requires_grad_()
        loss = function(a, b, p)
        (3 * loss).backward()
        results.append((loss.detach(), a.grad, b.grad))
    for expected, *ours in zip(*results):
        for value in ours:
            torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-6)


def test_extreme_scores_stay_finite():
    r_ci = torch.tensor([1e4, -1e4], requires_grad=True)
    r_cj = torch.tensor([[-1e4], [1e4]], requires_grad=True)
    loss = weighted_pair_loss(r_ci, r_cj, torch.ones(2, 1))
    loss.backward()
    assert float(loss) == pytest.approx(1e4)
    assert r_ci.grad.tolist() == [0.0, -0.5]


def test_a_second_backward_pass_is_refused_and_not_wrong(scores):
    r_ci, r_cj, p = scores
    loss = weighted_pair_loss(r_ci.requires_grad_(), r_cj, p)
    loss.backward(retain_graph=True)
    with pytest.raises(AttributeError):
        loss.backward()


def test_logistic_at_no_violation():
    assert float(logistic(torch.zeros(()))) == pytest.approx(0.693147, abs=1e-6)
