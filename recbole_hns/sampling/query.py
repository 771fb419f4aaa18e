"""A batch, encoded: how candidates are scored for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import torch

from recbole_hns.errors import Error
from recbole_hns.kernels import Backend, Candidates, Vectors, get_kernels


class Query(Protocol):
    """What rules and pools may ask of a batch. No gradient flows through any of it."""

    @property
    def r_ci(self) -> torch.Tensor:
        """The scores of the positives, (B,), computed once."""

    def score(self, candidates: Candidates) -> torch.Tensor:
        """r_cj, (B, N)."""

    def top(self, candidates: Candidates, M: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The M hardest candidates and their scores, both (B, M), hardest first."""

    def at(self, pairs: torch.Tensor) -> Query:
        """The query of some of the pairs."""


class DotQuery:
    """A batch of a dot-product model: r_cj = ⟨context[rows[b]], items[j]⟩.

    Args:
        context: the contexts' vectors, (B, d), or (n_contexts, d) with ``rows``.
        items: all items' vectors, (n_items, d).
        positives: the pairs' items, (B,).
        rows: which context each pair has, (B,); pair b has context b by default.
        backend: the kernels; by default those for the device.
        sparse: whether both tables take sparse gradients.
    """

    def __init__(
        self,
        context: torch.Tensor,
        items: torch.Tensor,
        positives: torch.Tensor,
        rows: torch.Tensor | None = None,
        backend: Backend | None = None,
        sparse: bool = False,
    ):
        if rows is None:
            rows = torch.arange(len(positives), device=positives.device)
        # Under mixed precision an encoder's output may be narrow; kernels and loss are of 32 bits.
        self.vectors = Vectors(context.float(), rows, items.float())
        self.positives = Candidates(positives[:, None].int())
        self.backend = backend or get_kernels("auto", items.device)
        self.sparse = sparse

    @cached_property
    def r_ci(self) -> torch.Tensor:
        """The scores of the positives, (B,)."""
        return self.score(self.positives)[:, 0]

    @torch.no_grad()
    def score(self, candidates: Candidates) -> torch.Tensor:
        """r_cj, (B, N), without gradient."""
        return self.backend.score(self.vectors, candidates)

    @torch.no_grad()
    def top(self, candidates: Candidates, M: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The M hardest candidates and their scores, both (B, M), without gradient."""
        return self.backend.top(self.vectors, candidates, M)

    def at(self, pairs: torch.Tensor) -> DotQuery:
        """The query of some of the pairs."""
        v, positives = self.vectors, self.positives.ids[pairs, 0]
        return DotQuery(v.context, v.items, positives, v.rows[pairs], self.backend, self.sparse)

    def pair_scores(
        self, candidates: Candidates, r_cj: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """r_ci (B,) and r_cj (B, n) with gradient; known scores are not computed again."""
        r_cj = self.score(candidates) if r_cj is None else r_cj
        v, parts = self.vectors, (self.positives, candidates)
        scores = (self.r_ci, r_cj)
        return _apply(v.context, v.items, v.rows, parts, scores, self.backend, self.sparse)


class PairScores(torch.autograd.Function):
    """r_ci and r_cj of a batch, with gradients gathered by a kernel and no (B, n, d) tensor.

    The scores are known; what is made here is their gradient. With ``sparse`` it is a sparse tensor of the
    rows that the batch touches, for ``torch.optim.SparseAdam``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        context: torch.Tensor,
        items: torch.Tensor,
        rows: torch.Tensor,
        parts: tuple[Candidates, Candidates],
        scores: tuple[torch.Tensor, torch.Tensor],
        backend: Backend,
        sparse: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.save_for_backward(context, items, rows)
        ctx.parts, ctx.backend, ctx.sparse = parts, backend, sparse
        r_ci, r_cj = scores
        return r_ci.detach(), r_cj.detach()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        context, items, rows = ctx.saved_tensors
        v, (positives, candidates) = Vectors(context, rows, items), ctx.parts
        parts = [(positives, grads[0][:, None]), (candidates, grads[1])]
        if ctx.sparse:
            by_row = ctx.backend.score_backward_rows(v, parts)
            found = [sparse_rows(table, *part) for table, part in zip((context, items), by_row)]
        else:
            found = ctx.backend.score_backward(v, parts)
        return (*found, None, None, None, None, None)


_apply: Callable[..., tuple[torch.Tensor, torch.Tensor]] = PairScores.apply


def sparse_rows(table: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A gradient of the table that is zero but for some rows."""
    return torch.sparse_coo_tensor(rows[None], values, table.shape, check_invariants=False)


def vectors_of(query: Query | None) -> Vectors:
    """The vectors of a dot-product model's batch."""
    return dot_query(query).vectors


def dot_query(query: Query | None) -> DotQuery:
    """The batch of a dot-product model, as such.

    Raises:
        Error: if it is another.
    """
    if isinstance(query, DotQuery):
        return query
    raise Error("this pool or rule takes a model that scores by a dot product: use a DotQuery.")
