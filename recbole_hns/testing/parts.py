"""What all kinds of parts have in common: a name, a docstring, and settings that are checked."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, TypeVar, cast

import msgspec

from recbole_hns.errors import Error
from recbole_hns.settings.dialect import parse_value
from recbole_hns.settings.kinds import convert, words_of
from recbole_hns.settings.parts import Part, Setting, settings_of
from recbole_hns.settings.registry import name_of
from recbole_hns.settings.words import shown
from recbole_hns.testing.say import called, require

P = TypeVar("P", bound=Part)

# What a setting is tried with: most kinds forbid most of these.
TRIED: tuple[Any, ...] = (
    *(None, True, "no such word", [], {}, [0.5], -1, 0, 1, 2, 10**6 + 1, 2**31, -0.5, 0.5, 1.5),
    *(1e-300, 1e-30, 1e30, 1e300, math.nan, math.inf, -math.inf),
)
EXTREMES = (1e-3, 1e3)


def made(part: P | type[P], base: type[P]) -> P:
    """The part, or of a class the part as it is by default."""
    if isinstance(part, type) and issubclass(part, base):
        try:
            return part()
        except TypeError as error:
            raise AssertionError(
                f"{part.__name__} has settings without a default: check an object."
            ) from error
    require(isinstance(part, base), f"{part!r} is no {base.__name__}: derive it from {base.__name__}.")
    return cast(P, part)


def check_part(part: Part) -> None:
    """A name, a docstring, and settings that go there and back and are refused where they must be."""
    word = name_of(part)
    require(
        re.fullmatch(r"[\w.-]+", word), f"the name {word!r} cannot be typed: use letters, digits and _."
    )
    doc = (vars(type(part)).get("__doc__") or "").strip()
    require(doc, f"{called(part)} has no docstring: its first line is what help and reports show.")
    again = type(part).from_settings(part.settings)
    require(
        again == part, f"{called(part)}: from_settings(settings) gives {again!r} instead of {part!r}."
    )
    typed = type(part).from_settings({key: parse_value(str(v)) for key, v in part.settings.items()})
    require(
        typed == part, f"{called(part)}: typed on the command line it is {typed!r} instead of {part!r}."
    )
    for one in settings_of(type(part)):
        for value in TRIED:
            _check_value(part, one, value)


def _check_value(part: Part, one: Setting, value: Any) -> None:
    """What the annotation allows is kept or refused in a sentence; what it forbids is refused."""
    try:
        allowed = convert(one.key, value, one.kind)
    except Error:
        try:
            type(part).from_settings({**part.settings, one.key: value})
        except Error:
            return
        raise AssertionError(
            f"{called(part)} takes {one.key}={shown(value)}, which its annotation forbids: it must be "
            f"{words_of(one.kind)}."
        ) from None
    try:
        changed = type(part).from_settings({**part.settings, one.key: value})
    except Error:
        return  # a check of its own
    found = changed.settings[one.key]
    require(found == allowed, f"{called(part)}: {one.key}={shown(value)} is kept as {shown(found)}.")


def extremes(part: P) -> Iterator[P]:
    """The part itself, and with each of its numbers small and large, where that is allowed."""
    yield part
    for one in settings_of(type(part)):
        if not isinstance(getattr(part, one.field), float):
            continue
        for value in EXTREMES:
            try:
                yield msgspec.structs.replace(part, **{one.field: value})
            except Error:
                continue
