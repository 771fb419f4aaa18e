"""What a backend does: one contract, which one test suite holds both backends to."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from torch import Generator, Tensor

from recbole_hns.kernels.line import Line
from recbole_hns.kernels.tree import KernelTree
from recbole_hns.kernels.types import Candidates, Vectors

Part: TypeAlias = tuple[Candidates, Tensor]  # candidates, and a number for each of them, (B, n)
RowGradient: TypeAlias = tuple[Tensor, Tensor]  # (R,) int64 rows of a table, ascending, and (R, d)


class Backend(Protocol):
    """The few functions that cost time. A module is a backend if it has these functions.

    All tensors are on one device, and scores and vectors are of 32 bits. The same generator state gives
    the same results, on however many threads; two backends draw different numbers.
    """

    name: str

    def draw(self, line: Line, users: Tensor, N: int, block: int, generator: Generator) -> Candidates:
        """N candidates per user, independent draws from the user's negatives in the line; no log q.

        ``block`` pairs share one drawn set, in which each puts draws of its own in the place of its
        user's positives: every row keeps its distribution. Each user must have a negative that weighs.
        """

    def first_above(
        self,
        line: Line,
        users: Tensor,
        v: Vectors,
        bar: Tensor,
        max_trials: int,
        generator: Generator,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw for each pair until a candidate scores above ``bar`` (B,): (ids, scores, trials).

        Its id and score, both (B, 1), and the number of draws (B,). Where none of ``max_trials`` does,
        the last one drawn and 0. A NaN counts as above, so that it shows in the loss.
        """

    def draw_kernel(
        self,
        tree: KernelTree,
        line: Line,
        users: Tensor,
        v: Vectors,
        N: int,
        generator: Generator,
    ) -> Candidates:
        """N draws from q(j | c) ∝ α⟨w_c, w_j⟩² + 1 over the user's negatives, with log q.

        ``tree`` is built from ``v.items``; the weights of the line play no part.
        """

    def score(self, v: Vectors, candidates: Candidates) -> Tensor:
        """r_cj = ⟨context[rows[b]], items[j]⟩ for every candidate j of pair b, (B, n)."""

    def top(self, v: Vectors, candidates: Candidates, M: int) -> tuple[Tensor, Tensor]:
        """The M candidates of highest score, hardest first: (ids, scores), both (B, M).

        NaN counts as hardest, so that it shows in the loss.
        """

    def score_backward(self, v: Vectors, parts: list[Part]) -> tuple[Tensor, Tensor]:
        """The gradients of Σ grad · score by ``context`` and ``items``, for parts (candidates, grad).

        All parts are of the pairs that ``rows`` lists.
        """

    def score_backward_rows(self, v: Vectors, parts: list[Part]) -> tuple[RowGradient, RowGradient]:
        """The same gradients for the rows that the pairs touch and no others.

        What it costs depends on the pairs, not on the tables.
        """

    def add_rows(self, table: Tensor, rows: Tensor, values: Tensor) -> None:
        """table[rows[k]] += values[k] for every k, in place, repeats included."""

    def negatives_above(
        self, scores: Tensor, first: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """For the positives first[u]..first[u + 1] of user u, with scores ``values``: three counts.

        How many of the other finite numbers in row u of ``scores`` are greater, a tie counting one half,
        (P,); how many are equal, (P,); and how many numbers of row u are finite, −1 if one is NaN, (U,).
        """

    def bpr_over_all(
        self, r_ci: Tensor, scores: Tensor, owner: Tensor
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """BPR over all of a user's negatives: (values, sums, G), or None where torch does as well.

        For pairs (P,) of the users ``owner`` (P,), ascending, and all of a user's scores (U, n_items),
        −∞ for what is no negative: Σ_i Σ_j ℓ(r_ci − r_cj) of each user (U,), Σ_j σ(r_cj − r_ci) of each
        pair (P,) and Σ_i σ(r_cj − r_ci), which overwrites the scores.
        """
