"""Ray, here or there."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from recbole_hns.errors import HNSError

CONNECT_SECONDS = 5


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
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    if ray.is_initialized():
        yield
        return
    if address is not None:
        _reach(address)
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise HNSError(f"ray_address={address} cannot be joined: {reason}") from error
    else:
        ray.init(include_dashboard=False, **quiet)
    try:
        yield
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Ray waits for minutes for a cluster that is not there; a socket does not."""
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS):
            pass
    except (OSError, ValueError, OverflowError) as error:
        raise HNSError(
            f"ray_address={address} cannot be reached ({error}): start Ray there, e.g. by "
            "`ray start --head`, and give host:port."
        ) from error


def warm_up(slots: int, cpus: float, gpus: float) -> None:
    """Let as many workers as will train at once load the libraries, which takes seconds, beforehand."""
    import ray

    @ray.remote(num_cpus=cpus, num_gpus=gpus)
    def load() -> None:
        import torch._dynamo  # noqa: F401  (torch's optimisers load it when the first one is made)

        import recbole_hns.kernels.numba_cpu
        import recbole_hns.tuning.trial  # noqa: F401

        time.sleep(0.5)  # so that no worker loads twice while another does not at all

    ray.get([load.remote() for _ in range(slots)])


def parallel_trials(cpus: float, gpus: float) -> int:
    """How many trials fit at once."""
    import ray

    resources = ray.cluster_resources()
    fits = [resources.get("CPU", 0) / cpus] if cpus else []
    fits += [resources.get("GPU", 0) / gpus] if gpus else []
    count = int(min(fits)) if fits else 1
    if count < 1:
        raise HNSError(
            f"a trial of {cpus:g} CPUs and {gpus:g} GPUs does not fit: there are "
            f"{resources.get('CPU', 0):g} CPUs and {resources.get('GPU', 0):g} GPUs."
        )
    return count
