"""Pairs, and a loss written out number by number in Python's own floats."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from recbole_hns.losses import Loss

# of a pair: r_ci, its r_cj, their weights and log q
Formula = Callable[[float, list[float], list[float], list[float]], float]
B, N = 6, 5


def pairs() -> dict[str, torch.Tensor]:
    """Six pairs with five negatives each: scores, weights that sum to 1, and log q."""
    generator = torch.Generator().manual_seed(11)
    return {
        "r_ci": 2 * torch.randn(B, generator=generator, dtype=torch.float64),
        "r_cj": 2 * torch.randn(B, N, generator=generator, dtype=torch.float64),
        "p": torch.rand(B, N, generator=generator, dtype=torch.float64).softmax(dim=1),
        "log_q": torch.rand(B, N, generator=generator, dtype=torch.float64).log(),
    }


def softplus(x: float) -> float:
    """log(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def each(formula: Formula, x: dict[str, torch.Tensor]) -> list[float]:
    """The formula's value for each pair."""
    rows = zip(*(x[name].tolist() for name in ("r_ci", "r_cj", "p", "log_q")), strict=True)
    return [formula(*row) for row in rows]


def slopes(formula: Formula, x: dict[str, torch.Tensor], name: str, h: float = 1e-6) -> torch.Tensor:
    """The sum's slope by each number of ``name``: (f(x + h) − f(x − h)) / 2h."""
    found = torch.zeros_like(x[name])
    for place in range(found.numel()):
        for sign in (1, -1):
            moved = {**x, name: x[name].clone()}
            moved[name].view(-1)[place] += sign * h
            found.view(-1)[place] += sign * sum(each(formula, moved)) / (2 * h)
    return found


def assert_is(loss: Loss, formula: Formula) -> None:
    """``pair``, ``value_and_gradients`` and ``ell`` are the formula's values and slopes."""
    x = pairs()
    expected = torch.tensor(each(formula, x), dtype=torch.float64)
    torch.testing.assert_close(loss.pair(**x), expected)
    for L in (None, loss.ell(x["r_ci"], x["r_cj"])):
        value, g_ci, g_cj = loss.value_and_gradients(x["r_ci"], x["r_cj"], x["p"], N, x["log_q"], L)
        torch.testing.assert_close(value, expected.sum())
        torch.testing.assert_close(g_ci, slopes(formula, x, "r_ci"), rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(g_cj, slopes(formula, x, "r_cj"), rtol=1e-6, atol=1e-8)
    ell = [
        [formula(i, [j], [1.0], [0.0]) for j in row]
        for i, row in zip(x["r_ci"].tolist(), x["r_cj"].tolist())
    ]
    torch.testing.assert_close(loss.ell(x["r_ci"], x["r_cj"]), torch.tensor(ell, dtype=torch.float64))


def assert_over_all_is(loss: Loss, formula: Formula, backend: object) -> None:
    """``over_all``: each pair with all negatives of its user, p = q = 1/n₋; −∞ is no negative."""
    generator = torch.Generator().manual_seed(12)
    owner, scores = torch.tensor([0, 0, 1, 2, 2]), torch.randn(3, 8, generator=generator)
    r_ci, inf = torch.randn(5, generator=generator), -torch.inf
    scores[0, [1, 4]] = scores[1, 0] = scores[2, [0, 2, 3, 5]] = inf
    n = (scores > inf).sum(1).float()
    value, g_ci, G = 0.0, torch.zeros(5), torch.zeros(3, 8)
    for b, user in enumerate(owner.tolist()):
        j = (scores[user] > inf).nonzero()[:, 0]
        alike = torch.full((1, len(j)), 1 / len(j), dtype=torch.float64)
        x = {"r_ci": r_ci[b : b + 1].double(), "r_cj": scores[user, j][None].double(), "p": alike}
        x["log_q"] = alike.log()
        value += sum(each(formula, x))
        g_ci[b] = slopes(formula, x, "r_ci")[0]
        G[user, j] += slopes(formula, x, "r_cj")[0].float()
    found = loss.over_all(r_ci, scores.clone(), owner, n, backend)
    torch.testing.assert_close(found, (torch.tensor(value).float(), g_ci, G), rtol=1e-4, atol=1e-5)


def at_great_scores(loss: Loss) -> tuple[float, list[float], list[float]]:
    """For a positive far above its one negative, and one far below: the value and the gradients."""
    r_ci, r_cj, one = torch.tensor([1e4, -1e4]), torch.tensor([[-1e4], [1e4]]), torch.ones(2, 1)
    value, g_ci, g_cj = loss.value_and_gradients(r_ci, r_cj, one, 1, torch.zeros(2, 1))
    return float(value), g_ci.tolist(), g_cj[:, 0].tolist()
