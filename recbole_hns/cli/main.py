"""The command ``recbole-hns``, which ``run_recbole_hns.py`` is too."""

from __future__ import annotations

import errno
import importlib
import os
import select
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from recbole_hns.errors import Error

# Before torch is imported; :mod:`recbole_hns.runs` says why.
os.environ.setdefault("GOMP_SPINCOUNT", "0")

COMMANDS = (
    *("train", "samplers", "models", "evaluate", "recommend", "convert", "simulate", "tune", "report"),
    "schema",
)

_SIGPIPE = 13

# What no program does wrong: full, broken, read-only or strange disks, and limits of the system.
_OF_THE_MACHINE = {
    getattr(errno, name)
    for name in (
        *("ENOSPC", "EIO", "EDQUOT", "EROFS", "EFBIG", "EMFILE", "ENFILE", "ENOMEM", "ESTALE"),
        *("ENODEV", "ENXIO", "ETIMEDOUT", "EBUSY", "ETXTBSY", "ENOLCK", "EREMOTEIO", "ENAMETOOLONG"),
    )
    if hasattr(errno, name)
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 2 for a mistake that can be put right, or of a signal.

    130 is for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP, 141 where nobody reads on (``| head``).
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except Error as error:
        return _say(str(error))
    except BrokenPipeError:
        if not any(_is_unread(stream) for stream in (sys.stdout, sys.stderr)):
            raise
        _leave_the_pipe()
        return 128 + _SIGPIPE
    except OSError as error:
        if not _is_about_the_disk(error, arguments):
            raise
        _leave_the_pipe()  # it may be the disk that the output goes to
        return _say(_told(error))
    except KeyboardInterrupt as stop:
        return _say_stopped(stop)
    return 0


def _run(arguments: list[str]) -> None:
    _refuse_bytes(arguments)
    arguments = _import_parts(arguments)
    if arguments[:1] and arguments[0] in COMMANDS:
        command, arguments = arguments[0], arguments[1:]
    else:
        command = "train"
    importlib.import_module(f"recbole_hns.cli.{command}").main(arguments)


def _say(sentence: str) -> int:
    with suppress(OSError):  # of a terminal that is gone
        print(f"recbole-hns: error: {one_line(sentence)}", file=sys.stderr)
    return 2


def _is_about_the_disk(error: OSError, arguments: Sequence[str]) -> bool:
    """Whether a user can put it right: the machine's fault, or a file that the command line names.

    All else is a mistake of a program, and its traceback is wanted.
    """
    if error.errno in _OF_THE_MACHINE:
        return True
    if not isinstance(error.filename, (str, bytes, os.PathLike)) or error.errno is None:
        return False
    file = os.path.abspath(os.fsdecode(error.filename))
    named = {argument.partition("=")[2] or argument for argument in arguments} - {""}
    named = {os.path.abspath(os.path.expanduser(name)) for name in named if "\0" not in name}
    return any(file == name or file.startswith(name + os.sep) for name in named)


def _told(error: OSError) -> str:
    what = "a file" if error.filename is None else os.fsdecode(error.filename)
    return f"{what} cannot be read or written: {error.strerror or error}."


def _is_unread(stream: IO[str] | None) -> bool:
    """Whether it is a pipe whose reader has gone."""
    try:
        if stream is None:
            return False
        pipe = select.poll()
        pipe.register(stream.fileno(), 0)
        return any(event & select.POLLERR for _, event in pipe.poll(0))
    except (AttributeError, OSError, ValueError):  # a system without poll, a stream without a file
        return True


def _leave_the_pipe() -> None:
    """What Python still has for the output would fail once more when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)


def one_line(text: str) -> str:
    """The text with everything escaped that would end or disturb the line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def command_name() -> str:
    """How this command was called, for messages that say what to type."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return "python -m recbole_hns"
    return f"python {shlex.quote(str(called))}" if called.suffix == ".py" else "recbole-hns"


def _say_stopped(stop: KeyboardInterrupt) -> int:
    signum, checkpoint = getattr(stop, "signum", None), getattr(stop, "checkpoint", None)
    saved = f" go on with: {command_name()} --resume={shlex.quote(str(checkpoint))}"
    told = f". {stop}".rstrip() if signum is None else f";{saved if checkpoint else ''}"
    with suppress(OSError):  # of a terminal that is gone: that is what SIGHUP says
        print(f"recbole-hns: stopped{told}", file=sys.stderr, flush=True)
    return 130 if signum is None else 128 + int(signum)


def _import_parts(arguments: list[str]) -> list[str]:
    """Import what ``--import=my_module,…`` names, and what installed packages bring."""
    from recbole_hns.settings.registry import import_installed, import_parts

    named = [argument for argument in arguments if argument.startswith("--import=")]
    import_installed()
    import_parts(module for one in named for module in one.partition("=")[2].split(",") if module)
    return [argument for argument in arguments if argument not in named]


def _refuse_bytes(arguments: Sequence[str]) -> None:
    """What is no text in the terminal's encoding can be neither logged nor a file's name."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise Error(f"argument {argument!r} is not valid text: write it in UTF-8.") from None
