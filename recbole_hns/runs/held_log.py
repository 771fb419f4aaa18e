"""What RecBole says before a run's log is open."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class HeldLog(logging.Handler):
    """Keeps records, so that a refusal is one line and a run's log has everything."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Called by ``logging``."""
        self.records.append(record)

    def hand_over(self) -> None:
        """Hand everything to the log that is open now."""
        root = logging.getLogger()
        for record in self.records:
            if record.levelno >= root.level:
                root.handle(record)
        self.records = []


@contextmanager
def held_log() -> Iterator[HeldLog]:
    """Hold back what is logged within, and the warnings of libraries about RecBole's code."""
    root, held = logging.getLogger(), HeldLog()
    handlers, level = root.handlers, root.level
    root.handlers, root.level = [held], logging.DEBUG
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield held
    finally:
        root.handlers, root.level = handlers, level
