"""Kinds of values: what is allowed, as which value, and how the rest is refused."""

import math
from typing import Annotated, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbole_hns import Error
from recbole_hns.settings import kinds
from recbole_hns.settings.kinds import Count, Flag, NotNegative, Positive, Rate, Share, Text, setting

WORDS = {
    "Count": (Count, "a whole number from 1 to 1000000"),
    "Positive": (Positive, "a number greater than 0"),
    "NotNegative": (NotNegative, "a number of at least 0"),
    "Share": (Share, "a number of at least 0 and below 1"),
    "Rate": (Rate, "a number from 0 to 1000"),
    "Flag": (Flag, "true or false"),
    "Text": (Text, "a word"),
    "whole": (kinds.whole(2, 9), "a whole number from 2 to 9"),
    "whole_up": (kinds.whole(2), "a whole number of at least 2"),
    "word": (kinds.word("Adam", "sgd"), "one of Adam, sgd"),
    "literal": (Literal["low", "top"], "one of low, top"),
    "optional": (kinds.optional(Count), "a whole number from 1 to 1000000, or None"),
    "list": (kinds.one_or_list(Count, "a count, or a list of such"), "a count, or a list of such"),
    "mapping": (kinds.mapping("what is what", kinds.is_whole), "what is what, or None"),
    "own": (Annotated[float, kinds.Meta(gt=0, le=3)], "a number, greater than 0 and at most 3"),
    "plain": (int | None, "a whole number, or None"),
}

ALLOWED = [
    *(("Count", v) for v in (1, 10**6)),
    *(("Positive", v) for v in (1e-30, 1, 0.5, 1e30)),
    *(("NotNegative", v) for v in (0, 0.0, 1e-300, 1e30)),
    *(("Share", v) for v in (0, 0.5, math.nextafter(1, 0))),
    *(("Rate", v) for v in (0, 1000)),
    *(("Flag", v) for v in (True, False)),
    *(("Text", v) for v in ("a", "é ü", "1")),
    *(("whole", v) for v in (2, 9)),
    *(("whole_up", v) for v in (2, 2**31 - 1)),
    *(("word", v) for v in ("Adam", "adam", "ADAM", "sgd")),
    *(("literal", v) for v in ("low", "top")),
    *(("optional", v) for v in (None, 1)),
    *(("list", v) for v in (1, [1], [1, 2, 3])),
    *(("mapping", v) for v in (None, {}, {"a": 1})),
    *(("own", v) for v in (1e-9, 3)),
    *(("plain", v) for v in (None, -(2**40))),
]
REFUSED = [
    *(("Count", v) for v in (0, -1, 10**6 + 1, 1.0, "1", True, None, [], math.inf)),
    *(
        ("Positive", v)
        for v in (0, -1, 1e-31, 1e31, math.inf, -math.inf, math.nan, "1", True, None, 10**400)
    ),
    *(("NotNegative", v) for v in (-1e-300, 1e31, math.nan, math.inf, "0", False)),
    *(("Share", v) for v in (1, -0.1, math.nan, True)),
    *(("Rate", v) for v in (-0.1, 1000.5)),
    *(("Flag", v) for v in (0, 1, "true", None, "no")),
    *(("Text", v) for v in ("", "  ", "a\nb", "\x00", 1, None)),
    *(("whole", v) for v in (1, 10, 2.5, True)),
    *(("whole_up", v) for v in (1, 2**31)),
    *(("word", v) for v in ("adamw", "", None, 1, ["sgd"])),
    *(("literal", v) for v in ("Low", "", None)),
    *(("optional", v) for v in (0, "None", True)),
    *(("list", v) for v in (0, [], [0], [1, [1]], "1", None, (1, "a"))),
    *(("mapping", v) for v in ({"a": "b"}, {1: 1}, {"": 1}, [], "a")),
    *(("own", v) for v in (0, 3.5, math.nan)),
    *(("plain", v) for v in (1.5, "x", True)),
]


@pytest.mark.parametrize(("name", "value"), ALLOWED, ids=repr)
def test_what_is_allowed_is_kept(name, value):
    assert kinds.convert("key", value, WORDS[name][0]) == value


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=lambda v: repr(v)[:20])
def test_what_is_not_is_refused_with_what_is(name, value):
    kind, words = WORDS[name]
    with pytest.raises(Error) as error:
        kinds.convert("key", value, kind)
    start, _, rest = str(error.value).partition(" is not allowed: it must be ")
    assert start.startswith("key=")
    assert rest == f"{words}."


def test_a_refusal_says_from_where_and_what_for():
    with pytest.raises(Error) as error:
        kinds.convert("M", 0, Count, "own.yaml", "how many are kept")
    words = "it must be a whole number from 1 to 1000000 (how many are kept)"
    assert str(error.value) == f"M=0 (from own.yaml) is not allowed: {words}."


def test_a_whole_number_becomes_a_float_where_one_is_wanted_and_not_the_other_way():
    value = kinds.convert("rho", 2, Positive)
    assert (value, type(value)) == (2.0, float)
    with pytest.raises(Error):
        kinds.convert("N", 2.0, Count)


@pytest.mark.parametrize(
    ("value", "kind", "plain"),
    [
        (np.int64(5), Count, 5),
        (np.float32(0.5), Positive, 0.5),
        (np.bool_(True), Flag, True),
        (np.array(3), Count, 3),
    ],
)
def test_numpys_numbers_are_taken_as_pythons(value, kind, plain):
    found = kinds.convert("key", value, kind)
    assert (found, type(found)) == (plain, type(plain))


def test_numbers_within_lists_and_mappings_must_be_finite():
    for kind in (list[float], dict[str, float]):
        assert kinds.convert("key", [1.5] if kind == list[float] else {"a": 1.5}, kind)
        for bad in (math.nan, math.inf):
            with pytest.raises(Error):
                kinds.convert("key", [1.5, bad] if kind == list[float] else {"a": bad}, kind)


@given(st.floats() | st.integers())
def test_every_number_is_allowed_or_refused_in_a_sentence(value):
    """No number goes through as a tensor's inf or nan: what is positive has a finite inverse."""
    if not 1e-30 <= value <= 1e30:
        with pytest.raises(Error, match=r"is not allowed: it must be a number greater than 0\.$"):
            kinds.convert("key", value, Positive)
        return
    found = kinds.convert("key", value, Positive)
    assert found == float(value)
    assert 0 < np.float32(found) < np.inf
    assert 0 < np.float32(1) / np.float32(found) < np.inf


def test_a_setting_says_what_it_is_for():
    kind = Annotated[Positive, setting("the hardness", "ρ", (0.1, 1.0))]
    about = kinds.about_of(kind)
    assert (about.text, about.symbol, about.search) == ("the hardness", "ρ", (0.1, 1.0))
    assert kinds.about_of(int).text == ""
    assert kinds.words_of(kind) == "a number greater than 0"
