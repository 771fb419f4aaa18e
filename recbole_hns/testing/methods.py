"""Does a method, which is a pool, a rule and a loss together, keep its contract?"""

from __future__ import annotations

import copy
from typing import Any

import torch

from recbole_hns.losses import Loss
from recbole_hns.sampling.methods import Method
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.query import DotQuery
from recbole_hns.sampling.sampler import Sampler
from recbole_hns.sampling.scored import Rows
from recbole_hns.sampling.world import World
from recbole_hns.settings.registry import name_of
from recbole_hns.testing.parts import check_part
from recbole_hns.testing.say import failing_as, require, require_close, require_finite, require_shape
from recbole_hns.testing.worlds import (
    BACKENDS,
    made_query,
    made_users,
    made_world,
    made_worlds,
    negatives_of,
)


def check_method(method: Method) -> None:
    """Weighted negatives of each pair, the same for the same seed, and the loss with its gradient.

    The value and the gradient of a step are compared with autograd of Σ_j p_cij ℓ(r_ci, r_cj) over dot
    products.

    Raises:
        AssertionError: with what is broken, in a sentence.
    """
    require(isinstance(method, Method), f"{method!r} is no Method.")
    for part in (method.pool, method.rule, method.loss):
        check_part(part)
    what = _called(method)
    for world, where in made_worlds():
        if "ids" in method.pool.gives:
            _check_step(method, world, f"{what} ({where})")
        else:
            check_negatives_of_all(method, world, f"{what} ({where})")
    for backend in BACKENDS if "ids" in method.pool.gives else ():
        check_sampler_state(method, backend, what)


def _called(method: Method) -> str:
    return f"{name_of(method.rule)} over pool {name_of(method.pool)} with loss {name_of(method.loss)}"


def select(sampler: Sampler, users: torch.Tensor, query: DotQuery, what: str) -> Any:
    """The negatives of a batch."""
    with failing_as(f"{what}: select"), torch.no_grad():
        return sampler.select(users, query)


def check_negatives(negatives: Negatives, users: torch.Tensor, world: World, what: str) -> None:
    """Items that the users did not take, with weights."""
    B, n = len(users), negatives.ids.shape[-1]
    require_shape(negatives.ids, (B, n), f"{what}: ids")
    for user, row in zip(users.tolist(), negatives.ids.tolist(), strict=True):
        wrong = sorted(set(row) - set(negatives_of(world, user).tolist()))
        require(
            not wrong,
            f"{what}: item {wrong[:1]} is chosen for user {user}, who took it, or there is none.",
        )
    require_shape(negatives.weights, (B, n), f"{what}: weights, as many as ids,")


def check_weights(weights: torch.Tensor, sums_to_one: bool, what: str) -> None:
    """Not negative, no gradient, and 1 in sum unless the rule has declared otherwise."""
    require(
        not weights.requires_grad,
        f"{what}: weights have a gradient, and must have none: detach the scores.",
    )
    require_finite(weights, f"{what}: weights")
    require(
        float(weights.min()) >= 0,
        f"{what}: a weight is {float(weights.min()):.4g}, and none may be below 0.",
    )
    if not sums_to_one:
        return
    sums = weights.double().sum(dim=1)
    worst = float(sums[(sums - 1).abs().argmax()])
    require(
        abs(worst - 1) < 1e-4,
        f"{what}: a pair's weights sum to {worst:.4g}, and must sum to 1 unless sums_to_one is False.",
    )


def _check_step(method: Method, world: World, what: str) -> None:
    """The negatives of a batch, and the loss's value and gradient."""
    users = made_users()
    query = made_query(world, users, grad=True)
    negatives = select(method.open(world), users, query, what)
    check_negatives(negatives, users, world, what)
    check_weights(negatives.weights, method.rule.sums_to_one, what)
    known = "q" not in method.loss.needs or negatives.log_q is not None
    require(known, f"{what}: the loss needs q, and the negatives have no log_q.")
    with failing_as(f"{what}: loss"):
        found = _with_gradients(query, negatives.loss(query, method.loss))
    slow = listed_loss(query, negatives.ids.long(), negatives.weights, negatives.log_q, method.loss)
    _compare(found, _with_gradients(query, slow), what)


def listed_loss(
    query: DotQuery, ids: torch.Tensor, weights: torch.Tensor, log_q: torch.Tensor | None, loss: Loss
) -> torch.Tensor:
    """The mean loss by the plain formula: vectors gathered, multiplied and summed."""
    v, positives = query.vectors, query.positives.ids[:, 0].long()
    c = v.context[v.rows]
    r_ci, r_cj = (c * v.items[positives]).sum(dim=1), (c[:, None] * v.items[ids]).sum(dim=2)
    return loss.pair(r_ci, r_cj, weights, log_q).mean()


def check_negatives_of_all(method: Method, world: World, what: str) -> None:
    """All negatives of each pair: where the weights fall, the loss's value and its gradient."""
    users = made_users()
    query = made_query(world, users, grad=True)
    negatives = select(method.open(world), users, query, what)
    mass, total = torch.zeros(world.n_items), torch.zeros(())
    for b, user in enumerate(users.tolist()):
        one, j = query.at(torch.tensor([b])), torch.from_numpy(negatives_of(world, user))
        with torch.no_grad():
            r_cj = (one.vectors.items[j] @ one.vectors.context[user])[None]
            p = method.rule.weigh(Rows(one.r_ci, r_cj, method.loss))
        check_weights(p, method.rule.sums_to_one, what)
        mass.index_add_(0, j, p[0])
        log_q = torch.full((1, 1), 1 / len(j)).log()
        p, kept = p.topk(method.rule.keeps(len(j)), dim=1)
        j = j[kept[0]]
        total = total + listed_loss(one, j[None], p, log_q, method.loss)
    require_close(negatives.mass(world.n_items), mass, f"{what}: the weight that falls on the items")
    with failing_as(f"{what}: loss"):
        found = _with_gradients(query, negatives.loss(query, method.loss))
    _compare(found, _with_gradients(query, total / len(users)), what)


def _with_gradients(query: DotQuery, value: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The value, and its gradients by both tables; its factor of 3 must reach them."""
    tables = query.vectors.context, query.vectors.items
    return (value, *torch.autograd.grad(3 * value, tables))


def _compare(found: tuple[torch.Tensor, ...], slow: tuple[torch.Tensor, ...], what: str) -> None:
    names = ("the loss", "its gradient by the contexts", "its gradient by the items")
    for name, ours, theirs in zip(names, found, slow, strict=True):
        require_close(ours, theirs, f"{what}: {name}, against the plain formula")


def check_sampler_state(method: Method, backend: str, what: str) -> None:
    """The same seed chooses the same; so does one that goes on from a state."""
    users, chosen = made_users(), []
    for _ in range(2):
        world = made_world(backend)
        sampler, query = method.open(world), made_query(world, users)
        sampler.start_epoch(1)
        first = select(sampler, users, query, what)
        state, at = copy.deepcopy(sampler.state_dict()), world.generator.get_state()
        chosen.append((first, select(sampler, users, query, what)))
    for one, other in zip(*chosen, strict=True):
        differ = int((one.ids != other.ids).sum()) + int((one.weights != other.weights).sum())
        require(
            differ == 0,
            f"{what}: with the same seed {differ} negatives differ: draw by the sampler's generator.",
        )
    world = made_world(backend)
    sampler = method.open(world)
    sampler.start_epoch(1)
    with failing_as(f"{what}: load_state_dict"):
        sampler.load_state_dict(state)
    world.generator.set_state(at)
    resumed = select(sampler, users, made_query(world, users), what)
    differ = int((resumed.ids != chosen[1][1].ids).sum())
    require(differ == 0, f"{what}: resumed from its state_dict it chooses {differ} negatives otherwise.")
