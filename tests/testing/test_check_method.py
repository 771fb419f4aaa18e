"""All methods pass; where the steps of one do not fit together it is told."""

from __future__ import annotations

import pytest
import torch

from recbole_hns.sampling import Method, all_methods, pools, rules
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.sampler import Sampler
from recbole_hns.testing import check_method


@pytest.mark.parametrize("name", list(all_methods()))
def test_a_method_of_ours_passes(name):
    check_method(all_methods()[name].method)


def sampled_by(select):
    """Uniform negatives, handed on by ``select(negatives)``."""

    class Own(Sampler):
        def select(self, users, query):
            return select(super().select(users, query))

    class Handed(rules.Uniform, frozen=True):
        """Not right."""

        @classmethod
        def sampler(cls):
            return Own

    return Method(pools.Uniform(), Handed(), N=5)


def with_(negatives, **parts):
    for name, value in parts.items():
        setattr(negatives, name, value)
    return negatives


@pytest.mark.parametrize(
    ("select", "sentence"),
    [
        (lambda n: with_(n, weights=2 * n.weights), r"a pair's weights sum to 2, and must sum to 1"),
        (
            lambda n: with_(n, weights=n.weights[:, :1]),
            r"weights, as many as ids, has the shape \(40, 1\)",
        ),
        (
            lambda n: with_(n, r_cj=torch.ones_like(n.weights)),
            r"the loss, against the plain formula: \S+ instead",
        ),
        (
            lambda n: with_(n, ell=torch.ones_like(n.weights)),
            r"the loss, against the plain formula: 1 instead of",
        ),
        (
            lambda n: with_(n, candidates=type(n.candidates)(n.ids.flip(0))),
            r"is chosen for user \d, who took it",
        ),
        (lambda n: Negatives(None, n.weights), r"fails|has no attribute"),
    ],
)
def test_negatives_that_are_not_right_are_told(select, sentence):
    with pytest.raises((AssertionError, AttributeError), match=sentence):
        check_method(sampled_by(select))


def test_what_is_no_method():
    with pytest.raises(AssertionError, match="'dns' is no Method"):
        check_method("dns")
