"""Our own losses pass; a broken one is caught by the sentence that says what is broken."""

from __future__ import annotations

from typing import Annotated, ClassVar

import pytest
import torch
import torch.nn.functional as F

from recbole_hns import losses
from recbole_hns.losses import BPR, Loss, SeparableLoss
from recbole_hns.settings import Positive, setting
from recbole_hns.settings.registry import table
from recbole_hns.testing import check_loss


@pytest.mark.parametrize("loss", table("loss").values(), ids=list(table("loss")))
def test_our_own_loss_passes(loss):
    check_loss(loss)


@pytest.mark.parametrize(
    "loss",
    [
        *(losses.Hinge(margin=margin) for margin in (1e-30, 3.0)),
        *(losses.InfoNCE(temperature=temperature) for temperature in (0.3, 1e30)),
    ],
    ids=str,
)
def test_with_other_settings(loss):
    check_loss(loss)


class Slope(SeparableLoss, frozen=True):
    """log(1 + e^v), with the slope of a hinge."""

    def of(self, v):
        return F.softplus(v)

    def slope_(self, v):
        return v.gt(0).to(v.dtype)


class Overflowing(Loss, frozen=True):
    """log(1 + e^v), as it is written."""

    def pair(self, r_ci, r_cj, p, log_q):
        return (p * (1 + (r_cj - r_ci[:, None]).exp()).log()).sum(1)


class Mean(Loss, frozen=True):
    """A number in the place of one for each pair."""

    def pair(self, r_ci, r_cj, p, log_q):
        return (p * (r_cj - r_ci[:, None])).sum()


class HiddenQ(Loss, frozen=True):
    """Corrects for q and does not say so."""

    def pair(self, r_ci, r_cj, p, log_q):
        return torch.logsumexp(p.log() + r_cj - r_ci[:, None] - log_q, dim=1)


class NoQ(BPR, frozen=True):
    """Says that it corrects for q."""

    needs: ClassVar[frozenset[str]] = frozenset({"q"})


class OtherEll(BPR, frozen=True):
    """ℓ of another loss."""

    def ell(self, r_ci, r_cj):
        return F.relu(r_cj - r_ci[:, None])


class InPlace(BPR, frozen=True):
    """Spares a tensor."""

    def value_and_gradients(self, r_ci, r_cj, p, n, log_q=None, L=None):
        return super().value_and_gradients(r_ci, r_cj, p.mul_(1).add_(1e-3), n, log_q, L)


class Unweighted(Loss, frozen=True):
    """Counts all candidates alike."""

    def pair(self, r_ci, r_cj, p, log_q):
        return F.softplus(r_cj - r_ci[:, None]).mean(1) * p.sum(1)


class Detached(Loss, frozen=True):
    """Loses the gradient of the positive."""

    def pair(self, r_ci, r_cj, p, log_q):
        return (p * F.softplus(r_cj - r_ci.detach()[:, None] - 0 * r_ci[:, None])).sum(1)


class Over(BPR, frozen=True):
    """Twice over all."""

    def over_all(self, r_ci, scores, owner, n, backend=None):
        value, g_ci, G = super().over_all(r_ci, scores, owner, n, backend)
        return value, g_ci, 2 * G


class Nothing(Loss, frozen=True):
    """Has no pair."""


class Divided(Loss, frozen=True):
    """Divides by what may be small before it raises e to it."""

    heat: Annotated[Positive, setting("the temperature")] = 1.0

    def pair(self, r_ci, r_cj, p, log_q):
        v = (r_cj - r_ci[:, None]).clamp(max=80)
        return (p * (1 + (v / self.heat).exp()).log()).sum(1)


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (
            Slope,
            r"slope: value_and_gradients for 1 pairs .*, the gradient by r_c[ij]: \S+ instead of",
        ),
        (Overflowing, r"with \{\}: the value for scores of ±10000: 1 of 1 numbers are not finite\."),
        (Mean, r"pair, one loss for each pair, has the shape \(\), and must have \(1,\)"),
        (
            HiddenQ,
            r"loss hidden_q uses log_q, which comes to no loss without needs = \{'q'\}: declare it\.",
        ),
        (NoQ, r"declares needs = \{'q'\} and does not use log_q: leave it out\."),
        (
            OtherEll,
            r"value_and_gradients with L known for 1 pairs|ell of negative 0, against pair with it alone",
        ),
        (InPlace, r"value_and_gradients overwrites p, which others read after it\."),
        (Unweighted, r"a candidate that weighs 0 has the gradient 0\.\d+ instead of 0\."),
        (Detached, r"the slope of pair by r_ci, by autograd: \S+ instead of -0\.\d+"),
        (Over, r"over_all, kernels numba, by the scores: \S+ instead of"),
        (Nothing, r"loss nothing: pair fails: NotImplementedError"),
        (
            Divided,
            r"with \{'heat': 0\.001\}: the value for scores of ±10000: 1 of 1 numbers are not finite",
        ),
    ],
)
def test_a_broken_loss_is_told(loss, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_loss(loss())


def test_a_whole_loss_by_autograd_passes():
    class Square(Loss, frozen=True):
        """Σ_j p_cij max(0, 1 − r_ci + r_cj)²."""

        def pair(self, r_ci, r_cj, p, log_q):
            return (p * (1 - r_ci[:, None] + r_cj).clamp(min=0) ** 2).sum(1)

    check_loss(Square)
