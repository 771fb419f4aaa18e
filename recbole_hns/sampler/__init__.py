"""Samplers: a pool draws candidates, a rule weighs them, :class:`Negatives` is the result."""

from recbole_hns.checks import setting
from recbole_hns.sampler.make import make_sampler
from recbole_hns.sampler.method import Method
from recbole_hns.sampler.negatives import Negatives
from recbole_hns.sampler.pool import POOLS, Pool, PopularityPool, UniformPool
from recbole_hns.sampler.registry import SAMPLERS, register_sampler
from recbole_hns.sampler.rule import DNS, Rule, Softmax, SoftmaxV, Uniform
from recbole_hns.sampler.sampler import NegativeSampler

__all__ = [
    "DNS",
    "POOLS",
    "SAMPLERS",
    "Method",
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
    "register_sampler",
    "setting",
]
