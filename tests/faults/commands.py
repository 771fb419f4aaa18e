"""The commands that are tried on a failing disk: what each needs, and what it leaves."""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import torch
from killable import OF_SAMPLER, SETTINGS, _without_times

from recbole_hns.cli.main import main

COMMANDS = ("train", "resume", "evaluate", "recommend", "convert", "overwrite", "report", "simulate")
LOGS = ("log", "log_tensorboard")  # what can be done without


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What it said, without warnings of a log that fails and Python's progress bars."""
        return [line for line in self.err.splitlines() if line.startswith("recbole-hns: ")]


def options(data: Path, epochs: int = 3) -> list[str]:
    """A small run."""
    settings = {**SETTINGS, **OF_SAMPLER["dns"], "epochs": epochs, "state": "WARNING"}
    settings["data_path"] = data
    named = [f"--{key}={value}" for key, value in settings.items()]
    return ["--model=MF", "--dataset=tiny", "--sampler=dns", "--result_dir=results", *named]


def arguments(name: str, folder: Path) -> list[str]:
    """The command line; ``folder`` is what :func:`prepare` made."""
    run = next((str(f) for f in sorted(folder.glob("saved/*.pth")) if ".last" not in f.name), "")
    convert = ["convert", "raw.csv", "--name=books"]
    return {
        "train": options(folder / "data"),
        "resume": ["--resume=saved", "--epochs=3"],
        "evaluate": ["evaluate", run],
        "recommend": ["recommend", run, "--k=3", "--output=lists.csv"],
        "convert": convert,
        "overwrite": [*convert, "--overwrite", "--core=2"],
        "report": ["report", "results", "--output=report"],
        "simulate": ["simulate", "correlation", "--permutations=50", "--output=simulation"],
    }[name]


def prepare(name: str, folder: Path, data: Path) -> None:
    """What the command needs to be there."""
    shutil.copytree(data, folder / "data")
    rows = [f"u{n % 7},i{n * 5 % 11}" for n in range(60)]
    (folder / "raw.csv").write_text("user_id,item_id\n" + "\n".join(dict.fromkeys(rows)) + "\n")
    before = {
        "resume": options(folder / "data", epochs=1),
        **dict.fromkeys(("evaluate", "recommend", "report"), options(folder / "data", epochs=1)),
        "overwrite": ["convert", "raw.csv", "--name=books"],
    }
    if name in before:
        assert run(before[name], folder).code == 0
    if name == "recommend":
        (folder / "lists.csv").write_text("what was there\n")


@contextmanager
def _as_a_command():
    """No log of pytest's, which a command has none of; nothing of RecBole's environment table."""
    root = logging.getLogger()
    handlers, level, argv = root.handlers, root.level, sys.argv
    root.handlers, sys.argv = [], ["recbole-hns"]
    try:
        yield
    finally:
        root.handlers, sys.argv = handlers, argv
        root.setLevel(level)


def run(command: list[str], folder: Path) -> Ended:
    """Run it there, in this process."""
    out, err, here = io.StringIO(), io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with _as_a_command(), redirect_stdout(out), redirect_stderr(err):
            code = main(command)
    finally:
        os.chdir(here)
    return Ended(code, out.getvalue(), err.getvalue())


def temporary_files(folder: Path) -> list[str]:
    """What nobody but a killed command may leave."""
    return [
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.name.startswith(".") or file.suffix in (".tmp", ".claim", ".lock")
    ]


def left(folder: Path) -> dict[str, object]:
    """What a command made, without the times that it took."""
    made: dict[str, object] = {}
    for file in sorted(folder.rglob("*")):
        name = str(file.relative_to(folder))
        parts = name.split(os.sep)
        if file.is_dir() or parts[0] in (*LOGS, "data") or name.endswith(".previous"):
            continue
        if any(part.startswith(".") for part in parts):  # what is being written
            continue
        made[_without_stamp(name)] = _content(file)
    return made


def _without_stamp(name: str) -> str:
    top, *rest = name.split(os.sep)
    if top == "results":
        return os.sep.join([top, rest[-1]])
    if top == "saved":
        return os.sep.join([top, "last" if ".last" in name else "best"])
    return name


def _content(file: Path) -> object:
    if file.suffix == ".pth":
        content = torch.load(file, weights_only=True)
        for key in ("settings", "final", "versions", "seconds"):
            content.pop(key, None)
        return _without_times(content)
    if file.name == "result.json":
        record = json.loads(file.read_text())
        return {
            key: _without_times(record[key]) for key in ("best", "test", "epochs", "sampler", "seed")
        }
    if file.name == "report.html":  # it has the time and folders in it
        return len(file.read_bytes()) > 0
    return file.read_bytes()
