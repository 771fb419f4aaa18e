"""How a broken contract is told: one sentence, with the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from recbole_hns.settings.parts import Part
from recbole_hns.settings.registry import name_of


def require(holds: object, sentence: str) -> None:
    """Fail with the sentence unless it holds."""
    if not holds:
        raise AssertionError(sentence)


def called(part: Part) -> str:
    """``rule temperate``."""
    return f"{part.kind} {name_of(part)}"


def require_finite(x: torch.Tensor, what: str) -> None:
    """No NaN, and no number without end."""
    bad = int((~torch.isfinite(x)).sum())
    require(bad == 0, f"{what}: {bad} of {x.numel()} numbers are not finite.")


def require_shape(x: object, shape: tuple[int, ...], what: str) -> None:
    """A tensor of this shape."""
    require(isinstance(x, torch.Tensor), f"{what} is {type(x).__name__}, and must be a tensor.")
    found = tuple(getattr(x, "shape", ()))
    require(found == shape, f"{what} has the shape {found}, and must have {shape}.")


def require_close(x: torch.Tensor, y: torch.Tensor, what: str, rtol: float = 1e-4) -> None:
    """The same numbers but for rounding, which is measured by the largest of them."""
    x, y = x.detach().double(), y.detach().double()
    require_shape(x, tuple(y.shape), what)
    both = torch.where(x == y, 0.0, (x - y).abs())  # the same infinity twice is no difference
    if both.numel() == 0:
        return
    place = int(both.flatten().nan_to_num(torch.inf).argmax())
    scale = max(1.0, float(y[torch.isfinite(y)].abs().max())) if torch.isfinite(y).any() else 1.0
    a, b = float(x.flatten()[place]), float(y.flatten()[place])
    require(float(both.flatten()[place]) <= rtol * scale, f"{what}: {a:.6g} instead of {b:.6g}.")


@contextmanager
def failing_as(what: str) -> Iterator[None]:
    """An exception in a part's code, told as a broken contract; the traceback follows."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{what} fails: {type(error).__name__}: {error}") from error


def unchanged(tensors: dict[str, torch.Tensor], what: str, run: Callable[[], Any]) -> Any:
    """What ``run`` gives, which must leave its arguments as they are."""
    before = {name: x.clone() for name, x in tensors.items()}
    result = run()
    for name, x in tensors.items():
        same = torch.equal(x.nan_to_num(0), before[name].nan_to_num(0))
        require(same, f"{what} overwrites {name}, which others read after it.")
    return result
