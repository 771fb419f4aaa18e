"""Pools: where candidates come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch

from recbole_hns.errors import Error
from recbole_hns.kernels import Candidates
from recbole_hns.sampling.query import Query
from recbole_hns.sampling.world import World
from recbole_hns.settings.parts import Part

if TYPE_CHECKING:
    from recbole_hns.sampling.sampler import Sampler


class Source:
    """A pool that has been opened: it draws from one :class:`~..world.World`.

    A subclass writes :meth:`draw`. One that remembers something puts it into its state.
    """

    def __init__(self, world: World):
        self.world = world

    @property
    def generator(self) -> torch.Generator:
        """The source of all randomness."""
        return self.world.generator

    def start_epoch(self, epoch: int) -> None:
        """Called when an epoch begins."""

    def draw(self, users: torch.Tensor, N: int, query: Query | None = None) -> Candidates:
        """N candidates for each user, (B, N), none of which the user took."""
        raise NotImplementedError

    def log_q(self, users: torch.Tensor, drawn: Candidates, chosen: Candidates) -> torch.Tensor:
        """log q of those of the drawn candidates that were chosen, (B, n) or (B, 1)."""
        if drawn.log_q is None:
            raise NotImplementedError
        return of_chosen(drawn.log_q, drawn, chosen)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold to go on after any batch."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""


def items_of(saved: torch.Tensor, world: World) -> torch.Tensor:
    """Numbers of items that a file holds: kernels look them up without a question."""
    outside = ((saved < 0) | (saved >= world.n_items)).any()
    if saved.is_floating_point() or outside:
        raise Error(
            f"the checkpoint's sampler names items beyond the {world.n_items - 1} that there are."
        )
    return saved


def of_chosen(log_q: torch.Tensor, drawn: Candidates, chosen: Candidates) -> torch.Tensor:
    """log q of those of the drawn candidates that were chosen, given that of all drawn."""
    if chosen is drawn or log_q.shape[1] == 1:
        return log_q
    place = (drawn.ids[:, None, :] == chosen.ids[:, :, None]).int().argmax(dim=2)  # (B, n)
    return log_q.gather(1, place)


class Pool(Part, frozen=True):
    """A distribution q over each user's negatives; its fields are settings.

    A subclass writes :meth:`open`. What rules and losses may ask of a pool is declared:

    - ``ids``: it lists the candidates it draws
    - ``q``: it knows how probable each was
    - ``line``: it draws from items on a line, one by one if need be, without looking at the model
    - ``blocks``: pairs of a batch can share a drawn set (``pool_block``)
    """

    kind: ClassVar[str] = "pool"
    gives: ClassVar[frozenset[str]] = frozenset({"ids"})
    needs_vectors: ClassVar[str] = ""  # why the model must score by a dot product, if it must
    needs_pair_loss: ClassVar[str] = ""  # why a model's own loss will not do, if it will not
    dense_gradient: ClassVar[bool] = False  # whether a step's gradient reaches every item
    by_user: ClassVar[bool] = False  # whether batches are to hold the pairs of a user together
    stands_for_all: ClassVar[bool] = False  # whether its candidates are a fair sample of all negatives

    @classmethod
    def sampler(cls) -> type[Sampler] | None:
        """The sampler of a pool where drawing and weighing cannot be told apart."""
        return None

    def open(self, world: World, block: int = 1) -> Source:
        """Something that draws; ``block`` pairs share a set where the pool gives ``blocks``."""
        raise NotImplementedError
