"""Which backend a device gets."""

from __future__ import annotations

import torch

from recbole_hns.errors import Error
from recbole_hns.kernels.contract import Backend

BACKENDS = ("auto", "numba", "torch")


def get_kernels(backend: str, device: torch.device) -> Backend:
    """What implements the contract for ``hns_backend`` on ``device``, loaded when first asked for."""
    if backend not in BACKENDS:
        raise Error(f"hns_backend={backend} is unknown: choose one of {', '.join(BACKENDS)}.")
    if backend == "auto":
        backend = "numba" if device.type == "cpu" else "torch"
    if backend == "numba":
        if device.type != "cpu":
            raise Error(
                f"hns_backend=numba runs on the CPU only, and the model is on {device.type}: "
                "use hns_backend=torch or auto."
            )
        from recbole_hns.kernels import numba as in_numba

        return in_numba
    from recbole_hns.kernels import torch as in_torch

    return in_torch
