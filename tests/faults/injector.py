"""A disk that fails: the n-th call of the system about a file below a folder, or all from the n-th on."""

from __future__ import annotations

import builtins
import errno
import io
import os
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

CALLS = ("open", "read", "write", "fsync", "rename", "mkdir")
WORDS = {errno.ENOSPC: "No space left on device", errno.EIO: "Input/output error"}


class Disk:
    """Counts the calls about files below ``folder``, and lets those fail that are to.

    ``fail`` is the number of the first that fails, ``lasting`` whether all after it do. Reading is
    counted only where the error is one that reading can have.
    """

    def __init__(self, folder: Path, fail: int | None = None, number=errno.EIO, lasting=False):
        self.folder, self.fail, self.number, self.lasting = str(folder), fail, number, lasting
        self.calls: list[tuple[str, str]] = []  # and their files
        self.failed: list[tuple[str, str]] = []
        self._handles: dict[int, str] = {}

    def tick(self, call: str, path: object) -> None:
        """One more call, which may fail."""
        if not self._is_below(path) or (call == "read" and self.number == errno.ENOSPC):
            return
        self.calls.append((call, os.path.abspath(os.fsdecode(path))))
        at = len(self.calls) - 1
        if self.fail is not None and (at == self.fail or (self.lasting and at > self.fail)):
            self.failed.append(self.calls[-1])
            named = (os.fspath(path),) if call in ("open", "rename", "mkdir") else ()
            raise OSError(self.number, WORDS[self.number], *named)

    def _is_below(self, path: object) -> bool:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return False
        path = os.fsdecode(path)  # importing looks below the folder that one stands in
        return "__path_hook__" not in path and os.path.abspath(path).startswith(self.folder + os.sep)

    # ------------------------------------------------------------- in the process

    def __enter__(self) -> Disk:
        self._patches = ExitStack()
        for module, name in ((builtins, "open"), (io, "open")):
            self._patches.enter_context(mock.patch.object(module, name, self._opened(io.open)))
        for name, call in (
            *(("mkdir", "mkdir"), ("rename", "rename"), ("replace", "rename"), ("open", "open")),
            *(("fsync", "fsync"), ("write", "write"), ("close", None)),
        ):
            self._patches.enter_context(mock.patch.object(os, name, self._faulty(name, call)))
        return self

    def __exit__(self, *error: object) -> None:
        self._patches.close()

    def _faulty(self, name: str, call: str | None):
        original = getattr(os, name)

        def about_handle(handle, *args):
            if call is None:
                self._handles.pop(handle, None)
            else:
                self.tick(call, self._handles.get(handle))
            return original(handle, *args)

        def about_path(path, *args, **kwargs):
            is_read = name == "open" and not args[0] & (os.O_WRONLY | os.O_RDWR)
            # What the system would say first: a folder is there already, or there is nothing to rename.
            # Folders can be listed: a disk that cannot even do that keeps what should be tidied up.
            is_other = os.path.isdir(path) if name in ("mkdir", "open") else not os.path.lexists(path)
            if not is_other and not (is_read and self.number == errno.ENOSPC):
                self.tick(call, path)
            result = original(path, *args, **kwargs)
            if name == "open":
                self._handles[result] = os.fspath(path)
            return result

        return about_handle if name in ("fsync", "write", "close") else about_path

    def _opened(self, original):
        def opened(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, **more):
            if more or not self._is_below(file):
                return original(file, mode, buffering, encoding, errors, newline, **more)
            writes = set(mode) & set("wxa+")
            if writes or self.number == errno.EIO:
                self.tick("open", file)
            raw = _Raw(self, file, "".join(c for c in mode if c not in "bt"))
            self._handles[raw.fileno()] = os.fspath(file)
            stream = (io.BufferedWriter if writes else io.BufferedReader)(raw)
            if "b" in mode:
                return stream
            return io.TextIOWrapper(stream, encoding or "utf-8", errors, newline)

        return opened


class _Raw(io.FileIO):
    """What Python's streams write to when they are full or flushed."""

    def __init__(self, disk: Disk, file, mode: str):
        self._disk, self._path = disk, os.fspath(file)
        super().__init__(file, mode)

    def write(self, data):
        self._disk.tick("write", self._path)
        return super().write(data)

    def readinto(self, buffer):
        self._disk.tick("read", self._path)
        return super().readinto(buffer)

    def readall(self):
        self._disk.tick("read", self._path)
        return super().readall()

    def close(self):
        if not self.closed:
            self._disk._handles.pop(self.fileno(), None)
        super().close()
