"""TensorBoard's curves of a run: a folder of its own, and no thread.

They are written when they come. Where they cannot be, that is told once and the run goes on without.
"""

from __future__ import annotations

import itertools
import time
from contextlib import suppress
from datetime import datetime
from logging import Logger, getLogger
from pathlib import Path
from typing import IO, Any, cast

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams
from torch.utils.tensorboard.writer import FileWriter

FOLDER = Path("log_tensorboard")


class Curves(SummaryWriter):
    """RecBole's ``trainer.tensorboard``; nothing is there before the first value."""

    def __init__(self, folder: Path):
        self._events = _Events(folder)
        super().__init__(str(folder))

    def _get_file_writer(self) -> FileWriter:
        """torch's hook."""
        own: Any = self
        if own.file_writer is None:
            own.file_writer = _Writer(self._events)
            own.all_writers = {self.get_logdir(): own.file_writer}
        return cast(FileWriter, own.file_writer)

    def get_logdir(self) -> str:
        """Where the curves are."""
        return str(self._events.folder)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], *args: Any, **more: Any
    ) -> None:
        """Settings and what they led to, in a folder below, where TensorBoard looks for them."""
        if self._events.failed:
            return
        below = Curves(self._events.folder / str(time.time()))
        for summary in hparams(hparam_dict, metric_dict, *args[:1]):  # type: ignore[no-untyped-call]
            below._get_file_writer().add_summary(summary)
        for name, value in metric_dict.items():
            below.add_scalar(name, value)
        below.close()


class _Writer(FileWriter):
    """torch's, without TensorBoard's thread behind it."""

    def __init__(self, events: _Events):
        self.event_writer = events


class _Events:
    """What torch takes for TensorBoard's ``EventFileWriter``."""

    def __init__(self, folder: Path):
        self.folder, self._began, self.failed = folder, False, False
        self._stream: IO[bytes] | None = None

    def get_logdir(self) -> str:
        return str(self.folder)

    def add_event(self, event: Event) -> None:
        if self.failed:
            return
        try:
            stream = self._stream or self._open()
            RecordWriter(stream).write(event.SerializeToString())
            stream.flush()
        except OSError as error:
            self.failed = True
            self.close()
            getLogger().warning(
                f"{self.folder} cannot be written: {error.strerror or error}. The run goes on without "
                "TensorBoard's curves."
            )

    def _open(self) -> IO[bytes]:
        if not self._began:
            self.folder, self._began = _new_folder(self.folder), True
        name = f"events.out.tfevents.{time.time():.6f}"
        self._stream = open(self.folder / name, "xb")  # noqa: SIM115
        begin = Event(wall_time=time.time(), file_version="brain.Event:2")
        RecordWriter(self._stream).write(begin.SerializeToString())
        return self._stream

    def flush(self) -> None:
        """Everything is written when it comes."""

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()

    def reopen(self) -> None:
        """The next value opens another file."""


def curves_of(logger: Logger) -> Curves:
    """The curves of a run, named after its log: RecBole's ``get_tensorboard``."""
    files = [h.baseFilename for h in logger.handlers if hasattr(h, "baseFilename")]
    stamp = datetime.now().strftime("%b-%d-%Y_%H-%M-%S")
    return Curves(FOLDER / (Path(files[-1]).stem if files else f"model-{stamp}"))


def register() -> None:
    """Let RecBole's trainers write their curves so."""
    from recbole.trainer import trainer

    trainer.get_tensorboard = curves_of


def _new_folder(wanted: Path) -> Path:
    wanted.parent.mkdir(parents=True, exist_ok=True)
    for n in itertools.count(1):
        folder = wanted if n == 1 else wanted.with_name(f"{wanted.name}-{n}")
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise AssertionError  # count() has no end
