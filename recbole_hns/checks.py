"""Checks of single settings: each refuses a bad value in one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import MISSING, field, fields
from typing import Any, Callable

from recbole_hns.errors import HNSError


def nearest(word: Any, known: Iterable[str]) -> str:
    """ " (did you mean …?)" for a word that is close to a known one."""
    by_lower = {name.lower(): name for name in known}
    match = difflib.get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.5)
    return f" (did you mean {by_lower[match[0]]}?)" if match else ""


def number(config: dict[str, Any], key: str, why: str) -> float:
    """A finite number."""
    value = config.get(key)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or value != value or value in (float("inf"), float("-inf")):
        raise HNSError(f"{key}={value!r} is not allowed: a number is needed ({why}).")
    return value


def positive(config: dict[str, Any], key: str, why: str) -> float:
    """A number greater than 0."""
    value = number(config, key, why)
    if value <= 0:
        raise HNSError(f"{key}={value} is not allowed: it must be greater than 0 ({why}).")
    return float(value)


def share(config: dict[str, Any], key: str, why: str) -> float:
    """A number from 0 up to, and without, 1."""
    value = number(config, key, why)
    if not 0 <= value < 1:
        raise HNSError(f"{key}={value} is not allowed: it must be at least 0 and below 1 ({why}).")
    return float(value)


def integer(config: dict[str, Any], key: str, why: str) -> int:
    """A whole number of at least 1."""
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise HNSError(
            f"{key}={value!r} is not allowed: a whole number of at least 1 is needed ({why})."
        )
    return value


def one_of(config: dict[str, Any], key: str, allowed: Iterable[str]) -> str:
    """A word of a list."""
    value = config.get(key)
    if value not in allowed:
        raise HNSError(
            f"{key}={value} is unknown{nearest(value, allowed)}: choose one of {', '.join(allowed)}."
        )
    return value


def setting(about: str, default: Any = MISSING, check: Callable | None = None) -> Any:
    """A dataclass field that is a setting: ``about`` says what it is, ``check`` what it may be.

    Without ``check`` an ``int`` is at least 1 and a ``float`` greater than 0.
    """
    return field(default=default, metadata={"about": about, "check": check})


def read_settings(owner: type, config: dict[str, Any]) -> dict[str, Any]:
    """The settings that a dataclass has, out of a configuration, checked."""
    values = {}
    for one in fields(owner):
        default = integer if one.type in (int, "int") else positive
        check = one.metadata.get("check") or default
        about = one.metadata.get("about", f"a setting of {owner.__name__}")
        values[one.name] = check(config, one.name, about)
    return values
