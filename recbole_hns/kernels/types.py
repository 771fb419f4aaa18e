"""What kernels are given and give back: vectors and candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch


class Vectors(NamedTuple):
    """What scores a batch by dot products: r_cj = ⟨context[rows[b]], items[j]⟩ for pair b."""

    context: torch.Tensor  # (n_contexts, d)
    rows: torch.Tensor  # (B,) int64: which of the contexts each pair has
    items: torch.Tensor  # (n_items, d)


@dataclass
class SharedCandidates:
    """One candidate set per block of G pairs, and where a pair differs from it."""

    ids: torch.Tensor  # (⌈B / G⌉, N) int32
    G: int
    pair: torch.Tensor  # (R,) int64: pair and slot of each candidate drawn for that pair alone,
    slot: torch.Tensor  # (R,) int64: because the shared one is a positive of the pair's user


@dataclass
class Candidates:
    """Drawn candidates, one row per pair."""

    ids: torch.Tensor  # (B, N) int32
    shared: SharedCandidates | None = None  # what the rows of a block have in common
    log_q: torch.Tensor | None = None  # (B, N); None where q is uniform
