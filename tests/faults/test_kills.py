"""A command that is killed at any call about a file: what was there is there, and the next one is whole."""

import errno
import os
import signal

import pytest
from commands import arguments, left, run, temporary_files  # noqa: F401
from injector import Disk
from test_io import OF_TRAINING, is_same, place_of  # noqa: F401

KILLED = ("train", "resume", "evaluate", "recommend", "convert", "overwrite", "report")


class Killer(Disk):
    """Ends the process before the n-th call."""

    kill_at = 0

    def tick(self, call, path):
        seen = len(self.calls)
        super().tick(call, path)
        if len(self.calls) > seen == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def is_killed(place, count):
    """Run the command in a process of its own; whether it came to the call at which it is killed."""
    place.restore()
    process = os.fork()
    if process == 0:
        try:
            disk = Killer(place.folder, None, errno.EIO)
            disk.kill_at = count
            with disk:
                run(place.command(), place.folder)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def survives_a_kill(place, count):
    """Kill it once and go on; whether it was killed."""
    if not is_killed(place, count):
        return False
    now = left(place.folder)
    aside = place.name == "overwrite" and (place.folder / "dataset" / ".books.old").is_dir()
    for name, content in place.before.items():
        if aside and name not in now:
            continue  # the next command puts it back
        if place.name not in OF_TRAINING:
            assert is_same(now[name], content) or is_same(now[name], place.whole.get(name)), (
                count,
                name,
            )
    place.go_on()
    if place.name not in OF_TRAINING:
        assert temporary_files(place.folder) == [], count
    return True


@pytest.mark.parametrize("name", ["convert", "overwrite"])
def test_a_killed_command_loses_nothing(place_of, name):  # noqa: F811
    place = place_of(name)
    calls = len(place.calls[errno.EIO])
    assert all(survives_a_kill(place, calls * n // 4 - 1) for n in (1, 3, 4))


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLED)
def test_a_command_that_is_killed_at_any_call_loses_nothing(place_of, name):  # noqa: F811
    place = place_of(name)
    calls = len(place.calls[errno.EIO])
    step = 4 if name in OF_TRAINING else 1
    killed = sum(survives_a_kill(place, count) for count in range(0, calls, step))
    print(name, "killed and whole:", killed)
    assert killed == len(range(0, calls, step))
