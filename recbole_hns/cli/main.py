"""The command ``recbole-hns``, which ``run_recbole_hns.py`` is too."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from recbole_hns.errors import Error

# Before torch is imported; :mod:`recbole_hns.runs` says why.
os.environ.setdefault("GOMP_SPINCOUNT", "0")

COMMANDS = (
    *("train", "samplers", "models", "evaluate", "recommend", "convert", "simulate", "tune", "report"),
    "schema",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 2 for a mistake that can be put right, or of a signal.

    130 is for Ctrl-C, 143 for SIGTERM.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        _refuse_bytes(arguments)
        arguments = _import_parts(arguments)
        if arguments[:1] and arguments[0] in COMMANDS:
            command, arguments = arguments[0], arguments[1:]
        else:
            command = "train"
        importlib.import_module(f"recbole_hns.cli.{command}").main(arguments)
    except Error as error:
        print(f"recbole-hns: error: {one_line(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        return _say_stopped(stop)
    return 0


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
    if signum is None:
        print(f"recbole-hns: stopped. {stop}".rstrip(), file=sys.stderr)
        return 130
    saved = f" go on with: {command_name()} --resume={shlex.quote(str(checkpoint))}"
    print(f"recbole-hns: stopped;{saved if checkpoint else ''}", file=sys.stderr)
    return 128 + int(signum)


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
