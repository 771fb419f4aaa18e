"""The log of a run: the terminal, and a file of its own below ``log/``, as RecBole's ``init_logger``.

A log that cannot be written is told of once, and the run goes on without it.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import colorlog
from recbole.utils.logger import RemoveColorFilter, log_colors_config

from recbole_hns.runs.config import HNSConfig

FOLDER = Path("log")
LINE = "%(asctime)-15s %(levelname)s  %(message)s"


class _Terminal(logging.StreamHandler[Any]):
    """Says nothing of a terminal that is gone."""

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


class _File(logging.FileHandler):
    """Ends where it cannot be written."""

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        else:
            logging.getLogger().removeHandler(self)
            _tell(self.baseFilename, error)

    def close(self) -> None:
        with suppress(OSError):  # of what could not be written before
            super().close()


@contextmanager
def run_log(config: HNSConfig) -> Iterator[None]:
    """Log to the terminal and to a new file within ``with``; where a program has a log, to that alone."""
    root, own = logging.getLogger(), list[logging.Handler]()
    if root.handlers:
        yield
        return
    before, level = root.level, _level(config["state"])
    root.setLevel(level)
    own.append(_prepared(_Terminal(), level, _colours()))
    root.addHandler(own[0])
    try:
        file = _new_file(config)
        if file is not None:
            file.addFilter(RemoveColorFilter())
            own.append(_prepared(file, level, logging.Formatter(LINE, "%a %d %b %Y %H:%M:%S")))
            root.addHandler(file)
        yield
    finally:
        for handler in own:
            root.removeHandler(handler)
            handler.close()
        root.setLevel(before)


def _new_file(config: HNSConfig) -> _File | None:
    """A file that no other run has, under RecBole's name for it."""
    folder = FOLDER / str(config["model"])
    values = "".join(map(str, config.final_config_dict.values()))
    mark = hashlib.md5(values.encode(errors="replace"), usedforsecurity=False).hexdigest()[:6]
    time = datetime.now().strftime("%b-%d-%Y_%H-%M-%S")
    name = f"{config['model']}-{config['dataset']}-{time}-{mark}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for n in itertools.count(1):
            with suppress(FileExistsError):
                return _File(folder / (f"{name}.log" if n == 1 else f"{name}-{n}.log"), "x", "utf-8")
    except OSError as error:
        _tell(folder, error)
    return None


def _prepared(handler: logging.Handler, level: int, formatter: logging.Formatter) -> logging.Handler:
    handler.setLevel(level)
    handler.setFormatter(formatter)
    return handler


def _colours() -> logging.Formatter:
    line = f"%(log_color)s{LINE}"
    kind: type[logging.Formatter] = colorlog.ColoredFormatter
    return kind(line, "%d %b %H:%M", **{"log_colors": log_colors_config})


def _level(state: object) -> int:
    """RecBole's words for it; what is none is INFO, as there."""
    words = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
    word = str(state).upper()
    return int(getattr(logging, word)) if word in words else logging.INFO


def _tell(file: object, error: OSError) -> None:
    logging.getLogger().warning(
        f"{file} cannot be written: {error.strerror or error}. The run goes on without a log file."
    )
