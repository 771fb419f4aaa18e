"""Draws from a line, all at once."""

from __future__ import annotations

import torch

from recbole_hns.kernels.line import Line
from recbole_hns.kernels.torch.scoring import score
from recbole_hns.kernels.types import Candidates, SharedCandidates, Vectors


def draw(line: Line, users: torch.Tensor, N: int, block: int, generator: torch.Generator) -> Candidates:
    """N independent draws from the negatives of each user; see the contract."""
    B = len(users)
    ids = _draw_negatives(line, users[:, None].expand(B, N), generator)
    if block == 1:
        return Candidates(ids.int())
    n_blocks = -(-B // block)
    point = _random_below(torch.full((n_blocks, N), line.total, device=users.device), generator)
    shared = _item_at(line, point)
    common = shared.repeat_interleave(block, dim=0)[:B]  # (B, N)
    # A slot whose shared item is the user's own positive is drawn again from the user's negatives,
    # so every row keeps its distribution.
    replaced = line.is_positive(users[:, None], common)
    ids = torch.where(replaced, ids, common)
    pair, slot = torch.nonzero(replaced, as_tuple=True)
    return Candidates(ids.int(), SharedCandidates(shared.int(), block, pair, slot))


def first_above(
    line: Line,
    users: torch.Tensor,
    v: Vectors,
    bar: torch.Tensor,
    max_trials: int,
    generator: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw for each pair until a score is above its bar; see the contract."""
    candidates = draw(line, users, max_trials, 1, generator)
    r_cj = score(v, candidates)
    above = ~(r_cj <= bar[:, None])  # NaN counts as above
    found = above.any(dim=1)
    place = torch.where(found, above.int().argmax(dim=1), max_trials - 1)[:, None]
    trials = torch.where(found, place[:, 0] + 1, 0)
    return candidates.ids.gather(1, place), r_cj.gather(1, place), trials


def _random_below(bound: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Uniform integers in [0, bound); the bias of the remainder is below bound / 2⁶²."""
    bits = torch.randint(1 << 62, bound.shape, generator=generator, device=bound.device)
    return bits % bound


def _draw_negatives(line: Line, users: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    point = _random_below(line.mass[users], generator)  # on the user's own line
    passed = _positives_before(line, users, point)
    first = line.indptr[users]
    return _item_at(line, point + line.removed[first + passed] - line.removed[first])


def _positives_before(line: Line, users: torch.Tensor, point: torch.Tensor) -> torch.Tensor:
    """#{m : before_m ≤ point} of each user."""
    key = users * (line.total + 1) + point
    return torch.searchsorted(line.before_keys, key, right=True) - line.indptr[users]


def _item_at(line: Line, point: torch.Tensor) -> torch.Tensor:
    """The item whose stretch of the whole line holds the point."""
    if line.start is None:
        return point + line.first
    return torch.searchsorted(line.start, point, right=True) - 1
