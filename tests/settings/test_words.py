"""How messages write values, and what they take for a slip of the pen."""

import pytest

from recbole_hns.settings.words import a_letter_away, as_cell, listed, nearest, plain_word, shown

KNOWN = ["learning_rate", "train_batch_size", "topk", "epochs", "N", "M", "tau", "LightGCN"]
KNOWN += ["step", "hide_item", "eval_step"]


def test_a_value_is_shown_as_python_writes_it_on_one_line_and_not_endlessly():
    assert shown("a\nb") == r"'a\nb'"
    assert shown([1, 2.5, None]) == "[1, 2.5, None]"
    assert shown("x" * 1000) == "'" + "x" * 199 + "…"
    assert shown("x" * 1000, most=10) == "'" + "x" * 9 + "…"
    assert shown(16**5000) == "a number of thousands of digits"
    assert plain_word("dns") == "dns"
    assert plain_word(3) == "3"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("lerning_rate", "learning_rate"),
        ("LEARNING_RATE", "learning_rate"),
        ("lightgcn", "LightGCN"),
        ("train_batchsize", "train_batch_size"),
        ("zzzz", None),
        ("tua", "tau"),  # of three letters, one may be another or exchanged
        ("epo", None),
        ("sim", None),  # not M
        ("temp", None),  # not step, which has half of its letters
        ("device", None),  # not hide_item
        ("early_stop", None),  # not eval_step
        (3, None),
        (None, None),
    ],
)
def test_the_nearest_known_word_is_asked_for(word, meant):
    assert nearest(word, KNOWN) == (f" (did you mean {meant}?)" if meant else "")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("topkk", "topk"),  # one more
        ("epoch", "epochs"),  # one less
        ("epocgs", "epochs"),  # another
        ("epohcs", "epochs"),  # two exchanged
        ("ephcos", None),  # two others
        ("epo", None),
        ("epochs", None),  # the word itself is no slip
        ("K", None),  # short names are all alike
        ("tai", None),
    ],
)
def test_a_letter_away_is_one_edit_of_a_word_that_is_not_short(word, meant):
    assert a_letter_away(word, KNOWN) == meant


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), ([1, 2, 3], "1, 2 and 3")]
)
def test_names_are_listed_as_in_a_sentence(names, text):
    assert listed(names) == text
    assert listed(names, "or") == text.replace("and", "or")


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "=",
        "@SUM(A1)",
        "+cmd|'/c calc'!A0",
        "-2+3+cmd|x!A1",
        "\t=1",
        "\r=1",
        "\n=1",
        "-1+A1",
        "+A1:B2",
    ],
)
def test_a_cell_that_a_spreadsheet_would_run_is_words(text):
    assert as_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "id_", ["-5", "+1.5", "@name", "-a_b.c-d", "u1", "", "a=b", "1-2", "é", "'x", "-", 5, 0.1]
)
def test_ordinary_ids_stay_as_they_are(id_):
    assert as_cell(id_) == id_
