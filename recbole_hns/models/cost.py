"""What it costs to score with a model, found by a small trial."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

FEW = 8  # rows of the smaller trial
PIECE_BYTES = 1 << 29  # of all tensors that are made while a piece is scored

_PER_ROW: WeakKeyDictionary[torch.nn.Module, int] = WeakKeyDictionary()


class BytesMade(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of every tensor that an operation makes; views of others cost nothing."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The operation as it is."""
        made = func(*args, **(kwargs or {}))
        outputs = made if isinstance(made, (tuple, list)) else (made,)
        for output, told in zip(outputs, func._schema.returns):
            if isinstance(output, torch.Tensor) and told.alias_info is None:
                self.total += output.numel() * output.element_size()
        return made


def rows_of_a_piece(model: torch.nn.Module, score: Callable[[int], object], most: int) -> int:
    """How many rows can be scored at once, ``most`` at most, such that what is made stays below the budget.

    ``score(n)`` scores n rows. What a row costs is measured once for each model, as the difference between
    two small numbers of rows, without touching any random state: it is a count, the same on every machine
    and in every repetition, so that pieces are too.
    """
    if model not in _PER_ROW:
        _PER_ROW[model] = _per_row(score)
    return max(1, min(most, PIECE_BYTES // max(1, _PER_ROW[model])))


def _per_row(score: Callable[[int], object]) -> int:
    found: list[int] = []
    for rows in (FEW, 2 * FEW):
        with no_randomness_used(), BytesMade() as made:
            score(rows)
        found.append(made.total)
    return (found[1] - found[0]) // FEW


@contextmanager
def no_randomness_used() -> Iterator[None]:
    """Leave every random state as it is, those of all devices too."""
    states = random.getstate(), np.random.get_state()
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    try:
        with torch.random.fork_rng(devices=list(devices)):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
