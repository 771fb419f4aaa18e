"""What the Numba kernels have in common: how they are compiled, split among threads, and seeded."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numba as nb
import numpy as np
import numpy.typing as npt
import torch

from recbole_hns.kernels.types import Vectors

Floats: TypeAlias = npt.NDArray[np.float32]
Ints: TypeAlias = npt.NDArray[np.int64]
Ids: TypeAlias = npt.NDArray[np.int32]

# Sums may be reordered (that is what makes them SIMD), but NaN and inf keep their meaning.
jit = nb.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
inline = nb.njit(inline="always")

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
VECTORS_PER_THREAD = 8192


class VectorArrays(NamedTuple):
    """:class:`~recbole_hns.kernels.Vectors` as compiled code takes them."""

    context: Floats
    rows: Ints
    items: Floats


def array(table: torch.Tensor) -> Floats:
    """The numbers of a table that autograd may watch."""
    numbers: Floats = table.detach().numpy()
    return numbers


def arrays_of(v: Vectors) -> VectorArrays:
    """The same memory, as arrays."""
    return VectorArrays(array(v.context), v.rows.numpy(), array(v.items))


def new_seed(generator: torch.Generator) -> np.uint64:
    """What the random streams of all pairs of one call begin from."""
    return np.uint64(torch.randint(1 << 62, (), generator=generator).item())


@lru_cache(maxsize=1)
def _threads(count: int, process: int) -> ThreadPoolExecutor:
    """A pool for this process: threads do not survive a fork."""
    return ThreadPoolExecutor(count, thread_name_prefix="hns")


class Job(NamedTuple):
    """``function(first, last, *args)`` for the stretches first..last of ``length`` rows."""

    function: Callable[..., None]
    length: int
    args: tuple[object, ...]


def split(*jobs: Job, work: int) -> None:
    """Do the jobs, one stretch of each per thread.

    A thread does its stretches of all jobs one after the other and waits for nobody in between.
    ``work`` is the number of vectors touched in all: a thread that gets few is not worth waking.
    """
    available = torch.get_num_threads()
    count = max(1, min(available, work // VECTORS_PER_THREAD))

    def run(t: int) -> None:
        for function, length, args in jobs:
            function(length * t // count, length * (t + 1) // count, *args)

    others = [_threads(available, os.getpid()).submit(run, t) for t in range(1, count)]
    run(0)
    for other in others:
        other.result()


@inline
def mix(x):
    """The output function of SplitMix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inline
def below(bits, bound):
    """⌊bits · bound / 2⁶⁴⌋ for bound < 2⁶²: uniform on [0, bound) up to bound / 2⁶⁴."""
    high, low = bits >> np.uint64(32), bits & np.uint64(0xFFFFFFFF)
    if bound <= np.uint64(0xFFFFFFFF):
        return (high * bound + ((low * bound) >> np.uint64(32))) >> np.uint64(32)
    bound_high, bound_low = bound >> np.uint64(32), bound & np.uint64(0xFFFFFFFF)
    middle = high * bound_low + ((low * bound_low) >> np.uint64(32))
    carry = low * bound_high + (middle & np.uint64(0xFFFFFFFF))
    return high * bound_high + (middle >> np.uint64(32)) + (carry >> np.uint64(32))


@inline
def unit(bits):
    """A number of [0, 1) from the upper 53 bits."""
    return np.float64(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)
