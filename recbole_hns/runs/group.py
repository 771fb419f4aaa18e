"""Several processes of one run, as RecBole's ``run`` starts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Annotated, Any

import torch
from torch.multiprocessing.spawn import spawn

from recbole_hns.data.locate import ensure_dataset
from recbole_hns.errors import Error
from recbole_hns.runs.config import HNSConfig
from recbole_hns.runs.run import run_recbole_hns
from recbole_hns.settings.kinds import Fits, Text, convert, whole

Port = Annotated[str, Fits("a number from 1 to 65535", lambda p: p.isdecimal() and 1 <= int(p) < 2**16)]


@dataclass(frozen=True)
class Group:
    """How many processes there are, here and on other machines, and where they meet."""

    nproc: int = 1
    world_size: int = -1
    ip: str = "localhost"
    port: str = "5678"
    group_offset: int = 0

    @property
    def is_one(self) -> bool:
        """Whether there is one process only."""
        return self.nproc == 1 and self.world_size == -1

    def check(self) -> None:
        """Refuse a group of processes that cannot come together."""
        convert("nproc", self.nproc, whole(1, 1024))
        if self.world_size != -1:
            convert("world_size", self.world_size, whole(self.nproc, 2**16))
        convert("group_offset", self.group_offset, whole(0, max(0, self.world_size - self.nproc)))
        convert("ip", self.ip, Text)
        convert("port", str(self.port), Port)
        gpus = torch.cuda.device_count()
        if gpus < self.nproc:
            raise Error(
                f"nproc={self.nproc} needs as many GPUs, for RecBole's processes talk through NCCL, and "
                f"this machine has {gpus}: run without --nproc and --world_size."
            )

    def as_settings(self) -> dict[str, Any]:
        """What RecBole's configuration calls them."""
        values = asdict(self)
        offset = values.pop("group_offset")
        return {
            **values,
            "offset": offset,
            "world_size": self.nproc if self.world_size == -1 else self.world_size,
        }


def launch(
    model: str | None,
    dataset: str | None,
    config_file_list: Sequence[str] | None,
    command_line: Sequence[str],
    group: Group,
    resume: str | Path | None = None,
    trust_checkpoint: bool = False,
) -> dict[str, Any] | None:
    """Run here, or in the processes of a group."""
    if group.is_one:
        return run_recbole_hns(
            model,
            dataset,
            config_file_list=config_file_list,
            command_line=command_line,
            resume=resume,
            trust_checkpoint=trust_checkpoint,
        )
    if resume is not None:
        raise Error("resume goes on in one process: leave out nproc and world_size.")
    # Mistakes are told once, here, and not by every process.
    group.check()
    ensure_dataset(HNSConfig(model, dataset, config_file_list, {"nproc": group.nproc}, command_line))
    queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
    spawn(  # type: ignore[no-untyped-call]
        _run_process,
        args=(model, dataset, config_file_list, list(command_line), group.as_settings(), queue),
        nprocs=group.nproc,
    )
    return None if queue.empty() else queue.get()


def _run_process(
    rank: int,
    model: str | None,
    dataset: str | None,
    config_file_list: Sequence[str] | None,
    command_line: Sequence[str],
    group: dict[str, Any],
    queue: SimpleQueue[dict[str, Any]],
) -> None:
    result = run_recbole_hns(
        model,
        dataset,
        config_file_list=config_file_list,
        config_dict={**group, "local_rank": rank},
        command_line=command_line,
    )
    if rank == 0:
        queue.put(result)
