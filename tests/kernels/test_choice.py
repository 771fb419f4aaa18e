"""Which backend a device gets."""

from __future__ import annotations

import pytest
import torch

from recbole_hns.errors import Error
from recbole_hns.kernels import get_kernels

CPU, OTHER = torch.device("cpu"), torch.device("meta")


def test_auto_is_numba_on_the_cpu_and_torch_elsewhere():
    assert get_kernels("auto", CPU).name == "numba"
    assert get_kernels("auto", OTHER).name == "torch"
    assert get_kernels("torch", CPU).name == "torch"


def test_numba_is_refused_elsewhere_with_what_to_do():
    with pytest.raises(Error, match=r"runs on the CPU only.* use hns_backend=torch or auto"):
        get_kernels("numba", OTHER)


@pytest.mark.parametrize("backend", ["cuda", "NUMBA", ""])
def test_another_word_is_refused_with_those_that_there_are(backend):
    with pytest.raises(Error, match=rf"^hns_backend={backend} is unknown: .* auto, numba, torch\.$"):
        get_kernels(backend, CPU)
