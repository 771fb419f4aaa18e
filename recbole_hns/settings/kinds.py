"""Kinds of values: annotated types that say what a setting may be.

``msgspec`` checks types and bounds, and writes them as a JSON Schema; :class:`Fits` adds what it has no
word for. A refusal is one sentence: what was given, from where, and what is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any, TypeGuard, TypeVar, get_args

import msgspec
from msgspec import Meta, inspect

from recbole_hns.errors import Error
from recbole_hns.settings.words import shown

Kind = Any  # an annotated type; Python has no type for types like Annotated[int, …]
T = TypeVar("T")

GREATEST = 1e30  # what is multiplied or divided by it stays a number of 32 bits
MOST = 1_000_000  # of whatever is drawn or kept for every pair or user
LARGE = 2**31 - 1


@dataclass(frozen=True)
class Fits:
    """What a value must be, in words, and as a test; ``choices`` are for editors to complete."""

    words: str
    test: Callable[[Any], bool]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class About:
    """What a setting is for: a line for ``--help`` and the schema, a symbol, and what to search."""

    text: str
    symbol: str | None = None
    search: tuple[Any, ...] = ()


def setting(text: str, symbol: str | None = None, search: tuple[Any, ...] = ()) -> About:
    """An annotation for a field of a part: ``rho: Annotated[Positive, setting("the hardness")]``."""
    return About(text, symbol, search)


# ----------------------------------------------------------------------------------- kinds


def whole(low: int, high: int = LARGE) -> Kind:
    """A whole number of a range."""
    words = (
        f"a whole number from {low} to {high}" if high != LARGE else f"a whole number of at least {low}"
    )
    return Annotated[int, Meta(ge=low, le=high), Fits(words, lambda v: True)]


def number(low: float, high: float, words: str) -> Kind:
    """A number of a range, both ends included."""
    return Annotated[float, Meta(ge=low, le=high), Fits(words, lambda v: True)]


def word(*words: str) -> Kind:
    """One of a list, in capitals or not."""
    lower = [one.lower() for one in words]
    return Annotated[str, Fits("one of " + ", ".join(words), lambda v: v.lower() in lower, words)]


def optional(kind: Kind) -> Kind:
    """The same, or nothing."""
    words, fits = words_of(kind), fits_of(kind)
    choices = fits[-1].choices if fits else ()
    test = Fits(f"{words}, or None", lambda v: v is None or all(one.test(v) for one in fits), choices)
    return Annotated[bare(kind) | None, test]


def one_or_list(kind: Kind, words: str) -> Kind:
    """A value, or a list of one or more."""
    tests, one = fits_of(kind), bare(kind)

    def fits(value: Any) -> bool:
        members = value if isinstance(value, list) else [value]
        return bool(members) and all(one.test(member) for one in tests for member in members)

    return Annotated[one | GenericAlias(list, (one,)), Fits(words, fits)]


def mapping(words: str, test: Callable[[Any], bool]) -> Kind:
    """A mapping from words to what passes a test, or nothing."""
    of = Fits(
        f"{words}, or None", lambda v: v is None or (all(map(is_text, v)) and all(map(test, v.values())))
    )
    return Annotated[dict[str, Any] | None, of]


def is_text(value: Any) -> bool:
    """A word that can be written on one line."""
    return isinstance(value, str) and value.strip() != "" and value.isprintable()


def is_whole(value: Any) -> TypeGuard[int]:
    """A whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """A finite number that a float can hold; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= 1.7976931348623157e308  # False for NaN too


Flag = Annotated[bool, Fits("true or false", lambda v: True)]
Text = Annotated[str, Fits("a word", is_text)]
Count = Annotated[int, Meta(ge=1, le=MOST), Fits(f"a whole number from 1 to {MOST}", lambda v: True)]
Positive = Annotated[
    float, Meta(gt=0), Fits("a number greater than 0", lambda v: 1 / GREATEST <= v <= GREATEST)
]
NotNegative = Annotated[float, Meta(ge=0), Fits("a number of at least 0", lambda v: v <= GREATEST)]
Share = Annotated[float, Meta(ge=0, lt=1), Fits("a number of at least 0 and below 1", lambda v: True)]
Rate = number(0, 1000.0, "a number from 0 to 1000")


# ----------------------------------------------------------------------------------- looking into kinds


def bare(kind: Kind) -> Kind:
    """The kind without our own annotations, which msgspec does not know at all places."""
    if not hasattr(kind, "__metadata__"):  # it is not Annotated
        return kind
    base, *notes = get_args(kind)
    metas = tuple(note for note in notes if isinstance(note, Meta))
    return Annotated[(base, *metas)] if metas else base


def fits_of(kind: Kind) -> tuple[Fits, ...]:
    """The tests of a kind."""
    return tuple(note for note in getattr(kind, "__metadata__", ()) if isinstance(note, Fits))


def about_of(kind: Kind) -> About:
    """What a field's annotation says of it."""
    return next((n for n in getattr(kind, "__metadata__", ()) if isinstance(n, About)), About(""))


def words_of(kind: Kind) -> str:
    """What a value of the kind is, in words."""
    fits = fits_of(kind)
    return fits[-1].words if fits else _words(inspect.type_info(kind))


def _words(info: Any) -> str:
    if isinstance(info, inspect.Metadata):
        return _words(info.type)
    if isinstance(info, inspect.UnionType):
        return ", or ".join("None" if isinstance(t, inspect.NoneType) else _words(t) for t in info.types)
    if isinstance(info, inspect.LiteralType):
        return "one of " + ", ".join(map(str, info.values))
    simple: dict[type, str] = {
        inspect.IntType: "a whole number",
        inspect.FloatType: "a number",
        inspect.BoolType: "true or false",
        inspect.StrType: "a word",
        inspect.ListType: "a list",
        inspect.DictType: "a mapping",
    }
    return simple.get(type(info), "a value of another kind") + _bounds(info)


def _bounds(info: Any) -> str:
    """``greater than 0 and at most 1``."""
    signs = {"gt": "greater than", "ge": "at least", "lt": "below", "le": "at most"}
    found = [
        f"{text} {getattr(info, sign)}"
        for sign, text in signs.items()
        if getattr(info, sign, None) is not None
    ]
    return f", {' and '.join(found)}" if found else ""


# ----------------------------------------------------------------------------------- checking


def convert(key: str, value: Any, kind: Kind, origin: str = "", why: str = "") -> Any:
    """The value as the kind has it (a whole number becomes a float where one is wanted), or a refusal.

    Raises:
        Error: ``M=0 (from own.yaml) is not allowed: it must be a whole number from 1 to 1000000.``
    """
    if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0:
        value = value.item()  # NumPy's numbers, as Python has them
    try:
        converted = msgspec.convert(value, bare(kind), strict=True)
        if _is_finite(converted) and all(fits.test(converted) for fits in fits_of(kind)):
            return converted
    except (msgspec.ValidationError, OverflowError):
        pass
    for_what = f" ({why})" if why else ""
    raise Error(f"{told(key, value, origin)} is not allowed: it must be {words_of(kind)}{for_what}.")


def told(key: str, value: object, origin: str = "") -> str:
    """``M=0`` with where it is from, if that is not what the user has just typed."""
    where = f" (from {origin})" if origin else ""
    return f"{key}={shown(value)}{where}"


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    return all(map(_is_finite, value)) if isinstance(value, (list, tuple)) else True
