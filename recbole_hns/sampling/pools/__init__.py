"""Pools: where candidates come from."""

from recbole_hns.sampling.pools.adasir import AdaSIR, PopularAdaSIR
from recbole_hns.sampling.pools.aobpr import AOBPR
from recbole_hns.sampling.pools.base import Pool, Source
from recbole_hns.sampling.pools.everything import Everything
from recbole_hns.sampling.pools.kernel import Kernel
from recbole_hns.sampling.pools.line import LinePool, LineSource
from recbole_hns.sampling.pools.popularity import Popularity
from recbole_hns.sampling.pools.uniform import Uniform

__all__ = [
    "AOBPR",
    "AdaSIR",
    "Everything",
    "Kernel",
    "LinePool",
    "LineSource",
    "Pool",
    "PopularAdaSIR",
    "Popularity",
    "Source",
    "Uniform",
]
