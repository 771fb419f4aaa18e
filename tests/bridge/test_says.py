"""What RecBole raises is told in one sentence; what is no fault of settings or files passes through."""

import pickle

import pytest

from recbole_hns import Error
from recbole_hns.bridge.says import recbole_says


def told(error) -> str:
    with pytest.raises(Error) as caught, recbole_says("the data set cannot be loaded"):
        raise error
    assert caught.value.__cause__ is error
    return str(caught.value)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no such\n   field!"), "no such field"),
        (NotImplementedError("not this."), "not this"),
        (KeyError("user_id"), "KeyError: 'user_id'"),
        (RuntimeError("size 3"), "RuntimeError: size 3"),
        (pickle.UnpicklingError("bad"), "UnpicklingError: bad"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
    ],
)
def test_an_error_becomes_one_sentence_with_its_reason(error, reason):
    assert told(error) == f"the data set cannot be loaded with these settings: {reason}."


def with_bare_assert():
    raise AssertionError  # as `assert sizes_fit` does


def test_a_bare_assert_is_told_by_its_line():
    with (
        pytest.raises(Error, match=r"AssertionError: raise AssertionError  # as"),
        recbole_says("it fails"),
    ):
        with_bare_assert()


def test_a_reason_of_any_length_is_cut():
    assert len(told(ValueError("x" * 5000))) < 500


def test_our_own_sentences_pass_as_they_are():
    with pytest.raises(Error, match=r"^N=0 is not allowed\.$"), recbole_says("it cannot be built"):
        raise Error("N=0 is not allowed.")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RecursionError("too deep"), SystemExit(1)])
def test_what_settings_do_not_cause_is_not_caught(error):
    with pytest.raises(type(error)) as caught, recbole_says("it cannot be built"):
        raise error
    assert caught.value is error


def test_nothing_is_said_where_nothing_is_raised():
    with recbole_says("it cannot be built"):
        value = 1
    assert value == 1
