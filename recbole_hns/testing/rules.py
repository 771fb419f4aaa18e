"""Does a rule keep its contract?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from recbole_hns.errors import Error
from recbole_hns.kernels import Candidates
from recbole_hns.losses import BPR, Loss
from recbole_hns.sampling import pools
from recbole_hns.sampling.methods import Method
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.rules import Rule
from recbole_hns.sampling.sampler import Sampler
from recbole_hns.sampling.scored import Rows, Scored
from recbole_hns.sampling.world import World
from recbole_hns.settings.registry import find
from recbole_hns.testing.methods import check_method, check_weights
from recbole_hns.testing.parts import check_part, extremes, made
from recbole_hns.testing.say import called, failing_as, require, require_close, require_shape, unchanged
from recbole_hns.testing.worlds import BACKENDS, N_ITEMS, made_query, made_users, made_world, query_for

SIZES = (1, 2, 7, 60)


def check_rule(rule: Rule | type[Rule]) -> None:
    """Weights of at least 0 that sum to 1, whatever the scores; ``choose`` weighs as ``weigh`` does.

    A rule with a sampler of its own is checked in a method, over uniform candidates.

    Raises:
        AssertionError: with what is broken, in a sentence.
    """
    rule = made(rule, Rule)
    check_part(rule)
    _check_beta(rule)
    if rule.sampler() is not Sampler:
        check_method(Method(pools.Uniform(), rule, _loss_of(rule)))
        return
    sizes = list(_sizes(rule))
    require(sizes, f"{called(rule)}: check refuses each of N = {', '.join(map(str, SIZES))}.")
    for N in sizes:
        for backend in BACKENDS:
            _check_weights(rule, made_world(backend), N)
        _check_backends(rule, N)
        _check_even_q(rule, N)
        _check_rows(rule, N)
    for one in extremes(rule):
        for scale in (0.0, 1.0, 1e4):
            for N in _sizes(one):
                _check_scores(one, N, scale)


def _loss_of(rule: Rule) -> Loss:
    """The loss that it is defined with, or BPR."""
    return find("loss", rule.loss)() if rule.loss else BPR()


def _sizes(rule: Rule) -> Iterator[int]:
    """The numbers of candidates that the rule's settings go with."""
    for N in SIZES:
        try:
            rule.check(N)
        except Error:
            continue
        yield N


def _check_beta(rule: Rule) -> None:
    """A share of the negatives, where the rule knows it."""
    for N in (*_sizes(rule), None):
        beta = rule.beta(N)
        require(
            beta is None or 0 < beta <= 1, f"{called(rule)}: beta({N}) is {beta}, and must be in (0, 1]."
        )


def scored(rule: Rule, world: World, N: int, scale: float = 1.0, with_q: bool = False) -> Scored:
    """N candidates of each pair; vectors only for a rule that says it needs them."""
    users = made_users()
    pool = pools.Popularity() if with_q else pools.Uniform()
    candidates = pool.open(world).draw(users, N)
    if rule.needs_vectors:
        return Scored(made_query(world, users, scale, grad=True), candidates, _loss_of(rule))
    if scale == 1:
        return Scored(query_for(world, users, ""), candidates, _loss_of(rule))
    return Scored(made_query(world, users, scale), candidates, _loss_of(rule))


def _check_weights(rule: Rule, world: World, N: int) -> None:
    """``weigh`` and ``choose``, with and without a q."""
    what = f"{called(rule)} (N={N}, hns_backend={world.backend.name})"
    for with_q in (False, True):
        s = scored(rule, world, N, with_q=with_q)
        seen = {"r_cj": s.r_cj, "ell": s.ell, "ids": s.candidates.ids}
        with failing_as(f"{what}: weigh"), torch.no_grad():
            weights: torch.Tensor = unchanged(seen, f"{what}: weigh", partial(rule.weigh, s))
        require_shape(weights, tuple(s.shape), f"{what}: weights")
        check_weights(weights, rule.sums_to_one, what)
        with failing_as(f"{what}: choose"), torch.no_grad():
            negatives: Negatives = unchanged(seen, f"{what}: choose", partial(rule.choose, s))
        _check_choice(rule, s, weights, negatives, what)
    _check_no_gradient(rule, world, N, what)


def _check_choice(rule: Rule, s: Scored, weights: torch.Tensor, negatives: Negatives, what: str) -> None:
    """What is chosen is among the candidates, weighs what ``weigh`` says, and has its own scores."""
    keeps = (len(s.candidates.ids), rule.keeps(s.shape[1]))
    require_shape(negatives.ids, keeps, f"{what}: choose's ids, as many as keeps says,")
    require_shape(negatives.weights, keeps, f"{what}: choose's weights, as many as ids,")
    check_weights(negatives.weights, rule.sums_to_one, f"{what}: choose")
    among = (negatives.ids[:, :, None] == s.candidates.ids[:, None, :]).any(dim=2)
    require(among.all(), f"{what}: choose takes {int((~among).sum())} items that are no candidates.")
    require_close(
        _by_item(negatives.ids, negatives.weights),
        _by_item(s.candidates.ids, weights),
        f"{what}: the weight of an item in choose, against weigh",
    )
    for name, known in (("r_cj", negatives.r_cj), ("ell", negatives.ell)):
        if known is None:
            continue
        r_cj = s.query.score(Candidates(negatives.ids))
        right = r_cj if name == "r_cj" else s.loss.ell(s.r_ci, r_cj)
        require_close(known, right, f"{what}: the {name} that choose hands on")


def _by_item(ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The weight of each item in each pair: an item may be drawn twice."""
    return torch.zeros(len(ids), N_ITEMS).scatter_add(1, ids.long(), weights.float())


def _check_no_gradient(rule: Rule, world: World, N: int, what: str) -> None:
    """Not even where the vectors would give one."""
    users = made_users()
    candidates = pools.Uniform().open(world).draw(users, N)
    with torch.no_grad():
        negatives = rule.choose(Scored(made_query(world, users, grad=True), candidates, _loss_of(rule)))
    require(not negatives.weights.requires_grad, f"{what}: weights have a gradient, and must have none.")


def _check_backends(rule: Rule, N: int) -> None:
    """The same candidates weigh the same in both."""
    ids = pools.Uniform().open(made_world()).draw(made_users(), N).ids
    found = []
    for backend in BACKENDS:
        query = made_query(made_world(backend), made_users())
        with torch.no_grad():
            negatives = rule.choose(Scored(query, Candidates(ids), _loss_of(rule)))
        found.append(_by_item(negatives.ids, negatives.weights))
    require_close(found[1], found[0], f"{called(rule)} (N={N}): an item's weight by torch, not numba")


def _check_even_q(rule: Rule, N: int) -> None:
    """A pool that draws evenly tells no q: None and the same number for all are one."""
    s = scored(rule, made_world(), N)
    told = Candidates(s.candidates.ids, log_q=torch.full(tuple(s.shape), -3.0))
    with failing_as(f"{called(rule)}: weigh"), torch.no_grad():
        plain, even = rule.weigh(s), rule.weigh(Scored(s.query, told, s.loss))
    require_close(even, plain, f"{called(rule)} (N={N}): weights with an even log_q, against None")


def _check_rows(rule: Rule, N: int) -> None:
    """Rows of scores without ids, as pool=all has them, weigh the same."""
    if rule.needs & {"ids", "line", "blocks"}:
        return
    s = scored(rule, made_world(), N)
    with failing_as(
        f"{called(rule)}: weigh of scores without ids (declare needs = {{'ids'}} if it must have them)"
    ):
        rows = rule.weigh(Rows(s.r_ci, s.r_cj.clone(), s.loss))
    require_close(rows, rule.weigh(s), f"{called(rule)} (N={N}): weights of the same scores without ids")


def _check_scores(rule: Rule, N: int, scale: float) -> None:
    """Equal scores, ordinary ones and scores of thousands."""
    s = scored(rule, made_world(), N, scale)
    what = f"{called(rule)} with {rule.settings} (N={N}, scores up to {float(s.r_cj.abs().max()):.3g})"
    with failing_as(f"{what}: choose"), torch.no_grad():
        check_weights(rule.choose(s).weights, rule.sums_to_one, what)
