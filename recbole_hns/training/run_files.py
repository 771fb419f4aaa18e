"""The names of a run's files.

``X.pth`` is the best model, ``X.last.pth`` the last state; the one before each is ``….previous``.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from recbole_hns.errors import Error
from recbole_hns.files import cannot_be_written
from recbole_hns.locks import Taken, alone

LAST, PREVIOUS = ".last.pth", ".previous"


def last_file(best: str | Path) -> Path:
    """Where the run whose best model is in ``best`` keeps its last state."""
    best = Path(best)
    return best if best.name.endswith(LAST) else best.with_name(best.name[: -len(".pth")] + LAST)


def best_file(last: str | Path) -> Path:
    """Where the run whose last state is in ``last`` keeps its best model."""
    last = Path(last)
    return last.with_name(last.name[: -len(LAST)] + ".pth") if last.name.endswith(LAST) else last


def previous_file(file: Path) -> Path:
    """The one before."""
    return file.with_name(file.name + PREVIOUS)


def is_there(file: Path) -> bool:
    """Whether it, or the one before, exists."""
    return file.is_file() or previous_file(file).is_file()


def use_previous(file: Path) -> None:
    """Put the one before in the place of a damaged file, which must not become the one before."""
    try:
        if previous_file(file).is_file():
            os.replace(previous_file(file), file)
    except OSError as error:
        raise cannot_be_written(file, error) from error


def runs_in(folder: Path) -> Iterator[Path]:
    """The last states of the folder's runs, newest first."""
    found = set(folder.glob(f"*{LAST}"))
    found |= {file.with_name(file.name[: -len(PREVIOUS)]) for file in folder.glob(f"*{LAST}{PREVIOUS}")}

    def written(file: Path) -> float:
        return (file if file.is_file() else previous_file(file)).stat().st_mtime

    yield from sorted(found, key=written, reverse=True)


@contextmanager
def claimed(wanted: str | Path) -> Iterator[Path]:
    """The name, or with a number behind it where another run has it: RecBole's end with the second.

    Of runs that begin at once each gets its own: within ``with``, nobody else has it.
    """
    wanted = Path(wanted)
    for n in itertools.count(1):
        file = wanted if n == 1 else wanted.with_name(f"{wanted.stem}-{n}.pth")
        with ExitStack() as held:
            try:
                held.enter_context(alone(file, again=False))
            except Taken:
                continue
            if is_there(file) or is_there(last_file(file)):
                continue
            yield file
            return


@contextmanager
def held(file: str | Path) -> Iterator[None]:
    """No other process goes on with the run of a file, or writes its files, within ``with``."""
    try:
        with alone(best_file(file)):
            yield
    except Taken as taken:
        raise Error(
            f"the run of {file} is being trained by another process: wait for its end, or stop it."
        ) from taken
