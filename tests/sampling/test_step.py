"""A training step in a loop of one's own, against the formula and autograd."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.sparse import csr_matrix

from recbole_hns import DotQuery, Error, World, losses, pools, rules, step

USERS = torch.tensor([0, 3, 3, 5])
POSITIVES = torch.tensor([1, 0, 2, 4])


@pytest.fixture
def world(backend):
    rng = np.random.default_rng(0)
    matrix = rng.random((6, 25)) < 0.2
    matrix[USERS, POSITIVES] = True
    return World(csr_matrix(matrix), hns_backend=backend, seed=4)


def drawn_negatives(world, candidates):
    """Every candidate is an item that its user did not take."""
    return all(
        not set(row) & world.positives[user]
        for user, row in zip(USERS.tolist(), candidates.ids.tolist())
    )


@pytest.mark.parametrize("rule", [rules.Uniform(), rules.DNS(M=2), rules.Softmax(tau=0.3)], ids=str)
@pytest.mark.parametrize("block", [1, 4])
def test_the_loss_and_gradient_of_a_step_are_the_formulas(world, rule, block, generator):
    """1/|B| Σ_b Σ_j p_bj log(1 + e^(r_cj − r_ci)), the weights p constants."""
    users = torch.randn(6, 3, generator=generator, requires_grad=True)
    items = torch.randn(25, 3, generator=generator, requires_grad=True)
    source = pools.Uniform().open(world, block)
    candidates = source.draw(USERS, 10)
    assert drawn_negatives(world, candidates)
    query = DotQuery(users[USERS], items, POSITIVES, backend=world.backend)
    loss = step(query, candidates, rule, losses.BPR())
    loss.backward()
    ours = users.grad.clone(), items.grad.clone()
    users.grad = items.grad = None

    c, j = users[USERS], candidates.ids.long()
    r_ci, r_cj = (c * items[POSITIVES]).sum(1), (c[:, None] * items[j]).sum(2)
    p = torch.full_like(r_cj, 0.1).detach()
    if isinstance(rule, rules.DNS):
        p = torch.zeros_like(r_cj).scatter_(1, r_cj.topk(2, dim=1).indices, 0.5)
    elif isinstance(rule, rules.Softmax):
        p = torch.softmax(r_cj / 0.3, dim=1).detach()
    expected = (p * F.softplus(r_cj - r_ci[:, None])).sum(dim=1).mean()
    expected.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours, (users.grad, items.grad), rtol=1e-4, atol=1e-6)


def test_a_tower_behind_the_vectors_learns_to_rank_its_positives_first(world):
    """Twenty-five items, six users, towers of one layer: every positive ends above every negative."""
    torch.manual_seed(1)
    tower, items = torch.nn.Linear(6, 8), torch.nn.Embedding(25, 8)
    optimizer = torch.optim.Adam([*tower.parameters(), *items.parameters()], lr=0.05)
    source, loss = pools.Uniform().open(world), losses.BPR()
    users = torch.arange(6).repeat_interleave(torch.from_numpy(world.positives.counts))
    positives = torch.from_numpy(world.positives.items)
    for _ in range(300):
        query = DotQuery(tower(F.one_hot(users, 6).float()), items.weight, positives)
        optimizer.zero_grad()
        step(query, source.draw(users, 10), rules.SoftmaxV(), loss).backward()
        optimizer.step()
    scores = (tower(torch.eye(6)) @ items.weight.T).detach()
    for user in range(6):
        taken = list(world.positives[user])
        rest = [j for j in range(25) if j not in taken]
        assert scores[user, taken].min() > scores[user, rest].max()


@pytest.mark.parametrize("rule", [rules.Uniform(), rules.DNS(M=2)], ids=str)
@pytest.mark.parametrize("pool", [pools.Uniform(), pools.Popularity(alpha=0.5)], ids=str)
def test_a_loss_that_corrects_for_q_is_given_that_of_the_chosen(world, pool, rule, generator):
    """log(1 + Σ_j p_bj e^(r_cj − r_ci) / q_bj), by q = w_j / Σ w over the user's negatives."""
    items = torch.randn(25, 3, generator=generator)
    source = pool.open(world)
    candidates = source.draw(USERS, 10)
    query = DotQuery(torch.randn(4, 3, generator=generator), items, POSITIVES, backend=world.backend)
    told = {} if candidates.log_q is not None else {"log_q": source.log_q(USERS, candidates, candidates)}
    found = step(query, candidates, rule, losses.SampledSoftmax(), **told)

    weights = np.ones(25) if isinstance(pool, pools.Uniform) else world.counts**0.5
    total = 0.0
    for b, user in enumerate(USERS.tolist()):
        taken = list(world.positives[user])
        q = weights / (weights.sum() - weights[taken].sum())
        r_ci = float(query.r_ci[b])
        drawn = sorted(
            candidates.ids[b].tolist(), key=lambda j: -float(items[j] @ query.vectors.context[b])
        )
        kept = drawn[:2] if isinstance(rule, rules.DNS) else drawn
        r = [float(items[j] @ query.vectors.context[b]) for j in kept]
        total += np.log1p(sum(np.exp(r_j - r_ci) / (len(kept) * q[j]) for j, r_j in zip(kept, r)))
    assert float(found) == pytest.approx(total / 4, rel=1e-5)


def test_what_a_step_cannot_do_is_refused(world):
    query = DotQuery(torch.randn(4, 3), torch.randn(25, 3), POSITIVES, backend=world.backend)
    candidates = pools.Uniform().open(world).draw(USERS, 10)
    for rule, loss, sentence in (
        (rules.DNS(M=20), losses.BPR(), "M=20 is not allowed: a whole number from 1 to 10 is needed"),
        (rules.WARP(), losses.Hinge(), "warp does not only weigh candidates: open a Method with it"),
        (rules.Uniform(), losses.SampledSoftmax(), r"softmax corrects for .*: give step\(…, log_q="),
    ):
        with pytest.raises(Error, match=sentence):
            step(query, candidates, rule, loss)
