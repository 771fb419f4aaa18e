"""Ray, here or there."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recbole_hns.errors import Error

CONNECT_SECONDS = 5

# Ray's own switch, of which it says that it is for Windows and macOS: without clusters it listens to this
# machine only. Whoever reaches its ports can run code.
_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """A Ray to work with: the cluster at ``address``, or one of this machine's own.

    Only a Ray that was started here is stopped in the end.
    """
    import ray

    # Ray's own accounts of what it does; ours are the table and the files.
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if ray.is_initialized():
        yield
        return
    if address is not None:
        _reach(address)
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise Error(f"ray_address={address} cannot be joined: {reason}") from error
    else:
        # "local": without it Ray would join any cluster that happens to run on this machine.
        with alone():
            ray.init(address="local", include_dashboard=False, **quiet)
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def alone() -> Iterator[None]:
    """Start a Ray that nobody outside this machine can reach."""
    from ray._private import ray_constants

    was, told = ray_constants.ENABLE_RAY_CLUSTER, os.environ.get(_CLUSTERS)
    ray_constants.ENABLE_RAY_CLUSTER, os.environ[_CLUSTERS] = False, "0"
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = was
        if told is None:
            del os.environ[_CLUSTERS]
        else:
            os.environ[_CLUSTERS] = told


def _reach(address: str) -> None:
    """Ray waits for minutes for a cluster that is not there; a socket does not."""
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS):
            pass
    except (OSError, ValueError, OverflowError) as error:
        raise Error(
            f"ray_address={address} cannot be reached ({error}): start Ray there, e.g. by "
            "`ray start --head`, and give host:port."
        ) from error


def check_fits(cpus: float, gpus: float) -> None:
    """Refuse trials that no part of the cluster could ever run."""
    import ray

    there = ray.cluster_resources()
    if cpus > there.get("CPU", 0) or gpus > there.get("GPU", 0):
        raise Error(
            f"a trial of {cpus:g} CPUs and {gpus:g} GPUs does not fit: there are "
            f"{there.get('CPU', 0):g} CPUs and {there.get('GPU', 0):g} GPUs."
        )
