"""Rules: how candidates' scores become the weights p_cij of the loss."""

from __future__ import annotations

from typing import ClassVar

import torch

from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.sampler import Sampler
from recbole_hns.sampling.scored import Scored
from recbole_hns.settings.parts import Part


class Rule(Part, frozen=True):
    """Says how much each candidate of a pair counts; its fields are settings.

    A subclass writes :meth:`weigh`; one that needs only the best candidates writes :meth:`choose` and
    :meth:`keeps` too.
    """

    kind: ClassVar[str] = "rule"
    needs: ClassVar[frozenset[str]] = frozenset()  # of the pool: see :class:`~..pools.base.Pool`
    hides_q: ClassVar[bool] = False  # whether what it hands on was drawn once more
    loss: ClassVar[str] = ""  # the one loss that it is defined with, if so
    takes_N: ClassVar[bool] = True  # whether a number of candidates is set
    sums_to_one: ClassVar[bool] = True  # whether a pair's weights sum to 1
    needs_vectors: ClassVar[str] = ""  # as a pool's
    needs_pair_loss: ClassVar[str] = ""

    @classmethod
    def sampler(cls) -> type[Sampler]:
        """The sampler of a rule that learns, or draws by itself, is one of its own."""
        return Sampler

    def weigh(self, s: Scored) -> torch.Tensor:
        """p_cij, (B, N), summing to 1 for each pair unless the rule declares otherwise."""
        raise NotImplementedError

    def choose(self, s: Scored) -> Negatives:
        """The candidates, weighed."""
        weights = self.weigh(s)
        return Negatives(s.candidates, weights, s.known("r_cj"), s.known("ell"))

    def by_default(self, N: int) -> Rule:
        """The rule as it is by default among so many candidates."""
        return self

    def keeps(self, N: int) -> int:
        """How many of N candidates it hands on: the n of a loss over the negatives at hand."""
        return N

    def check(self, N: int | None) -> None:
        """Refuse settings that contradict each other; N is None where all negatives are candidates."""

    def beta(self, N: int | None) -> float | None:
        """The β of the OPAUC(β) that is optimised, where candidates stand for all negatives."""
        return None
