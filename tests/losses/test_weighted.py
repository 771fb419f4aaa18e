"""The mean loss as autograd sees it."""

import pytest
import torch
from written_out import B, pairs

from recbole_hns.losses import BCE, BPR, Hinge, InfoNCE, Loss, SampledSoftmax, mean_loss


class Square(Loss, frozen=True):
    """Σ_j p_cij (1 − r_ci + r_cj)², without a gradient in closed form."""

    def pair(self, r_ci, r_cj, p, log_q):
        return (p * (1 - r_ci[:, None] + r_cj) ** 2).sum(dim=1)


@pytest.mark.parametrize("loss", [BPR(), BCE(), Hinge(), SampledSoftmax(), InfoNCE(), Square()], ids=str)
def test_it_is_the_mean_of_pair_with_its_gradient(loss):
    """Times three, so that a factor that comes from behind shows."""
    x = pairs()
    results = []
    for value_of in (
        lambda i, j: loss.pair(i, j, x["p"], x["log_q"]).sum() / B,
        lambda i, j: mean_loss(loss, i, j, x["p"], x["log_q"]),
        lambda i, j: mean_loss(loss, i, j, x["p"], x["log_q"], loss.ell(x["r_ci"], x["r_cj"])),
    ):
        i, j = x["r_ci"].clone().requires_grad_(), x["r_cj"].clone().requires_grad_()
        value = value_of(i, j)
        results.append((value.detach(), *torch.autograd.grad(3 * value, (i, j))))
    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(results[2], results[0])


def test_no_gradient_flows_to_the_weights():
    x = pairs()
    p = x["p"].requires_grad_()
    value = mean_loss(BPR(), x["r_ci"].requires_grad_(), x["r_cj"], p)
    value.backward()
    assert p.grad is None
    assert x["r_ci"].grad is not None


def test_a_second_backward_pass_is_refused_and_not_wrong():
    x = pairs()
    value = mean_loss(BPR(), x["r_ci"].requires_grad_(), x["r_cj"], x["p"])
    value.backward(retain_graph=True)
    with pytest.raises(TypeError):
        value.backward()
