"""The few functions that cost time, twice: :mod:`.numba_cpu` and :mod:`.torch_any`.

Both modules keep one contract, and one test suite runs over both:

``draw(tables, users, N, block, generator) -> Candidates``
    N candidates per user, independent draws from the user's negatives.
``first_above(tables, users, context, rows, items, bar, max_trials, generator) -> (ids, scores, trials)``
    Draws for each pair until a candidate scores above ``bar`` (B,): its id and score, both (B, 1), and
    the number of draws (B,). Where none of ``max_trials`` does, the last one drawn and 0.
``draw_kernel(tree, tables, users, context, rows, items, N, generator) -> Candidates``
    N draws from the kernel distribution of a :class:`~.tree.KernelTree`, with log q.
``score(context, rows, items, candidates) -> (B, n) scores``
    r_cj = ⟨context[rows[b]], items[j]⟩ for every candidate j of pair b.
``top(context, rows, items, candidates, M) -> (ids, scores)``, both (B, M)
    The M candidates of highest score, hardest first.
``score_backward(context, rows, items, parts) -> (grad_context, grad_items)``
    Gradient of Σ grad · score for several ``(candidates, grad)`` parts of the same pairs.
``score_backward_rows(context, rows, items, parts) -> ((rows, grad), (rows, grad))``
    The same gradients for the rows that the pairs touch and no others: which rows, ascending, and their
    gradients. What it costs depends on the pairs, not on the tables.
``add_rows(table, rows, values)``
    table[rows[k]] += values[k], in place.

``negatives_above(scores, first, values) -> (above, n_items)``
    For the positives first[u]..first[u + 1] of user u, with scores ``values``: how many of the other
    finite numbers in row u of ``scores`` are greater, a tie counting one half, (P,); and how many
    numbers of row u are finite, −1 if one is NaN, (U,).

``bpr_over_all(r_ci, scores, owner) -> (values, sums, G)``, or None where torch does as well
    For pairs (P,) of the users ``owner`` (P,), ascending, and all of a user's scores (U, n_items), −∞
    for what is no negative: Σ_i Σ_j ℓ(r_ci − r_cj) of each user (U,), Σ_j σ(r_cj − r_ci) of each
    pair (P,) and Σ_i σ(r_cj − r_ci), which overwrites the scores.

Candidates that blocks of pairs share are scored by matrix products, in :mod:`.blocks`, for both.

``context`` is (n_contexts, d), ``rows`` (B,) int64 says which of its rows each pair uses, ``items``
is (n_items, d).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from types import ModuleType

import numpy as np
import torch

from recbole_hns.errors import Error

BACKENDS = ("auto", "numba", "torch")


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
    shared: torch.Tensor | None = None  # (⌈B / block⌉, N) int32: what a block's rows have in common
    block: int = 1
    log_q: torch.Tensor | None = None  # (B, N); None where q is uniform


@dataclass
class DrawTables:
    """What :func:`draw` needs to know of a pool, as tensors on the model's device.

    Items lie on a line of integer length Σ w_j, item j on [start_j, start_j + w_j). Taking a user's
    positives out of the line leaves the user's negatives on a line of length ``mass``; ``before``
    says where on that shorter line each positive was taken out, ``removed`` how much had been taken
    out until then. A point of the short line is moved back onto the long one by one search in
    ``before``: exact, with no rejection, however many positives a user has.
    """

    indptr: torch.Tensor  # (n_users + 1,) int64, rows of the three below
    items: torch.Tensor  # (nnz,) int32, the positives, ascending inside a row
    before: torch.Tensor  # (nnz,) int32 or int64, ascending inside a row
    removed: torch.Tensor  # (nnz + 1,) int64, running sum of the positives' weights
    mass: torch.Tensor  # (n_users,) int64, length of the user's own line
    start: torch.Tensor | None  # (n_items + 1,) int64; None where every weight is 1
    total: int  # length of the whole line
    n_items: int

    def to(self, device: torch.device) -> DrawTables:
        """The same tables on another device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return DrawTables(
            **{k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in values.items()}
        )

    @cached_property
    def guide(self) -> tuple[np.ndarray | None, np.ndarray | None, int]:
        """``start`` with an index into it: the item at the beginning of each 2^shift of the line.

        Indexed search (Chen and Asau 1974): about as many steps as items, so one or two per draw.
        """
        if self.start is None:
            return None, None, 0
        start = self.start.numpy()
        shift = max(0, self.total.bit_length() - self.n_items.bit_length())
        points = np.arange((self.total >> shift) + 1, dtype=np.int64) << shift
        return start, np.searchsorted(start, points, side="right") - 1, shift

    @cached_property
    def owner(self) -> torch.Tensor:
        """The user of each entry, (nnz,)."""
        users = torch.arange(len(self.mass), device=self.mass.device)
        return torch.repeat_interleave(users, self.indptr.diff())

    @cached_property
    def before_keys(self) -> torch.Tensor:
        """``before`` of all users in one ascending array, so that one search serves a batch."""
        return self.owner * (self.total + 1) + self.before

    @cached_property
    def item_keys(self) -> torch.Tensor:
        """All (user, positive) pairs in one ascending array."""
        return self.owner * self.n_items + self.items

    def is_positive(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """Whether each user took each item."""
        key = users * self.n_items + items
        at = torch.searchsorted(self.item_keys, key).clamp(max=len(self.item_keys) - 1)
        return self.item_keys[at] == key


def get_kernels(backend: str, device: torch.device) -> ModuleType:
    """The module that implements the contract for ``hns_backend`` on ``device``."""
    if backend == "auto":
        backend = "numba" if device.type == "cpu" else "torch"
    if backend == "numba":
        if device.type != "cpu":
            raise Error(
                f"hns_backend=numba runs on the CPU only, and the model is on {device.type}: "
                "use hns_backend=torch or auto."
            )
        from recbole_hns.kernels import numba_cpu

        return numba_cpu
    from recbole_hns.kernels import torch_any

    return torch_any
