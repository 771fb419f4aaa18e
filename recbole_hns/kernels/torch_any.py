"""The kernels in plain torch, for any device, and readable: the reference of the Numba ones."""

from __future__ import annotations

import torch

from recbole_hns.kernels import Candidates, DrawTables, SharedCandidates, blocks
from recbole_hns.kernels.torch_tree import draw_kernel  # noqa: F401

# Rows are worked off in chunks whose gathered (rows, N, d) block stays below this many numbers.
CHUNK_NUMBERS = 1 << 23

bpr_over_all = None  # the loss's own loop over the pairs is as good


def draw(
    tables: DrawTables, users: torch.Tensor, N: int, block: int, generator: torch.Generator
) -> Candidates:
    """N independent draws from the negatives of each user; see the package's contract."""
    B = len(users)
    ids = _draw_negatives(tables, users[:, None].expand(B, N), generator)
    if block == 1:
        return Candidates(ids.int())
    n_blocks = -(-B // block)
    point = _random_below(torch.full((n_blocks, N), tables.total, device=users.device), generator)
    shared = _item_at(tables, point)
    common = shared.repeat_interleave(block, dim=0)[:B]  # (B, N)
    # A slot whose shared item is the user's own positive is drawn again from the user's negatives,
    # so every row keeps its distribution.
    replaced = tables.is_positive(users[:, None], common)
    ids = torch.where(replaced, ids, common)
    pair, slot = torch.nonzero(replaced, as_tuple=True)
    return Candidates(ids.int(), SharedCandidates(shared.int(), block, pair, slot))


def first_above(
    tables: DrawTables,
    users: torch.Tensor,
    context: torch.Tensor,
    rows: torch.Tensor,
    items: torch.Tensor,
    bar: torch.Tensor,
    max_trials: int,
    generator: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw for each pair until a score is above its bar; see the package's contract."""
    candidates = draw(tables, users, max_trials, 1, generator)
    r_cj = score(context, rows, items, candidates)
    above = ~(r_cj <= bar[:, None])  # NaN counts as above, so that it shows in the loss
    found = above.any(dim=1)
    place = torch.where(found, above.int().argmax(dim=1), max_trials - 1)[:, None]
    trials = torch.where(found, place[:, 0] + 1, 0)
    return candidates.ids.gather(1, place), r_cj.gather(1, place), trials


def score(
    context: torch.Tensor, rows: torch.Tensor, items: torch.Tensor, candidates: Candidates
) -> torch.Tensor:
    """r_cj for every candidate, (B, n)."""
    if candidates.shared is not None:
        return blocks.score(context, rows, items, candidates)
    ids = candidates.ids
    scores = torch.empty(ids.shape, dtype=context.dtype, device=context.device)
    for part in _chunks(ids, items):
        scores[part] = torch.einsum("bd,bnd->bn", context[rows[part]], items[ids[part]])
    return scores


def top(
    context: torch.Tensor,
    rows: torch.Tensor,
    items: torch.Tensor,
    candidates: Candidates,
    M: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The M hardest candidates of each pair and their scores, hardest first."""
    scores, positions = score(context, rows, items, candidates).topk(M, dim=1)
    return candidates.ids.gather(1, positions), scores


def score_backward(
    context: torch.Tensor,
    rows: torch.Tensor,
    items: torch.Tensor,
    parts: list[tuple[Candidates, torch.Tensor]],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of Σ grad · score with respect to both tables."""
    grads = torch.zeros_like(context), torch.zeros_like(items)
    places = [blocks.gradient_rows(candidates) for candidates, _ in parts]
    _add_gradients(context, rows, items, parts, rows, places, *grads)
    return grads


def score_backward_rows(
    context: torch.Tensor,
    rows: torch.Tensor,
    items: torch.Tensor,
    parts: list[tuple[Candidates, torch.Tensor]],
) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """The same gradients of the rows that are touched alone; see the package's contract."""
    used = [blocks.gradient_rows(candidates) for candidates, _ in parts]
    context_rows = rows.unique()
    item_rows = torch.cat([ids.flatten() for part in used for ids in part]).unique()
    context_places = torch.searchsorted(context_rows, rows)
    item_places = [tuple(torch.searchsorted(item_rows, ids) for ids in part) for part in used]
    grads = [t.new_zeros((len(r), t.shape[1])) for t, r in ((context, context_rows), (items, item_rows))]
    _add_gradients(context, rows, items, parts, context_places, item_places, *grads)
    return (context_rows, grads[0]), (item_rows.long(), grads[1])


def _add_gradients(context, rows, items, parts, context_places, item_places, grad_context, grad_items):
    """Add a pair's gradients to the rows that ``context_places`` and ``item_places`` name."""
    for (candidates, grad), places in zip(parts, item_places):
        if candidates.shared is not None:
            targets = (context_places, places, grad_context, grad_items)
            blocks.score_backward(context, rows, items, candidates, grad, add_rows, *targets)
            continue
        for part in _chunks(candidates.ids, items):
            g, V = grad[part], items[candidates.ids[part]]  # (b, n), (b, n, d)
            add_rows(grad_context, context_places[part], torch.einsum("bn,bnd->bd", g, V))
            outer = g[:, :, None] * context[rows[part]][:, None, :]  # (b, n, d)
            add_rows(grad_items, places[0][part].flatten(), outer.flatten(0, 1))


def add_rows(table: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> None:
    """table[rows[k]] += values[k] for every k, repeats included."""
    table.index_add_(0, rows, values)


def negatives_above(
    scores: torch.Tensor, first: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Negatives that score above each positive, ties one half, and items that take part per user."""
    n_pos = first.diff()
    users = torch.repeat_interleave(torch.arange(len(scores), device=scores.device), n_pos)
    own = scores.new_full((len(scores), int(n_pos.max())), -torch.inf)  # the positives' scores
    own[users, torch.arange(len(users), device=scores.device) - first[users]] = values
    above = _count_above(scores, users, values) - _count_above(own, users, values)
    n_items = (scores > -torch.inf).sum(dim=1)
    return above, n_items.masked_fill(torch.isnan(scores).any(dim=1), -1)


def _count_above(scores, users, values):
    above = torch.empty(len(values), dtype=torch.float64, device=scores.device)
    step = max(1, CHUNK_NUMBERS // scores.shape[1])
    for first in range(0, len(values), step):
        part = slice(first, first + step)
        rows, value = scores[users[part]], values[part, None]
        above[part] = ((rows > value).sum(dim=1) + (rows >= value).sum(dim=1)) / 2
    return above


def _chunks(ids: torch.Tensor, items: torch.Tensor):
    step = max(1, CHUNK_NUMBERS // (ids.shape[1] * items.shape[1]))
    for first in range(0, len(ids), step):
        yield slice(first, first + step)


def _random_below(bound: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Uniform integers in [0, bound); the bias of the remainder is below bound / 2⁶²."""
    bits = torch.randint(1 << 62, bound.shape, generator=generator, device=bound.device)
    return bits % bound


def _draw_negatives(tables, users, generator):
    point = _random_below(tables.mass[users], generator)  # on the user's own line
    passed = _positives_before(tables, users, point)
    first = tables.indptr[users]
    return _item_at(tables, point + tables.removed[first + passed] - tables.removed[first])


def _positives_before(tables, users, point):
    """#{m : before_m ≤ point} of each user."""
    key = users * (tables.total + 1) + point
    return torch.searchsorted(tables.before_keys, key, right=True) - tables.indptr[users]


def _item_at(tables, point):
    """The item whose stretch of the whole line holds the point."""
    if tables.start is None:
        return point + 1
    return torch.searchsorted(tables.start, point, right=True) - 1
