"""The few functions that cost time, twice: :mod:`.numba` and :mod:`.torch`, which is for any device.

Both keep the contract of :class:`~.contract.Backend`, and one test suite runs over both. Candidates
that blocks of pairs share are scored by matrix products, in :mod:`.blocks`, for both.
"""

from recbole_hns.kernels.choice import BACKENDS, get_kernels
from recbole_hns.kernels.contract import Backend, Part, RowGradient
from recbole_hns.kernels.line import Line
from recbole_hns.kernels.tree import KernelTree, build_tree
from recbole_hns.kernels.types import Candidates, SharedCandidates, Vectors

# No `import torch` in this file: the subpackage of that name would take its place.
__all__ = [
    "BACKENDS",
    "Backend",
    "Candidates",
    "KernelTree",
    "Line",
    "Part",
    "RowGradient",
    "SharedCandidates",
    "Vectors",
    "build_tree",
    "get_kernels",
]
