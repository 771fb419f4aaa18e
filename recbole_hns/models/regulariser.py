"""Squared norms of the rows that a batch names, each as often as it occurs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from recbole_hns.sampling.query import sparse_rows


class SquaredNorms(torch.autograd.Function):
    """Σ_r mass_r ‖table_r‖², the squared norms of rows as often as they occur.

    Its gradient, 2 mass_r table_r, is one pass over the table, or over the rows that occur where the
    table takes sparse gradients.
    """

    @staticmethod
    def forward(ctx: Any, table: torch.Tensor, mass: torch.Tensor, sparse: bool) -> torch.Tensor:
        ctx.rows = mass.nonzero()[:, 0] if sparse else None
        values = table[ctx.rows] if sparse else table
        mass = mass[ctx.rows] if sparse else mass
        ctx.save_for_backward(table, values, mass)
        return torch.dot(mass, torch.linalg.vector_norm(values, dim=1).square_())

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        table, values, mass = ctx.saved_tensors
        gradient = values * (2 * grads[0] * mass)[:, None]
        return gradient if ctx.rows is None else sparse_rows(table, ctx.rows, gradient), None, None


_apply: Callable[..., torch.Tensor] = SquaredNorms.apply


def squared_norms(table: torch.Tensor, mass: torch.Tensor, sparse: bool = False) -> torch.Tensor:
    """Σ_r mass_r ‖table_r‖²."""
    return _apply(table, mass, sparse)


def mass_of(table: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The weight that falls on each row of a table."""
    return torch.zeros(len(table), device=table.device).index_add_(0, ids.int(), weights)
