"""Parts: frozen objects whose fields are settings."""

from typing import Annotated

import msgspec
import pytest

from recbole_hns import Error
from recbole_hns.settings import Count, Flag, Part, Positive, setting
from recbole_hns.settings.parts import settings_of, small


class Sharp(Part, frozen=True):
    """As sharp as told.

    More about it.
    """

    kind = "rule"
    edge: Annotated[Positive, setting("the smaller, the sharper", "ε", (0.1, 1.0))] = 2.0
    both_sides: Annotated[Flag, setting("on both sides")] = False
    grain: Annotated[Count, setting("of the stone")] = msgspec.field(default=400, name="stone_grain")
    marks: list[int] = []  # noqa: RUF012  (msgspec makes it anew)


class Required(Part, frozen=True):
    """Without a default."""

    kind = "rule"
    heat: Positive


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("SoftmaxV", "softmax_v"),
        ("DNS", "dns"),
        ("AdaSIR", "ada_sir"),
        ("BCELoss", "bce_loss"),
        ("A1B", "a1_b"),
    ],
)
def test_a_class_is_known_by_its_name_in_small_letters(name, word):
    assert small(name) == word
    assert type(name, (Part,), {}, frozen=True).part_name() == word


def test_a_name_that_is_given_is_that_of_the_class_and_not_of_its_subclasses():
    named = type("Mine", (Part,), {"name": "yours", "__annotations__": {}}, frozen=True)
    assert named.part_name() == "yours"
    assert type("Other", (named,), {}, frozen=True).part_name() == "other"


def test_fields_are_settings_under_their_keys():
    found = {one.key: (one.field, one.default, one.about.text) for one in settings_of(Sharp)}
    assert found == {
        "edge": ("edge", 2.0, "the smaller, the sharper"),
        "both_sides": ("both_sides", False, "on both sides"),
        "stone_grain": ("grain", 400, "of the stone"),
        "marks": ("marks", [], ""),
    }
    assert settings_of(Required)[0].default is msgspec.NODEFAULT
    assert Sharp.about() == "As sharp as told."


def test_a_part_says_what_it_is_set_to_and_is_made_from_it_again():
    part = Sharp(edge=3, both_sides=True, grain=7, marks=[1])
    assert part.settings == {"edge": 3.0, "both_sides": True, "stone_grain": 7, "marks": [1]}
    assert type(part.edge) is float
    assert Sharp.from_settings(part.settings) == part


def test_settings_that_are_not_given_are_the_defaults_or_those_of_another_part():
    other = Sharp(edge=3, grain=7)
    assert Sharp.from_settings({}) == Sharp()
    assert Sharp.from_settings({"both_sides": True, "unheard_of": 1}, other) == Sharp(3, True, 7)
    assert Sharp.from_settings({"stone_grain": 1}, other) == Sharp(3, False, 1)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"edge": 0},
            "edge=0 is not allowed: it must be a number greater than 0 (the smaller, the sharper).",
        ),
        (
            {"both_sides": "yes"},
            "both_sides='yes' is not allowed: it must be true or false (on both sides).",
        ),
        ({"both_sides": 1}, "both_sides=1 is not allowed: it must be true or false (on both sides)."),
        (
            {"stone_grain": 0},
            "stone_grain=0 is not allowed: it must be a whole number from 1 to 1000000 (of the ",
        ),
        ({"marks": [1, "a"]}, "marks=[1, 'a'] is not allowed: it must be a list."),
    ],
)
def test_a_part_that_exists_is_one_whose_settings_are_allowed(values, sentence):
    with pytest.raises(Error) as error:
        Sharp.from_settings(values)
    assert str(error.value).startswith(sentence)


def test_a_part_made_in_python_is_checked_like_one_that_is_named():
    with pytest.raises(Error, match=r"^edge=-1 is not allowed"):
        Sharp(edge=-1)
    with pytest.raises(Error, match=r"^edge=-1 is not allowed"):
        msgspec.structs.replace(Sharp(), edge=-1)


def test_a_setting_without_default_must_be_given():
    with pytest.raises(Error, match=r"^required needs heat: give --heat=….$"):
        Required.from_settings({})
    assert Required.from_settings({"heat": 3}) == Required(3.0)


def test_a_part_cannot_be_changed_and_counts_as_equal_by_what_it_is_set_to():
    with pytest.raises(AttributeError):
        Sharp().edge = 3.0
    assert Sharp(edge=2) == Sharp()
    assert hash(Required(2)) == hash(Required(2.0))
