"""SIGINT, SIGTERM and SIGHUP as a wish to stop, which a run grants at the next moment it can save at."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | signal.Handlers

_DEFAULTS: dict[int, Handler] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
if hasattr(signal, "SIGHUP"):  # of a terminal that is closed; Windows has none
    _DEFAULTS[signal.SIGHUP] = signal.SIG_DFL


class RunStopped(KeyboardInterrupt):
    """A run was asked to stop; what it has learned is in ``checkpoint``."""

    def __init__(self, signum: int, checkpoint: Path | None = None):
        self.signum, self.checkpoint = signum, checkpoint
        saved = "" if checkpoint is None else f"go on with run_recbole_hns(resume={str(checkpoint)!r})"
        super().__init__(saved)


class StopRequest:
    """Inside ``with``, the first signal is noted in ``signum`` and a second one stops at once.

    Does nothing outside the main thread, and leaves alone a signal that somebody else handles already
    (a server, or Ray, which takes SIGTERM when it is imported).
    """

    signum: int | None = None
    checkpoint: Path | None = None  # where a run that is stopped at once can go on from

    def __enter__(self) -> StopRequest:
        is_main = threading.current_thread() is threading.main_thread()
        self._replaced = [
            s for s, default in _DEFAULTS.items() if is_main and signal.getsignal(s) == default
        ]
        for signum in self._replaced:
            signal.signal(signum, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for signum in self._replaced:
            signal.signal(signum, _DEFAULTS[signum])

    def _note(self, signum: int, frame: FrameType | None) -> None:
        if self.signum is not None:
            raise RunStopped(signum, self.checkpoint)
        self.signum = signum
        # Not print: the signal may have come in the middle of one. The terminal may be gone.
        with suppress(OSError):
            os.write(2, b"\nrecbole-hns: stopping after this batch; the same again stops at once\n")
