"""Samplers: a pool draws candidates, a rule weighs them, :class:`Negatives` is the result."""

from recbole_hns.sampling.make import make_sampler
from recbole_hns.sampling.method import Method
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.pools import POOLS, Pool, PopularityPool, UniformPool
from recbole_hns.sampling.registry import SAMPLERS, register_sampler
from recbole_hns.sampling.rules import DNS, Rule, Softmax, SoftmaxV, Uniform
from recbole_hns.sampling.sampler import NegativeSampler
from recbole_hns.settings.checks import setting

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
