"""A fault at every call of the system that has to do with a file: one line, nothing lost, nothing left."""

import errno
import shutil
from contextlib import suppress
from functools import cache

import pytest
import torch
from commands import COMMANDS, LOGS, arguments, left, prepare, run, temporary_files
from injector import WORDS, Disk
from killable import assert_same

from recbole_hns import Error
from recbole_hns.training.checkpoint import read_checkpoint, write_checkpoint

ERRORS = (errno.ENOSPC, errno.EIO)
OF_TRAINING = ("train", "resume")


class Place:
    """A folder in which a command can be tried again and again, and what it makes without a fault."""

    def __init__(self, name, base, data):
        self.name, self.folder, self.snapshot = name, base / "here", base / "snapshot"
        self.folder.mkdir(parents=True)
        prepare(name, self.folder, data)
        shutil.copytree(self.folder, self.snapshot)
        self.before = left(self.folder)
        self.calls = {}
        for number in ERRORS:
            self.restore()
            with Disk(self.folder, number=number) as disk:
                assert run(self.command(), self.folder).code == 0
            self.calls[number] = disk.calls
        self.whole = left(self.folder)

    def command(self):
        return arguments(self.name, self.folder)

    def restore(self):
        shutil.rmtree(self.folder)
        shutil.copytree(self.snapshot, self.folder)

    def go_on(self):
        """As somebody would after the disk is mended."""
        states = [f for f in self.folder.glob("saved/*.last.pth*") if not f.name.startswith(".")]
        again = self.name == "train" and states
        ended = run(["--resume=saved"] if again else self.command(), self.folder)
        if self.name == "convert" and ended.code == 2:
            assert "exists already" in ended.err  # it was there before the disk failed
        else:
            assert ended.code == 0, ended.err
        assert_same(left(self.folder), self.whole)


def is_same(a, b):
    try:
        assert_same(a, b)
    except AssertionError:
        return False
    return True


def is_of_a_log(path, folder):
    return str(path).removeprefix(str(folder) + "/").partition("/")[0] in LOGS


def survives(place, number, count, lasting=False, kind=Disk):
    """Try one fault; whether the call was made."""
    place.restore()
    with kind(place.folder, count, number, lasting) as disk:
        ended = run(place.command(), place.folder)
    what = f"{place.name}, {WORDS[number]} at call {count}: {disk.failed[:1]}\n{ended.err}"
    assert "Traceback" not in ended.err, what
    assert "Traceback" not in ended.out, what
    tidy = temporary_files(place.folder)
    if lasting and tidy == [
        "dataset/.books.old"
    ]:  # nor could it be renamed back: it is at the next command
        place.go_on()
        return temporary_files(place.folder) == []
    assert tidy == [], what
    if not disk.failed:
        return False
    if ended.code == 0:  # a log that fails is no reason to lose a run; a library may have read again
        assert_same(left(place.folder), place.whole)
        if all(is_of_a_log(path, place.folder) for _, path in disk.failed):
            assert "The run goes on without" in ended.err, what
        else:
            assert {call for call, _ in disk.failed} <= {"read", "a call"}, what
    else:
        assert ended.code == 2, what
        assert len(ended.lines) == 1, what
        assert WORDS[number] in ended.err, what
    now = left(place.folder)
    for name, content in place.before.items():
        assert name in now, what
        if place.name not in OF_TRAINING:
            assert is_same(now[name], content) or is_same(now[name], place.whole.get(name)), what
    place.go_on()
    return True


@pytest.fixture(scope="module")
def place_of(tmp_path_factory):
    """The place of a command, made once."""
    from conftest import random_pairs, write_inter

    data = tmp_path_factory.mktemp("data")
    write_inter(data, "tiny", random_pairs())

    @cache
    def made(name):
        return Place(name, tmp_path_factory.mktemp(name), data)

    return made


def first_of_each_kind(place, number):
    """The number of the first call of each kind about each sort of file."""
    firsts = {}
    for count, (call, path) in enumerate(place.calls[number]):
        where = str(path).removeprefix(str(place.folder))
        firsts.setdefault((call, where.split("/")[1], where.rpartition(".")[2]), count)
    return list(firsts.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_survives_a_fault(place_of, name):
    place = place_of(name)
    for n, number in enumerate(ERRORS):
        for count in first_of_each_kind(place, number)[n :: 8 if name in OF_TRAINING else 4]:
            assert survives(place, number, count)


@pytest.mark.slow
@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_survives_a_fault_at_every_call(place_of, name, lasting):
    place, seen = place_of(name), {}
    for number in ERRORS:
        count = 0
        while survives(place, number, count, lasting):
            count += 1
        seen[number] = count
    print(name, "lasting" if lasting else "once", {WORDS[k]: v for k, v in seen.items()})
    assert sum(seen.values()) > 0


def test_what_a_disk_fails_to_read_is_neither_damaged_nor_something_else(tmp_path):
    """torch went on with what was in its memory where a read failed: other weights, and not a word."""
    file = tmp_path / "a" / "x.pth"
    file.parent.mkdir()
    settings = {"format": 1, "model": "BPR", "dataset": "tiny", "settings": {}, "final": {}}
    for n in (1, 2):  # the one before has other numbers
        weights = torch.arange(20_000, dtype=torch.float32) * n
        write_checkpoint({**settings, "epoch": n, "state_dict": {"w": weights}}, file)
    for count in range(100):
        with Disk(file.parent, count) as disk, suppress(Error):
            assert torch.equal(read_checkpoint(file)["state_dict"]["w"], weights)
        if not disk.failed:
            break
    assert 5 < count < 99
