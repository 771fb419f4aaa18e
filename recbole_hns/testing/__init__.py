"""A conformance suite: does a part of your own keep its contract?

In a test of yours: ``check_rule(Temperate(heat=0.5))``. What is broken is told by an ``AssertionError`` in
one sentence, with the numbers. A check takes seconds at most; only :func:`check_scorer` imports RecBole.
"""

from recbole_hns.testing.losses import check_loss
from recbole_hns.testing.methods import check_method
from recbole_hns.testing.pools import check_pool
from recbole_hns.testing.rules import check_rule
from recbole_hns.testing.scorers import check_scorer

__all__ = ["check_loss", "check_method", "check_pool", "check_rule", "check_scorer"]
