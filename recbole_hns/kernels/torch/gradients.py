"""Gradients of scores, summed into whole tables or into the rows that a batch touches."""

from __future__ import annotations

import torch

from recbole_hns.kernels import blocks
from recbole_hns.kernels.blocks import Gradients
from recbole_hns.kernels.contract import Part, RowGradient
from recbole_hns.kernels.torch.base import chunks
from recbole_hns.kernels.types import Vectors


def score_backward(v: Vectors, parts: list[Part]) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of Σ grad · score with respect to both tables."""
    out = Gradients(torch.zeros_like(v.context), torch.zeros_like(v.items), v.rows)
    _add(v, parts, [blocks.gradient_rows(candidates) for candidates, _ in parts], out)
    return out.context, out.items


def score_backward_rows(v: Vectors, parts: list[Part]) -> tuple[RowGradient, RowGradient]:
    """The same gradients of the rows that are touched alone; see the contract."""
    used = [blocks.gradient_rows(candidates) for candidates, _ in parts]
    context_rows = torch.unique(v.rows)
    item_rows = torch.unique(torch.cat([ids.flatten() for part in used for ids in part]))
    item_places = [tuple(torch.searchsorted(item_rows, ids) for ids in part) for part in used]
    d = v.items.shape[1]
    out = Gradients(
        v.context.new_zeros((len(context_rows), d)),
        v.items.new_zeros((len(item_rows), d)),
        torch.searchsorted(context_rows, v.rows),
    )
    _add(v, parts, item_places, out)
    return (context_rows, out.context), (item_rows.long(), out.items)


def _add(
    v: Vectors, parts: list[Part], item_places: list[tuple[torch.Tensor, ...]], out: Gradients
) -> None:
    """Add the pairs' gradients to the rows ``out.places`` and ``item_places`` of the two tables."""
    for (candidates, grad), places in zip(parts, item_places):
        ids = candidates.ids
        if candidates.shared is not None:
            blocks.score_backward(v, ids, candidates.shared, grad, places, out, add_rows)
            continue
        for part in chunks(len(ids), ids.shape[1] * v.items.shape[1]):
            g, V = grad[part], v.items[ids[part]]  # (b, n), (b, n, d)
            add_rows(out.context, out.places[part], torch.einsum("bn,bnd->bd", g, V))
            outer = g[:, :, None] * v.context[v.rows[part]][:, None, :]  # (b, n, d)
            add_rows(out.items, places[0][part].flatten(), outer.flatten(0, 1))


def add_rows(table: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> None:
    """table[rows[k]] += values[k] for every k, repeats included."""
    table.index_add_(0, rows, values)
