"""How messages write values and guess what was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

ALIKE = 0.75  # the share of letters in common from which a word is taken for another


def shown(value: object, most: int = 200) -> str:
    """A value as a message shows it: on one line, and not longer than anyone reads."""
    try:
        text = repr(value)
    except ValueError:  # Python writes out no whole number of more than 4300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= most else f"{text[:most]}…"


def plain_word(value: object) -> str:
    """A value without the quotes of a string."""
    return shown(value).strip("'")


# A spreadsheet computes a cell that begins so; behind a sign, words and numbers compute nothing.
_FORMULA = re.compile(r"[=\t\r\n]|[+\-@](?![\w.\-]*$)")


def as_cell(value: object) -> object:
    """A value as a cell of a CSV file: what a spreadsheet would run as a formula gets a ``'`` in front."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def nearest(word: object, known: Iterable[str]) -> str:
    """ " (did you mean …?)" for a word that is close to a known one."""
    by_lower = {name.lower(): name for name in known}
    text = shown(word, 50).strip("'").lower()
    # Of four letters, two in common in the same order are nothing: such words differ in one.
    match = difflib.get_close_matches(text, by_lower, n=1, cutoff=ALIKE) if len(text) > 4 else []
    match = match or [name for name in by_lower if name == text]
    match = match or [name for name in by_lower if _is_one_edit(text, name, least=3)]
    return f" (did you mean {by_lower[match[0]]}?)" if match else ""


def a_letter_away(word: str, known: Iterable[str]) -> str | None:
    """The known word that differs by one letter: one more, one less, another, or two exchanged."""
    return next((name for name in known if name != word and _is_one_edit(word, name)), None)


def _is_one_edit(a: str, b: str, least: int = 4) -> bool:
    if abs(len(a) - len(b)) > 1 or min(len(a), len(b)) < least:  # short names are all alike
        return False
    head = next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    rest_a, rest_b = a[head:], b[head:]
    if len(a) == len(b):
        swapped = rest_a[:2] == rest_b[:2][::-1] and rest_a[2:] == rest_b[2:]
        return rest_a[1:] == rest_b[1:] or swapped
    return rest_a[1:] == rest_b or rest_a == rest_b[1:]


def listed(names: Iterable[object], last: str = "and") -> str:
    """A, B and C."""
    words = [str(name) for name in names]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
