"""What a run ran on."""

from __future__ import annotations

import platform
from importlib import metadata

import torch

PACKAGES = ("recbole-hns", "recbole", "torch", "numpy", "numba", "scipy", "pandas", "ray")


def versions() -> dict[str, str]:
    """The versions of Python and the packages, the platform, and the number of threads."""
    found = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    found["threads"] = str(torch.get_num_threads())
    return found
