"""What every way of choosing negatives has in common: settings, checked once."""

from __future__ import annotations

from dataclasses import MISSING, field
from typing import Any, Callable, ClassVar

from recbole_hns import checks

POOL_KEYS = ("N", "pool", "pool_alpha", "pool_block")


class Method:
    """A way of choosing negatives.

    A method is a frozen dataclass of its own settings, under its paper's names and made by
    :func:`setting`. What it does with them is a :class:`~.rule.Rule`'s ``choose`` or a sampler of its
    own (:class:`~.sampler.NegativeSampler`).
    """

    takes: ClassVar[tuple[str, ...]] = POOL_KEYS  # the general settings that it heeds
    needs_vectors: ClassVar[str] = ""  # why the model must score by a dot product, if it must

    def check(self, N: int | None) -> None:
        """Refuse settings that contradict each other."""

    def beta(self, N: int | None) -> float | None:
        """The β of the OPAUC(β) that the method optimises with N candidates; None where it varies."""
        return None


def setting(about: str, default: Any = MISSING, check: Callable | None = None) -> Any:
    """A dataclass field that is a setting: ``about`` says what it is, ``check`` what it may be.

    Without ``check`` an ``int`` is at least 1 and a ``float`` greater than 0.
    """
    return field(default=default, metadata={"about": about, "check": check})


def read_settings(method: type[Method], config: dict[str, Any]) -> dict[str, Any]:
    """The method's own settings out of a configuration, checked."""
    values = {}
    for name, one in method.__dataclass_fields__.items():
        default = checks.integer if one.type in (int, "int") else checks.positive
        check = one.metadata.get("check") or default
        values[name] = check(config, name, one.metadata.get("about", f"a setting of {method.__name__}"))
    return values
