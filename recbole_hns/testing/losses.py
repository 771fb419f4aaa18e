"""Does a loss keep its contract?"""

from __future__ import annotations

import torch

from recbole_hns.kernels import get_kernels
from recbole_hns.losses import Loss
from recbole_hns.losses.base import Gradients
from recbole_hns.testing.parts import check_part, extremes, made
from recbole_hns.testing.say import (
    called,
    failing_as,
    require,
    require_close,
    require_finite,
    require_shape,
    unchanged,
)
from recbole_hns.testing.worlds import BACKENDS

SIZES = ((1, 1), (3, 1), (2, 5), (7, 40))
BIG = 1e4  # a score that training in 32 bits may come to


def check_loss(loss: Loss | type[Loss]) -> None:
    """The value, its gradient by autograd, ``ell``, what q is used for, great scores, all items.

    Raises:
        AssertionError: with what is broken, in a sentence.
    """
    loss = made(loss, Loss)
    check_part(loss)
    for B, n in SIZES:
        for q_columns in (n, 1):
            _check_gradient(loss, B, n, q_columns)
        _check_ell(loss, B, n)
    _check_autograd(loss)
    _check_use_of_q(loss)
    _check_nothing_for_no_weight(loss)
    for one in extremes(loss):
        _check_great_scores(one)
    if loss.in_closed_form():
        for backend in (*BACKENDS, None):
            _check_over_all(loss, backend)


def _numbers(B: int, n: int, dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """Scores, weights and log q of B pairs with n negatives."""
    generator = torch.Generator().manual_seed(100 * B + n)
    return {
        "r_ci": 2 * torch.randn(B, generator=generator, dtype=dtype),
        "r_cj": 2 * torch.randn(B, n, generator=generator, dtype=dtype),
        "p": torch.rand(B, n, generator=generator, dtype=dtype).softmax(dim=1),
        "log_q": torch.rand(B, n, generator=generator, dtype=dtype).log(),
    }


def _by_autograd(
    loss: Loss, r_ci: torch.Tensor, r_cj: torch.Tensor, p: torch.Tensor, log_q: torch.Tensor | None
) -> Gradients:
    """The sum of ``pair``, and what autograd says of it."""
    i, j = r_ci.clone().requires_grad_(), r_cj.clone().requires_grad_()
    with failing_as(f"{called(loss)}: pair"):
        each = loss.pair(i, j, p, log_q)
        require_shape(each, tuple(r_ci.shape), f"{called(loss)}: pair, one loss for each pair,")
        g_ci, g_cj = torch.autograd.grad(each.sum(), (i, j))
    return each.sum().detach(), g_ci, g_cj


def _check_gradient(loss: Loss, B: int, n: int, q_columns: int) -> None:
    """``value_and_gradients`` against autograd of ``pair``, also with ℓ known already."""
    x = _numbers(B, n)
    x["log_q"] = x["log_q"][:, :q_columns]
    expected = _by_autograd(loss, **x)
    for L in (None, loss.ell(x["r_ci"], x["r_cj"])):
        what = f"{called(loss)}: value_and_gradients{'' if L is None else ' with L known'}"

        def run(L: torch.Tensor | None = L) -> Gradients:
            return loss.value_and_gradients(x["r_ci"], x["r_cj"], x["p"], n, x["log_q"], L)

        with failing_as(what):
            found: Gradients = unchanged(x, what, run)
        names = ("the value", "the gradient by r_ci", "the gradient by r_cj")
        for name, ours, theirs in zip(names, found, expected, strict=True):
            require_close(ours, theirs, f"{what} for {B} pairs with {n} negatives, {name}", 1e-9)


def _check_autograd(loss: Loss) -> None:
    """``pair``'s own gradient against differences of its values."""
    x, h = _numbers(3, 4), 1e-6
    _, g_ci, g_cj = _by_autograd(loss, **x)
    for name, gradient in (("r_ci", g_ci), ("r_cj", g_cj)):
        for place in range(x[name].numel()):
            up, down = ({**x, name: x[name].clone()} for _ in range(2))
            up[name].view(-1)[place] += h
            down[name].view(-1)[place] -= h
            slope = (loss.pair(**up).sum() - loss.pair(**down).sum()) / (2 * h)
            what = f"{called(loss)}: the slope of pair by {name}, by autograd"
            require_close(gradient.view(-1)[place], slope, what, 1e-5)


def _check_ell(loss: Loss, B: int, n: int) -> None:
    """ℓ is the loss of a pair with one negative, which weighs 1."""
    x, one = _numbers(B, n), torch.ones(B, 1, dtype=torch.float64)
    with failing_as(f"{called(loss)}: ell"):
        found = loss.ell(x["r_ci"], x["r_cj"])
    require_shape(found, (B, n), f"{called(loss)}: ell")
    for j in range(n):
        alone = loss.pair(x["r_ci"], x["r_cj"][:, j : j + 1], one, torch.zeros_like(one))
        require_close(
            found[:, j], alone, f"{called(loss)}: ell of negative {j}, against pair with it alone", 1e-9
        )


def _check_use_of_q(loss: Loss) -> None:
    """log q comes to a loss that needs q, and to no other."""
    x = _numbers(5, 6)
    other = {**x, "log_q": x["log_q"].flip(1) - 1}
    uses = not torch.allclose(loss.pair(**x), loss.pair(**other))
    declares = "q" in loss.needs
    require(
        declares or not uses,
        f"{called(loss)} uses log_q, which comes to no loss without needs = {{'q'}}: declare it.",
    )
    require(
        uses or not declares,
        f"{called(loss)} declares needs = {{'q'}} and does not use log_q: leave it out.",
    )
    if not declares:
        with failing_as(f"{called(loss)}: pair without log_q"):
            without = loss.pair(x["r_ci"], x["r_cj"], x["p"], None)
            require_close(without, loss.pair(**x), f"{called(loss)}: pair without log_q")


def _check_nothing_for_no_weight(loss: Loss) -> None:
    """A candidate whose weight is 0, as a softmax in 32 bits gives, has no gradient."""
    x = _numbers(4, 5, torch.float32)
    x["p"][:, 2] = 0
    value, g_ci, g_cj = loss.value_and_gradients(x["r_ci"], x["r_cj"], x["p"], 5, x["log_q"])
    for name, found in (("value", value), ("gradient by r_ci", g_ci), ("gradient by r_cj", g_cj)):
        require_finite(found, f"{called(loss)}: the {name} where a candidate weighs 0")
    most = float(g_cj[:, 2].abs().max())
    require(
        most == 0, f"{called(loss)}: a candidate that weighs 0 has the gradient {most:.3g} instead of 0."
    )


def _check_great_scores(loss: Loss) -> None:
    """Scores of thousands, either way, with the loss's numbers as they are, small and large."""
    r_ci = torch.tensor([BIG, -BIG, BIG])
    r_cj = torch.tensor([[-BIG, 0.0], [BIG, 0.0], [BIG, BIG]])
    p = torch.full((3, 2), 0.5)
    found = loss.value_and_gradients(r_ci, r_cj, p, 2, p.log())
    for name, x in zip(("value", "gradient by r_ci", "gradient by r_cj"), found, strict=True):
        require_finite(x, f"{called(loss)} with {loss.settings}: the {name} for scores of ±{BIG:g}")


def _check_over_all(loss: Loss, backend: str | None) -> None:
    """``over_all`` against each pair with a list of its user's negatives."""
    generator = torch.Generator().manual_seed(4)
    owner, scores = torch.tensor([0, 0, 1, 2, 2, 2, 3]), torch.randn(4, 9, generator=generator)
    taken = torch.rand(4, 9, generator=generator) < 0.3
    r_ci = torch.randn(len(owner), generator=generator)
    n = (~taken).sum(dim=1).float()
    value, g_ci, G = torch.zeros(()), torch.zeros_like(r_ci), torch.zeros_like(scores)
    for b, user in enumerate(owner.tolist()):
        p = torch.full((1, int(n[user])), 1 / float(n[user]))
        more, g_ci[b : b + 1], g_cj = _by_autograd(
            loss, r_ci[b : b + 1], scores[user, ~taken[user]][None], p, p.log()
        )
        value = value + more
        G[user, ~taken[user]] += g_cj[0]
    kernels = None if backend is None else get_kernels(backend, scores.device)
    what = f"{called(loss)}: over_all, kernels {backend}"
    with failing_as(what):
        found = loss.over_all(r_ci, scores.masked_fill(taken, -torch.inf), owner, n, kernels)
    for name, ours, theirs in zip(
        ("the value", "the gradient by r_ci", "by the scores"), found, (value, g_ci, G), strict=True
    ):
        require_close(ours, theirs, f"{what}, {name}")
