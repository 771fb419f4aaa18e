"""Only one process at a time writes what has a name.

Where the system has it, the lock is ``flock`` on a file beside what is locked, which Linux passes on to an
NFS server: it ends with its process, however that ends. Where there is none, it is a file that must be new
and says whose it is; one that a process of this machine left behind is replaced.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from recbole_hns.errors import Error
from recbole_hns.files import cannot_be_written

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_TAKEN = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}
_HAS_NONE = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}  # of a file system
_HELD: dict[Path, int] = {}  # what this process has locked, and in which thread


class Taken(Error):
    """Another process, or another thread of this one, holds the lock."""


@contextmanager
def alone(path: str | Path, again: bool = True) -> Iterator[None]:
    """Hold the lock of a file or folder, which need not be there.

    Whoever holds it may enter ``again``, in the same thread, and it is held until the first ``with`` ends.

    Raises:
        Taken: at once, if somebody else holds it.
        Error: if nothing can be written beside it.
    """
    path, me = Path(os.path.abspath(path)), threading.get_ident()
    if again and _HELD.get(path) == me:
        yield
        return
    try:
        lock, handle = _take(path)
    except OSError as error:
        raise cannot_be_written(path, error) from error
    _HELD[path] = me
    try:
        yield
    finally:
        del _HELD[path]
        with suppress(OSError):  # as long as the lock is ours: the next one makes a new file
            lock.unlink()
        os.close(handle)


def _take(path: Path) -> tuple[Path, int]:
    lock = path.with_name(f".{path.name}.lock")
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        try:
            is_locked = _flock(handle, path)
            if is_locked and _is_still(handle, lock):
                return lock, handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if not is_locked:
            lock.unlink(missing_ok=True)
            return _take_new(path)
        # Who held it has removed the file meanwhile.


def _flock(handle: int, path: Path) -> bool:
    """Lock an open file; False where there is no such thing."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            raise Taken(_sentence(path)) from None
        if error.errno in _HAS_NONE:
            return False
        raise
    return True


def _take_new(path: Path) -> tuple[Path, int]:
    """Without ``flock``: a file that must be new."""
    lock = path.with_name(f".{path.name}.alone")
    with suppress(FileNotFoundError):
        if _is_left_behind(lock.read_text("utf-8"), path):
            lock.unlink()
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise Taken(f"{_sentence(path)} If no process is left that does, remove {lock}.") from None
    try:
        os.write(handle, f"{os.getpid()} {socket.gethostname()}".encode())
    except OSError:
        os.close(handle)
        lock.unlink()
        raise
    return lock, handle


def _is_left_behind(whose: str, path: Path) -> bool:
    pid, _, host = whose.partition(" ")
    if host != socket.gethostname() or not pid.isdecimal():
        return False
    if int(pid) == os.getpid():
        return path not in _HELD
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _sentence(path: Path) -> str:
    return f"{path} is in the hands of another process: wait for it, or write to another name."


def _is_still(handle: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(lock))
    except FileNotFoundError:
        return False
