"""Our own rules pass; a broken one is caught by the sentence that says what is broken."""

from __future__ import annotations

from typing import Annotated, ClassVar

import pytest
import torch

from recbole_hns.kernels import Candidates
from recbole_hns.sampling import rules
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.rules import Rule
from recbole_hns.sampling.sampler import Sampler
from recbole_hns.settings import Positive, setting
from recbole_hns.settings.registry import table
from recbole_hns.testing import check_rule


@pytest.mark.parametrize("rule", table("rule").values(), ids=list(table("rule")))
def test_our_own_rule_passes(rule):
    check_rule(rule)


@pytest.mark.parametrize(
    "rule",
    [
        *(rules.DNS(M=M) for M in (1, 7)),
        *(rules.Softmax(tau=tau) for tau in (1e-30, 0.1, 1e30)),
        *(rules.SoftmaxV(rho=rho) for rho in (1e-30, 3.0, 50.0)),
    ],
    ids=str,
)
def test_with_other_settings(rule):
    check_rule(rule)


def even(s):
    return torch.full(tuple(s.shape), 1 / s.shape[1])


def with_weights(weigh, choose=None, **declared):
    """A rule that weighs, and may choose, in the given way."""

    class Broken(Rule, frozen=True):
        """Not right."""

        needs_vectors: ClassVar[str] = declared.get("needs_vectors", "")

        def weigh(self, s):
            return weigh(s)

        def choose(self, s):
            return super().choose(s) if choose is None else choose(s)

        def beta(self, N):
            return declared.get("beta")

    return Broken()


def overwriting(s):
    return s.ell.sub_(s.ell.amax(1, keepdim=True)).softmax(1)


def with_a_gradient(s):
    with torch.enable_grad():
        v = s.query.vectors
        return (v.context[v.rows][:, None] * v.items[s.candidates.ids.long()]).sum(2).softmax(1)


def by_ids(s):
    return s.candidates.ids.float().softmax(1)


def by_q(s):
    """log q in the place of nothing: an even one counts."""
    raised = torch.zeros(tuple(s.shape)) if s.log_q is None else s.log_q * torch.arange(s.shape[1])
    return raised.softmax(1)


def the_first(s):
    """Chooses what weigh does not."""
    return Negatives(Candidates(s.candidates.ids[:, :1]), torch.ones(len(s.candidates.ids), 1))


def on_the_first(s):
    """All of the weight on one, which weigh does not say."""
    return Negatives(s.candidates, torch.zeros(tuple(s.shape)).index_fill(1, torch.tensor([0]), 1.0))


def with_old_scores(s):
    """The scores of the candidates in the order in which they were drawn, not chosen."""
    return Negatives(Candidates(s.candidates.ids.flip(1)), even(s), s.r_cj)


def with_others(s):
    return Negatives(Candidates((s.candidates.ids + 1) % 24), even(s))


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (with_weights(lambda s: 2 * even(s)), r"a pair's weights sum to 2, and must sum to 1"),
        (
            with_weights(lambda s: even(s)[:, :1]),
            r"N=2.*: weights has the shape \(40, 1\), and must have \(40, 2\)",
        ),
        (
            with_weights(lambda s: s.r_cj / s.r_cj.sum(1, keepdim=True)),
            r"a weight is -\d.*, and none may be below",
        ),
        (with_weights(lambda s: s.r_cj.exp() / s.r_cj.exp().sum(1, keepdim=True)), r"1 of|not finite"),
        (with_weights(overwriting), r"weigh overwrites ell, which others read after it\."),
        (
            with_weights(with_a_gradient, needs_vectors="yes"),
            r"weights have a gradient, and must have none",
        ),
        (
            with_weights(with_a_gradient),
            r"weigh fails: AttributeError: 'ScoresOnly' object has no .*'vectors'",
        ),
        (
            with_weights(by_ids),
            r"weigh of scores without ids \(declare needs = \{'ids'\} if it must have them\)",
        ),
        (with_weights(by_q), r"N=2\): weights with an even log_q, against None: 0\.\d+ instead of 0\.5"),
        (with_weights(even, the_first), r"choose's ids, as many as keeps says, has the shape \(40, 1\)"),
        (
            with_weights(even, on_the_first),
            r"the weight of an item in choose, against weigh: \S+ instead of",
        ),
        (with_weights(even, with_old_scores), r"the r_cj that choose hands on: \S+ instead of"),
        (with_weights(even, with_others), r"choose takes \d+ items that are no candidates"),
        (with_weights(even, beta=1.5), r"beta\(1\) is 1\.5, and must be in \(0, 1\]"),
    ],
)
def test_a_broken_rule_is_told(rule, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_rule(rule)


def test_a_setting_that_overflows_where_it_is_allowed():
    class Sharp(Rule, frozen=True):
        """exp without the greatest taken off."""

        heat: Annotated[Positive, setting("the temperature")] = 10.0

        def weigh(self, s):
            raised = (s.ell / self.heat).clamp(max=1e4).exp()
            return raised / raised.sum(1, keepdim=True)

    with pytest.raises(AssertionError, match=r"with \{'heat': .*not finite"):
        check_rule(Sharp)


def test_a_sampler_that_draws_by_torchs_generator():
    class Careless(Sampler):
        def select(self, users, query):
            negatives = super().select(users, query)
            place = torch.multinomial(negatives.weights, 1)
            return Negatives(Candidates(negatives.ids.gather(1, place)), torch.ones(len(users), 1))

    class One(rules.Softmax, frozen=True):
        """One candidate, drawn."""

        @classmethod
        def sampler(cls):
            return Careless

    with pytest.raises(
        AssertionError, match=r"with the same seed \d+ negatives differ: draw by the sampler's gen"
    ):
        check_rule(One)


def test_a_sampler_that_forgets():
    class Learning(Sampler):
        steps = 0

        def select(self, users, query):
            self.steps += 1
            negatives = super().select(users, query)
            column = torch.full((len(users), 1), self.steps)
            return Negatives(Candidates(negatives.ids.gather(1, column)), torch.ones(len(users), 1))

    class Next(rules.Uniform, frozen=True):
        """The first candidate, then the second, ..."""

        @classmethod
        def sampler(cls):
            return Learning

    with pytest.raises(
        AssertionError, match=r"resumed from its state_dict it chooses \d+ negatives otherwise"
    ):
        check_rule(Next)


def test_no_rule_without_settings_of_its_own():
    class Must(Rule, frozen=True):
        """Has no default."""

        heat: Annotated[Positive, setting("the temperature")]

    with pytest.raises(AssertionError, match="Must has settings without a default: check an object"):
        check_rule(Must)
