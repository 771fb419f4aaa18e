"""RecBole's errors, told in a sentence."""

from __future__ import annotations

import contextlib
import pickle
import re
import traceback
from collections.abc import Iterator

from recbole_hns.errors import Error
from recbole_hns.settings.words import shown

# What RecBole's own code raises when it meets settings or files that it cannot use.
RECBOLE_ERRORS = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError, MemoryError),
    *(OSError, RuntimeError, TypeError, ValueError, pickle.PickleError, re.error),
)


@contextlib.contextmanager
def recbole_says(what: str) -> Iterator[None]:
    """Tell an error of a call into RecBole, made with nothing but settings and files, in a sentence."""
    try:
        yield
    except (Error, RecursionError):
        raise
    except RECBOLE_ERRORS as error:
        raise Error(f"{what} with these settings: {_reason(error)}.") from error


def _reason(error: BaseException) -> str:
    reason = " ".join(str(error).split()).rstrip(".!")
    if not reason:  # a bare assert says it in code
        reason = traceback.extract_tb(error.__traceback__)[-1].line or ""
    if not isinstance(error, (ValueError, ImportError, NotImplementedError)):
        reason = f"{type(error).__name__}: {reason}"
    return shown(reason, 400)[1:-1]
