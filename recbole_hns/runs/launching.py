"""The options of a run in several processes."""

from __future__ import annotations

import torch

from recbole_hns.bridge.allowed import TEXT, Allowed, whole
from recbole_hns.errors import Error


def check_group(nproc: int, world_size: int, ip: str, port: str, group_offset: int) -> None:
    """Refuse a group of processes that cannot come together."""
    whole(1, 1024).check("nproc", nproc)
    if world_size != -1:
        whole(nproc, 2**16).check("world_size", world_size)
    whole(0, max(0, world_size - nproc)).check("group_offset", group_offset)
    TEXT.check("ip", ip)
    Allowed("a number from 1 to 65535", lambda p: p.isdecimal() and 1 <= int(p) < 2**16).check(
        "port", str(port)
    )
    gpus = torch.cuda.device_count()
    if gpus < nproc:
        raise Error(
            f"nproc={nproc} needs as many GPUs, for RecBole's processes talk through NCCL, and this "
            f"machine has {gpus}: run without --nproc and --world_size."
        )
