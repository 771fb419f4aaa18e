"""Samplers: a pool draws candidates, a rule weighs them, :class:`Negatives` is the result."""

from recbole_hns.sampler.negatives import Negatives
from recbole_hns.sampler.pool import POOLS, Pool, PopularityPool, UniformPool
from recbole_hns.sampler.rule import DNS, Rule, Softmax, SoftmaxV, Uniform
from recbole_hns.sampler.sampler import NegativeSampler, make_sampler

__all__ = [
    "DNS",
    "POOLS",
    "NegativeSampler",
    "Negatives",
    "Pool",
    "PopularityPool",
    "Rule",
    "Softmax",
    "SoftmaxV",
    "Uniform",
    "UniformPool",
    "make_sampler",
]
