"""A data set's folder in the place of another, with one of the two there at any moment.

The old one is renamed aside, the new one put in its place, and the old one deleted. Who is killed between
the first two steps leaves the old one under the name aside: whoever looks for it next puts it back.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def put_in_place(new: Path, target: Path) -> None:
    """Let a complete folder be ``target``, instead of the one that is there if there is one."""
    recover(target)
    aside = _aside(target)
    shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed before it could
    if target.exists():
        os.rename(target, aside)
    try:
        os.rename(new, target)
    except OSError:
        if aside.exists():
            os.rename(aside, target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def recover(target: Path) -> None:
    """Put back what a process that was killed had put aside."""
    with contextlib.suppress(OSError):  # no right to write here, or another process was faster
        if not target.exists():
            os.rename(_aside(target), target)


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")
