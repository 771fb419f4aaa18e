"""The global generators, read and put back."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def random_states() -> dict[str, Any]:
    """The states of all global generators, as tensors and plain data."""
    numpy = np.random.get_state(legacy=False)
    version, words, gauss = random.getstate()
    states = {
        "torch": torch.get_rng_state(),
        "numpy": [
            torch.from_numpy(numpy["state"]["key"].astype(np.int64)),
            numpy["state"]["pos"],
            numpy["has_gauss"],
            numpy["gauss"],
        ],
        "python": [version, torch.tensor(words), gauss],
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def restore_random_states(states: dict[str, Any]) -> None:
    """Put all global generators back to where :func:`random_states` saw them."""
    torch.set_rng_state(states["torch"].cpu())
    numbers, *rest = states["numpy"]
    np.random.set_state(("MT19937", numbers.cpu().numpy().astype(np.uint32), *rest))
    version, words, gauss = states["python"]
    random.setstate((version, tuple(words.tolist()), gauss))
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([state.cpu() for state in states["cuda"]])
