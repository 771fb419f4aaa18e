"""What every way of choosing negatives has in common: settings, checked once."""

from __future__ import annotations

from typing import ClassVar

POOL_KEYS = ("N", "pool", "pool_alpha", "pool_block")


class Method:
    """A way of choosing negatives.

    A method is a frozen dataclass of its own settings, under its paper's names and made by
    :func:`setting`. What it does with them is a :class:`~.rule.Rule`'s ``choose`` or a sampler of its
    own (:class:`~.sampler.NegativeSampler`).
    """

    takes: ClassVar[tuple[str, ...]] = POOL_KEYS  # the general settings that it heeds
    needs_vectors: ClassVar[str] = ""  # why the model must score by a dot product, if it must
    needs_pair_loss: ClassVar[str] = ""  # why the model's own loss will not do, if it will not
    knows_q: ClassVar[bool] = True  # whether the pool's q is the probability of what it draws
    pair_loss: ClassVar[str | None] = None  # the one pair_loss that the method is defined with, if so
    dense_gradient: ClassVar[bool] = False  # whether a step's gradient reaches every item
    by_user: ClassVar[bool] = False  # whether batches are to hold the pairs of a user together

    def check(self, N: int | None) -> None:
        """Refuse settings that contradict each other."""

    def beta(self, N: int | None) -> float | None:
        """The β of the OPAUC(β) that the method optimises with N candidates; None where it varies."""
        return None
