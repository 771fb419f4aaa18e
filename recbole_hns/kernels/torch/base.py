"""What the torch kernels have in common: they work in chunks."""

from __future__ import annotations

from collections.abc import Iterator

# A tensor that is gathered for a chunk, as (rows, N, d), stays below this many numbers.
CHUNK_NUMBERS = 1 << 23


def chunks(length: int, numbers: int, most: int = CHUNK_NUMBERS) -> Iterator[slice]:
    """Stretches of ``length`` rows that need so many numbers each, ``most`` at a time."""
    step = max(1, most // numbers)
    for first in range(0, length, step):
        yield slice(first, first + step)
