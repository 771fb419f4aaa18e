"""Checks of single settings: each refuses a bad value in one sentence."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from dataclasses import MISSING, field, fields
from typing import Any, Callable

from recbole_hns.errors import Error

GREATEST = 1e30  # what is multiplied or divided by it stays a number of 32 bits
MOST = 1_000_000  # of whatever is drawn or kept for every pair or user


def nearest(word: Any, known: Iterable[str]) -> str:
    """ " (did you mean …?)" for a word that is close to a known one."""
    by_lower = {name.lower(): name for name in known}
    match = difflib.get_close_matches(shown(word, 50).strip("'").lower(), by_lower, n=1, cutoff=0.5)
    return f" (did you mean {by_lower[match[0]]}?)" if match else ""


def shown(value: Any, most: int = 200) -> str:
    """A value as a message shows it: on one line, and not longer than anyone reads."""
    try:
        text = repr(value)
    except ValueError:  # Python writes out no whole number of more than 4300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= most else f"{text[:most]}…"


def is_whole(value: Any) -> bool:
    """A whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """A finite number that a float can hold; True and False are none."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max


def number(config: dict[str, Any], key: str, why: str) -> float:
    """A finite number."""
    value = config.get(key)
    if not is_number(value):
        raise Error(f"{key}={shown(value)} is not allowed: a number is needed ({why}).")
    return value


def positive(config: dict[str, Any], key: str, why: str) -> float:
    """A number greater than 0 that 32 bits can hold, and its inverse too."""
    value = number(config, key, why)
    if value <= 0:
        raise Error(f"{key}={shown(value)} is not allowed: it must be greater than 0 ({why}).")
    if not 1 / GREATEST <= value <= GREATEST:
        allowed = f"from {1 / GREATEST:g} to {GREATEST:g}"
        raise Error(f"{key}={shown(value)} is not allowed: it must be {allowed} ({why}).")
    return float(value)


def share(config: dict[str, Any], key: str, why: str) -> float:
    """A number from 0 up to, and without, 1."""
    value = number(config, key, why)
    if not 0 <= value < 1:
        raise Error(f"{key}={value} is not allowed: it must be at least 0 and below 1 ({why}).")
    return float(value)


def integer(config: dict[str, Any], key: str, why: str) -> int:
    """A whole number of at least 1, and at most :data:`MOST`."""
    value = config.get(key)
    if not is_whole(value) or value < 1:
        raise Error(
            f"{key}={shown(value)} is not allowed: a whole number of at least 1 is needed ({why})."
        )
    if value > MOST:
        raise Error(f"{key}={shown(value)} is not allowed: it is at most {MOST} ({why}).")
    return value


def one_of(config: dict[str, Any], key: str, allowed: Iterable[str]) -> str:
    """A word of a list."""
    value = config.get(key)
    if not isinstance(value, str) or value not in allowed:
        plain = shown(value).strip("'")
        raise Error(
            f"{key}={plain} is unknown{nearest(plain, allowed)}: choose one of {', '.join(allowed)}."
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
