"""Uniform candidates."""

from __future__ import annotations

from typing import ClassVar

from recbole_hns.sampling.pools.line import LinePool
from recbole_hns.sampling.world import World
from recbole_hns.settings.registry import register


@register
class Uniform(LinePool, frozen=True):
    """q(j | c) = 1 / n₋: every negative of the user alike."""

    stands_for_all: ClassVar[bool] = True

    def weights(self, world: World) -> None:
        """Equal weights need no table."""
        return None
