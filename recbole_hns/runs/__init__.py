"""Runs: load, split, build, check, train, test; and what becomes of them."""

import os

# Our kernels and torch take turns on the same cores. A thread of torch's OpenMP that spins when its work
# is done takes a core from the kernels, and from every other process. Heeded only if torch comes later.
os.environ.setdefault("GOMP_SPINCOUNT", "0")
