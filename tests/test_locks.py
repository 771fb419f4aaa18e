"""One process at a time: the second is told, at once, and a lock never outlives its process."""

import errno
import multiprocessing
import os
import signal
import socket
import threading
import time

import pytest

from recbole_hns import Error, locks
from recbole_hns.locks import Taken, alone


def hold(path, held):
    """Hold a lock in a process of its own until it is killed."""
    with alone(path):
        held.set()
        time.sleep(60)


@pytest.fixture
def another(tmp_path):
    """Another process that holds the lock of a name."""
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    process = context.Process(target=hold, args=(tmp_path / "name", held))
    process.start()
    assert held.wait(60)
    yield process
    process.kill()
    process.join()


@pytest.fixture(params=["flock", "new file"])
def kind(request, monkeypatch):
    """With the system's locks, and on a file system that has none."""

    def no_locks(handle, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    if request.param == "new file":
        monkeypatch.setattr(locks.fcntl, "flock", no_locks)
    return request.param


def test_a_second_process_is_refused_and_a_killed_one_holds_nothing(another, tmp_path):
    with (
        pytest.raises(Taken, match=r"name is in the hands of another process"),
        alone(tmp_path / "name"),
    ):
        pass
    os.kill(another.pid, signal.SIGKILL)
    another.join()
    with alone(tmp_path / "name"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_leaves_no_file(kind, tmp_path):
    with alone(tmp_path / "name"):
        (file,) = os.listdir(tmp_path)
        assert file == {"flock": ".name.lock", "new file": ".name.alone"}[kind]
    assert os.listdir(tmp_path) == []


def test_the_same_thread_may_enter_again_and_another_may_not(kind, tmp_path):
    said = []

    def other():
        try:
            with alone(tmp_path / "name"):
                said.append("entered")
        except Taken:
            said.append("refused")

    with alone(tmp_path / "name"):
        with alone(tmp_path / "name"):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with pytest.raises(Taken), alone(tmp_path / "name", again=False):
            pass
    assert said == ["refused"]
    with alone(tmp_path / "name"):
        pass


@pytest.mark.parametrize(
    ("whose", "is_free"),
    [
        (f"999999999 {socket.gethostname()}", True),  # a process that is no more
        (f"{os.getpid()} {socket.gethostname()}", True),  # a number that we have now
        (f"1 {socket.gethostname()}", False),
        ("999999999 another-machine", False),
        ("", False),  # being written
    ],
)
def test_without_flock_what_a_dead_process_left_is_replaced(tmp_path, monkeypatch, whose, is_free):
    monkeypatch.setattr(locks, "fcntl", None)
    file = tmp_path / ".name.alone"
    file.write_text(whose)
    if is_free:
        with alone(tmp_path / "name"):
            assert file.read_text() == f"{os.getpid()} {socket.gethostname()}"
        assert os.listdir(tmp_path) == []
    else:
        with pytest.raises(Taken, match=r"remove .*\.name\.alone\.$"), alone(tmp_path / "name"):
            pass
        assert file.read_text() == whose


def test_hundred_threads_one_at_a_time(kind, tmp_path):
    inside, most, entered = [], [], []

    def work():
        try:
            with alone(tmp_path / "name"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                entered.append(1)
        except Taken:
            pass

    threads = [threading.Thread(target=work) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert entered
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with (
        pytest.raises(Error, match=r"name cannot be written: No such file"),
        alone(tmp_path / "a" / "name"),
    ):
        pass


def test_nobody_is_led_elsewhere_by_a_link(tmp_path):
    target = tmp_path / "target"
    target.write_text("kept")
    (tmp_path / ".name.lock").symlink_to(target)
    with pytest.raises(Error, match="cannot be written"), alone(tmp_path / "name"):
        pass
    assert target.read_text() == "kept"
