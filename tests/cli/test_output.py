"""Who does not read on, and a disk without room for the output, get no traceback."""

import errno
import os
import subprocess
import sys

import pytest

from recbole_hns.cli import main as command

RUN = f"{sys.executable} -m recbole_hns"


def shell(line):
    """What is left on the terminal, and how the parts of a pipe ended."""
    script = f"{line}; echo codes ${{PIPESTATUS[@]}}"
    ended = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    shown, _, codes = ended.stdout.partition("codes")
    return shown + ended.stderr, codes.split()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"{RUN} schema | true", ""),
        (f"{RUN} schema | head -c 1", "{"),
        (f"{RUN} schema 2>&1 | true", ""),
        (f"{RUN} --help | true", ""),
    ],
)
def test_who_does_not_read_on_gets_no_traceback(line, says):
    text, codes = shell(line)
    assert text == says
    assert codes[0] in ("0", "141")


def test_a_full_disk_behind_the_output_is_a_line():
    text, codes = shell(f"{RUN} schema > /dev/full")
    assert (text.count("\n"), codes) == (1, ["2"])
    assert "No space left on device" in text


def failing(monkeypatch, error, arguments, capsys):
    """What main says of an error that a command did not catch."""

    def fail(arguments):
        raise error

    monkeypatch.setattr("recbole_hns.cli.schema.main", fail)
    code = command.main(["schema", *arguments])
    return code, capsys.readouterr().err


def test_a_disk_that_fails_is_one_line(monkeypatch, capsys):
    error = OSError(errno.EIO, "Input/output error", "x")
    code, said = failing(monkeypatch, error, [], capsys)
    assert (code, said) == (2, "recbole-hns: error: x cannot be read or written: Input/output error.\n")
    code, said = failing(monkeypatch, OSError(errno.ENOSPC, "No space left on device"), [], capsys)
    assert (code, said.count("\n")) == (2, 1)


def test_a_file_that_was_named_is_one_line(monkeypatch, capsys, tmp_path):
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "a" / "b"))
    code, said = failing(monkeypatch, error, [f"--output={tmp_path}/a"], capsys)
    assert code == 2
    assert said.startswith(f"recbole-hns: error: {tmp_path}/a/b cannot be")


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory", "/nobody/named/it"),
        OSError("a bare one"),
        ConnectionError("of a network"),
        BrokenPipeError(errno.EPIPE, "of another program"),
        ValueError("a mistake"),
    ],
)
def test_a_mistake_of_a_program_keeps_its_traceback(monkeypatch, capsys, error):
    if isinstance(error, BrokenPipeError):
        nowhere = open(os.devnull, "w")  # noqa: SIM115  which is no pipe
        monkeypatch.setattr(sys, "stdout", nowhere)
        monkeypatch.setattr(sys, "stderr", nowhere)
    with pytest.raises(type(error)):
        failing(monkeypatch, error, ["--output=elsewhere"], capsys)
