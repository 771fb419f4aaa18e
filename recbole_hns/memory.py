"""How much memory this process can still take, whoever sets the limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

CGROUPS, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_V2, _V1 = ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
_CACHES = {"inactive_file", "total_inactive_file"}  # what the kernel gives back first


def available() -> int:
    """Bytes that can still be taken: what the machine has left, and what every limit leaves.

    A container's cgroup, with all that it is in, and ``ulimit -v`` count as the machine does.
    """
    left: list[int] = [psutil.virtual_memory().available, *_left_in_cgroups(), *_left_of_addresses()]
    return max(0, min(left))


def _left_in_cgroups() -> Iterator[int]:
    for folder, (limit, used) in _cgroups():
        most, now = _number(folder / limit), _number(folder / used)
        if most is not None and now is not None:
            yield most - now + _cache(folder)


def _cgroups() -> Iterator[tuple[Path, tuple[str, str]]]:
    """The folders of this process's cgroup and of those that it is in, of version 1 or 2.

    In a container they are often mounted as the root, whatever the process calls its own.
    """
    try:
        lines = OWN_CGROUP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, names = (CGROUPS / "memory", _V1) if controllers else (CGROUPS, _V2)
        own = root / path.strip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(root):
                yield folder, names


def _number(file: Path) -> int | None:
    """What a file of the kernel's says; None for ``max``, or where it is not there."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _cache(folder: Path) -> int:
    try:
        lines = (line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return max((int(number) for name, number in lines if name in _CACHES), default=0)
    except (OSError, ValueError):
        return 0


def _left_of_addresses() -> Iterator[int]:
    if resource is None:
        return
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        yield most - psutil.Process().memory_info().vms
