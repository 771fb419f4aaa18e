"""Every pool with every rule and every loss: two steps against the formulas, or a sentence why not."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.sparse import csr_matrix

from recbole_hns import DotQuery, Error, Loss, Method, World, losses, pools, rules, step

N_USERS, N_ITEMS, D, N, RATE = 6, 18, 4, 8, 0.5
USERS = torch.tensor([0, 3, 3, 5, 1, 0])
ITEMS = torch.tensor([1, 0, 2, 4, 7, 3])


class Square(Loss, frozen=True):
    """Σ_j p_cij max(0, 1 − r_ci + r_cj)²: a loss of one's own, by autograd."""

    def pair(self, r_ci, r_cj, p, log_q):
        return (p * (1 - r_ci[:, None] + r_cj).clamp(min=0) ** 2).sum(dim=1)


POOLS = [
    pools.Uniform(),
    pools.Popularity(alpha=0.5),
    pools.AdaSIR(pool_size=12, proposals=30),
    pools.PopularAdaSIR(pool_size=12, proposals=30),
    pools.AOBPR(lam=5.0),
    pools.Kernel(kernel_alpha=3.0),
    pools.Everything(),
]
RULES = [
    rules.Uniform(),
    rules.DNS(M=3),
    rules.Softmax(tau=0.7),
    rules.SoftmaxV(rho=0.8),
    rules.IRGAN(generator_size=4),
    rules.WARP(max_trials=20),
]
LOSSES = [
    losses.BPR(),
    losses.BCE(),
    losses.Hinge(margin=0.5),
    losses.SampledSoftmax(),
    losses.InfoNCE(temperature=0.6),
    Square(),
]
EVERY = list(product(POOLS, RULES, LOSSES))


def why_not(pool, rule, loss) -> str:
    """What the mathematics says, part by part; empty if they go together."""
    if isinstance(rule, rules.WARP) and not isinstance(pool, (pools.Uniform, pools.Popularity)):
        return "one by one"  # only fixed weights let one draw until something is found
    if isinstance(rule, rules.IRGAN) and isinstance(pool, pools.Everything):
        return "no list"
    if isinstance(rule, rules.WARP) and not isinstance(loss, losses.Hinge):
        return "its own loss"
    known = isinstance(pool, (pools.Uniform, pools.Popularity, pools.Kernel, pools.Everything))
    if isinstance(loss, losses.SampledSoftmax) and (isinstance(rule, rules.IRGAN) or not known):
        return "no q"
    return ""


ALLOWED = [parts for parts in EVERY if not why_not(*parts)]


def test_none_has_vanished():
    """7 pools × 6 rules × 6 losses: every class that there is, and how many go together."""
    from recbole_hns.settings.registry import table

    for kind, parts in (("pool", POOLS), ("rule", RULES), ("loss", LOSSES)):
        ours = {one for one in table(kind).values() if one.__module__.startswith("recbole_hns.")}
        assert ours == {type(part) for part in parts} - {Square}
    assert len(EVERY) == 252
    assert Counter(why_not(*parts) for parts in EVERY) == {
        "": 188,
        "one by one": 30,
        "no list": 6,
        "its own loss": 10,
        "no q": 18,
    }


SENTENCES = {
    "one by one": "pool={pool} does not go with warp, which draws candidates one by one: {pool} cannot draw "
    "one by one; use pool=uniform.",
    "no list": "pool=all does not go with irgan, which draws one of the candidates: all has no list of "
    "candidates; use pool=uniform.",
    "its own loss": "pair_loss={loss} is not allowed: warp is defined with pair_loss=hinge; leave it out, or "
    "use another sampler.",
    "no q": "pair_loss=softmax corrects for how often an item is drawn, which {rule} over pool={pool} does "
    "not know of what it draws: use pair_loss=infonce, or another sampler.",
}


def test_what_does_not_go_together_is_refused_in_a_sentence():
    from recbole_hns.settings.registry import name_of

    refused = 0
    for pool, rule, loss in EVERY:
        if not why_not(pool, rule, loss):
            Method(pool, rule, loss, N=N)
            continue
        names = {"pool": name_of(pool), "rule": name_of(rule), "loss": name_of(loss)}
        with pytest.raises(Error) as error:
            Method(pool, rule, loss, N=N)
        assert str(error.value) == SENTENCES[why_not(pool, rule, loss)].format(**names)
        refused += 1
    assert refused == 64


# ----------------------------------------------------------------------------------- slow formulas


def taken() -> np.ndarray:
    """Who took what, (N_USERS, N_ITEMS)."""
    matrix = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.2
    matrix[USERS, ITEMS] = True
    return matrix


def q_of(pool, user: int, context: np.ndarray, items: np.ndarray) -> np.ndarray | None:
    """How probable each item is for a user, (N_ITEMS,); None where nobody knows."""
    if isinstance(pool, (pools.AdaSIR, pools.AOBPR)):
        return None
    weights = np.ones(N_ITEMS)
    if isinstance(pool, pools.Popularity):
        weights = taken().sum(axis=0) ** 0.5
    if isinstance(pool, pools.Kernel):
        weights = 3.0 * (items @ context[user]) ** 2 + 1
    weights = np.where(taken()[user], 0, weights)
    return weights / weights.sum()


def ell(loss, r_ci: float, r_cj: np.ndarray) -> np.ndarray:
    """The loss of the positive with each negative alone."""
    v = r_cj - r_ci
    if isinstance(loss, losses.BCE):
        return np.log1p(np.exp(-r_ci)) + np.log1p(np.exp(r_cj))
    if isinstance(loss, losses.Hinge):
        return np.maximum(0, 0.5 + v)
    if isinstance(loss, Square):
        return np.maximum(0, 1 + v) ** 2
    return np.log1p(np.exp(v / 0.6 if isinstance(loss, losses.InfoNCE) else v))


def weights_of(rule, pool, loss, r_ci: float, r_cj: np.ndarray, q: np.ndarray | None) -> np.ndarray:
    """p of a pair's candidates, by Algorithms 1 and 2 and equation 3."""
    if isinstance(rule, rules.Uniform):
        return np.full(len(r_cj), 1 / len(r_cj))
    if isinstance(rule, rules.DNS):
        p = np.zeros(len(r_cj))
        p[np.argsort(-r_cj)[:3]] = 1 / 3
        return p
    if isinstance(rule, rules.Softmax):
        logits = r_cj / 0.7 - (0 if q is None else np.log(q))
    else:
        L = ell(loss, r_ci, r_cj)
        spread = L.std()
        logits = L / (spread / math.sqrt(2 * 0.8)) if spread > 1e-9 else np.zeros(len(L))
    p = np.exp(logits - logits.max())
    return p / p.sum()


def pair_loss(loss, r_ci, r_cj, p, q, n):
    """The loss of one pair, as torch sees it; n negatives are at hand."""
    v = r_cj - r_ci
    if isinstance(loss, losses.BPR):
        return (p * F.softplus(v)).sum()
    if isinstance(loss, losses.BCE):
        return (p * (F.softplus(r_cj) + F.softplus(-r_ci))).sum()
    if isinstance(loss, losses.Hinge):
        return (p * (0.5 + v).clamp(min=0)).sum()
    if isinstance(loss, Square):
        return (p * (1 + v).clamp(min=0) ** 2).sum()
    if isinstance(loss, losses.InfoNCE):
        return torch.log(1 + n * (p * torch.exp(v / 0.6)).sum())
    return torch.log(1 + (p / q * torch.exp(v)).sum())


def tables() -> tuple[torch.Tensor, torch.Tensor]:
    """The vectors to begin with."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(N_USERS, D, generator=generator), torch.randn(N_ITEMS, D, generator=generator)


class Slow:
    """Plain gradient descent on the formulas, pair by pair, with 64 bits."""

    def __init__(self):
        self.context, self.items = (table.double().requires_grad_() for table in tables())

    def step(self, pool, rule, loss, ids, weights) -> float:
        """One step over each pair's candidates; ``weights`` where the formulas do not make them."""
        total = torch.zeros((), dtype=torch.float64)
        for b, user in enumerate(USERS.tolist()):
            j = np.asarray(ids[b])
            r_ci = self.items[ITEMS[b]] @ self.context[user]
            r_cj = self.items[j] @ self.context[user]
            q = q_of(pool, user, self.context.detach().numpy(), self.items.detach().numpy())
            q = None if q is None else q[j]
            if weights is None:
                p = weights_of(rule, pool, loss, r_ci.item(), r_cj.detach().numpy(), q)
            else:
                p = weights[b].double().numpy()
            told = None if q is None else torch.from_numpy(q)
            n = 3 if isinstance(rule, rules.DNS) else len(p)
            total = total + pair_loss(loss, r_ci, r_cj, torch.from_numpy(p), told, n)
        mean = total / len(USERS)
        gradients = torch.autograd.grad(mean, (self.context, self.items))
        with torch.no_grad():
            self.context -= RATE * gradients[0]
            self.items -= RATE * gradients[1]
        return mean.item()


class Recorder:
    """What a source has drawn last."""

    def __init__(self, source):
        self.drawing, self.last = source.draw, None
        source.draw = self.draw

    def draw(self, *args):
        self.last = self.drawing(*args)
        return self.last


def candidates_of(method, recorder, negatives):
    """Ids, and weights where they are drawn themselves: by WARP's trials or IRGAN's generator."""
    if isinstance(method.pool, pools.Everything):
        return [np.flatnonzero(~taken()[user]) for user in USERS.tolist()], None
    if isinstance(method.rule, (rules.WARP, rules.IRGAN)):
        return negatives.ids.numpy(), negatives.weights
    return recorder.last.ids.numpy(), None


def check_own_weights(rule, weights):
    """1 for IRGAN; for WARP Φ(⌊n₋/t⌋) of some t, or 0."""
    if isinstance(rule, rules.IRGAN):
        assert (weights == 1).all()
        return
    for user, weight in zip(USERS.tolist(), weights[:, 0].tolist()):
        n = int((~taken()[user]).sum())
        known = [sum(1 / k for k in range(1, n // t + 1)) for t in range(1, 21)]
        assert min(abs(weight - value) for value in [0, *known]) < 1e-5


@pytest.mark.parametrize(
    ("pool", "rule", "loss"),
    ALLOWED,
    ids=["-".join(type(part).__name__ for part in parts) for parts in ALLOWED],
)
def test_two_steps_are_those_of_the_formulas(pool, rule, loss, backend):
    """Each step's loss, and after the second one both tables."""
    method = Method(pool, rule, loss, N=N)
    world = World(csr_matrix(taken()), hns_backend=backend, seed=2)
    sampler = method.open(world)
    recorder, slow = Recorder(sampler.source), Slow()
    context, items = (table.requires_grad_() for table in tables())
    optimizer = torch.optim.SGD([context, items], lr=RATE)
    for _ in range(2):
        query = DotQuery(context, items, ITEMS, USERS, world.backend)
        negatives = sampler.select(USERS, query)
        value = negatives.loss(query, loss)
        ids, weights = candidates_of(method, recorder, negatives)
        assert not any(taken()[user, row].any() for user, row in zip(USERS.tolist(), ids))
        if weights is not None:
            check_own_weights(rule, weights)
        elif recorder.last is not None:  # the same in a loop of one's own
            drawn = recorder.last
            log_q = sampler.source.log_q(USERS, drawn, drawn) if "q" in loss.needs else None
            again = DotQuery(context, items, ITEMS, USERS, world.backend)
            assert torch.equal(step(again, drawn, rule, loss, log_q), value)
        assert value.item() == pytest.approx(slow.step(pool, rule, loss, ids, weights), rel=1e-4)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    torch.testing.assert_close(context.double(), slow.context, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(items.double(), slow.items, rtol=1e-3, atol=1e-4)
