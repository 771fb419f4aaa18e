"""Sampling: a pool draws candidates, a rule weighs them, :class:`Negatives` is the result.

All of it works in any PyTorch loop; nothing here imports RecBole.
"""

from recbole_hns.sampling import pools, rules
from recbole_hns.sampling.methods import Method, Named, all_methods, named
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.pools import Pool, Source
from recbole_hns.sampling.positives import Positives
from recbole_hns.sampling.query import DotQuery, Query
from recbole_hns.sampling.rules import Rule
from recbole_hns.sampling.sampler import Sampler
from recbole_hns.sampling.scored import Scored
from recbole_hns.sampling.step import step
from recbole_hns.sampling.world import World

__all__ = [
    "DotQuery",
    "Method",
    "Named",
    "Negatives",
    "Pool",
    "Positives",
    "Query",
    "Rule",
    "Sampler",
    "Scored",
    "Source",
    "World",
    "all_methods",
    "named",
    "pools",
    "rules",
    "step",
]
