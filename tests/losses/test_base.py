"""Losses by autograd, and all of them by name."""

import torch
from written_out import pairs

from recbole_hns import losses
from recbole_hns.losses import Loss
from recbole_hns.settings.registry import table


class Alone(Loss, frozen=True):
    """Has a pair, and nothing else."""

    def pair(self, r_ci, r_cj, p, log_q):
        return (p * torch.exp(r_cj - r_ci[:, None])).sum(dim=1)


def test_the_losses_that_there_are():
    assert table("loss") == {
        "bce": losses.BCE,
        "bpr": losses.BPR,
        "hinge": losses.Hinge,
        "softmax": losses.SampledSoftmax,
        "infonce": losses.InfoNCE,
    }
    assert {name for name, loss in table("loss").items() if "q" in loss.needs} == {"softmax"}
    assert all(loss.in_closed_form() for loss in table("loss").values())


def test_a_loss_that_writes_only_pair_has_all_the_rest():
    """dΣ/dr_cj = p e^(r_cj − r_ci), ℓ = e^(r_cj − r_ci)."""
    x = pairs()
    assert not Alone.in_closed_form()
    exp = torch.exp(x["r_cj"] - x["r_ci"][:, None])
    value, g_ci, g_cj = Alone().value_and_gradients(x["r_ci"], x["r_cj"], x["p"], 5)
    torch.testing.assert_close(value, (x["p"] * exp).sum())
    torch.testing.assert_close(g_ci, -(x["p"] * exp).sum(dim=1))
    torch.testing.assert_close(g_cj, x["p"] * exp)
    torch.testing.assert_close(Alone().ell(x["r_ci"], x["r_cj"]), exp)


def test_autograd_works_where_it_is_switched_off():
    """A run finds gradients on the way forward, where autograd is off."""
    x = pairs()
    with torch.no_grad():
        _, g_ci, _ = Alone().value_and_gradients(x["r_ci"], x["r_cj"], x["p"], 5)
    assert float(g_ci.sum()) < 0
    assert not g_ci.requires_grad
