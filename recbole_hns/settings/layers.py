"""Layers of settings: later ones win, and every value knows where it is from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Layer(NamedTuple):
    """Settings of one origin."""

    origin: str  # as a message calls it: "own.yaml", "the command line"
    values: Mapping[str, Any]


COMMAND_LINE = "the command line"
TYPED = (COMMAND_LINE, "config_dict")  # what was typed for this very run


@dataclass(frozen=True)
class Resolved:
    """The values that win."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def origin(self, key: str) -> str:
        """Where a value is from; nothing where the user has just typed it."""
        where = self.origins.get(key, "")
        return "" if where in TYPED else where

    def typed(self) -> list[str]:
        """The keys that were typed for this run."""
        return [key for key, where in self.origins.items() if where in TYPED]


def resolve(layers: Iterable[Layer]) -> Resolved:
    """All layers in one, from the general to the specific."""
    resolved = Resolved()
    for layer in layers:
        for key, value in layer.values.items():
            resolved.values[key], resolved.origins[key] = value, layer.origin
    return resolved
