"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, overload

from recbole_hns.errors import Error

_OF_THE_DISK = ("read", "readinto", "readline", "write", "flush")
_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP}  # what a file system answers that has no such thing


@overload
@contextmanager
def whole_file(
    path: str | Path,
    mode: Literal["w"] = "w",
    *,
    keep: Path | None = None,
    encoding: str = "utf-8",
    newline: str | None = None,
) -> Iterator[IO[str]]: ...


@overload
@contextmanager
def whole_file(
    path: str | Path, mode: Literal["wb"], *, keep: Path | None = None
) -> Iterator[IO[bytes]]: ...


@contextmanager
def whole_file(
    path: str | Path,
    mode: Literal["w", "wb"] = "w",
    *,
    keep: Path | None = None,
    encoding: str = "utf-8",
    newline: str | None = None,
) -> Iterator[IO[Any]]:
    """A stream whose content becomes the file ``path`` when ``with`` ends, and nothing if it fails.

    It is written to a new file beside it, brought to the disk and renamed. ``keep`` is the name under
    which the file before stays. What a killed process left behind is replaced by the next that writes.

    Raises:
        Error: if the file cannot be written; what was there stays.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.tmp")
    text = {} if mode == "wb" else {"encoding": encoding, "newline": newline}
    try:
        if path.exists() and not path.is_file():
            raise Error(f"{path} cannot be written: it is not a regular file.")
        stream = _open_new(temporary, mode, text)
        ours = os.fstat(stream.fileno())
        try:
            with stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            if not _is(ours, temporary):
                raise OSError(errno.EBUSY, "another process is writing it too")
            _put_in_place(temporary, path, keep)
        except BaseException:
            if _is(ours, temporary):
                temporary.unlink()
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise cannot_be_written(path, error) from error


class Watched:
    """A stream that remembers what the system said, for libraries that tell of something else then."""

    def __init__(self, stream: IO[bytes]):
        self._stream = stream
        self.error: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._stream, name)
        return self._watched(found) if name in _OF_THE_DISK else found

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any) -> Any:
            try:
                return call(*args)
            except OSError as error:
                self.error = self.error or error
                raise

        return watched


def make_folder(folder: Path) -> Path:
    """Make a folder, and those above it, unless they are there.

    Raises:
        Error: if it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_be_written(folder, error) from error
    return folder


def a_path(text: str | Path) -> Path:
    """A path as somebody types it: ``~`` is the home folder, wherever no shell has seen to it."""
    return Path(os.path.expanduser(text))


def write_text(text: str, path: str | Path) -> Path:
    """Write a text as a :func:`whole_file`."""
    with whole_file(path) as stream:
        stream.write(text)
    return Path(path)


def write_json(content: object, path: str | Path) -> Path:
    """Write JSON as a :func:`whole_file`."""
    return write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", path)


def cannot_be_written(path: object, error: OSError) -> Error:
    """What the system said about a file, as a sentence."""
    return Error(f"{path} cannot be written: {error.strerror or error}.")


def _open_new(temporary: Path, mode: str, text: dict[str, Any]) -> IO[Any]:
    """Never through a link that somebody put there: the name must be new."""
    exclusive = mode.replace("w", "x")
    try:
        return open(temporary, exclusive, **text)
    except FileExistsError:
        temporary.unlink()
        return open(temporary, exclusive, **text)


def _is(file: os.stat_result, path: Path) -> bool:
    """Whether the name is still that file's: another process may have taken it over."""
    try:
        return os.path.samestat(file, os.lstat(path))
    except FileNotFoundError:
        return False


def _put_in_place(temporary: Path, path: Path, keep: Path | None) -> None:
    keeps = keep is not None and path.exists()
    if keep is not None and keeps:
        os.replace(path, keep)
    try:
        os.replace(temporary, path)
    except OSError:
        if keep is not None and keeps:
            os.replace(keep, path)
        raise


def _sync_folder(folder: Path) -> None:
    """Names too are to survive a power cut; not every system can do that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # a folder that may be written to and not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(handle)
