"""Pair losses against their definitions, and the relations that the paper's Discussion names."""

import pytest
import torch
import torch.nn.functional as F

from recbole_hns.kernels import numba_cpu, torch_any
from recbole_hns.losses import (
    BCE,
    BPR,
    CHUNK_NUMBERS,
    PAIR_LOSSES,
    AllPairsLoss,
    Hinge,
    InfoNCE,
    SampledSoftmax,
    WeightedPairLoss,
)
from recbole_hns.sampling import DNS, SoftmaxV

LOSSES = [BPR(), BCE(), Hinge(), Hinge(3.0), SampledSoftmax(), InfoNCE(), InfoNCE(0.3)]


@pytest.fixture
def scores(generator):
    """r_ci, r_cj, weights and log q of 12 pairs with 7 negatives."""
    r_ci = 2 * torch.randn(12, generator=generator)
    r_cj = 2 * torch.randn(12, 7, generator=generator)
    p = torch.rand(12, 7, generator=generator).softmax(dim=1)
    return r_ci, r_cj, p, torch.rand(12, 7, generator=generator).log()


def by_definition(loss, r_ci, r_cj, p, log_q):
    """The docstrings' formulas, pair by pair."""
    total = 0
    for i, row, weights, log_qs in zip(r_ci, r_cj, p, log_q):
        if isinstance(loss, BPR):
            total += sum(w * torch.log1p(torch.exp(-(i - j))) for j, w in zip(row, weights))
        elif isinstance(loss, Hinge):
            total += sum(w * torch.clamp(loss.margin - (i - j), min=0) for j, w in zip(row, weights))
        elif isinstance(loss, BCE):
            pairs = zip(row, weights)
            total += sum(w * (-F.logsigmoid(i) - F.logsigmoid(-j)) for j, w in pairs)
        elif isinstance(loss, SampledSoftmax):
            triples = zip(row, weights, log_qs)
            negatives = sum(w * torch.exp(j) / torch.exp(lq) for j, w, lq in triples)
            total += -torch.log(torch.exp(i) / (torch.exp(i) + negatives))
        else:
            t, pairs = loss.temperature, zip(row, weights)
            negatives = sum(len(row) * w * torch.exp(j / t) for j, w in pairs)
            total += -torch.log(torch.exp(i / t) / (torch.exp(i / t) + negatives))
    return total / len(r_ci)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_value_and_gradient_are_those_of_the_definition(scores, loss):
    r_ci, r_cj, p, log_q = scores
    results = []
    for function in (
        lambda a, b: by_definition(loss, a, b, p, log_q),
        lambda a, b: WeightedPairLoss.apply(a, b, p, loss, log_q, None),
        lambda a, b: WeightedPairLoss.apply(a, b, p, loss, log_q, loss.ell(r_ci, r_cj)),
    ):
        a, b = r_ci.clone().requires_grad_(), r_cj.clone().requires_grad_()
        value = function(a, b)
        (3 * value).backward()
        results.append((value.detach(), a.grad, b.grad))
    for expected, *ours in zip(*results):
        for value in ours:
            torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_ell_is_the_loss_of_one_negative_by_itself(scores, loss):
    r_ci, r_cj, *_ = scores
    one, certain = torch.ones(12, 1), torch.zeros(12, 1)
    for n in range(r_cj.shape[1]):
        value = WeightedPairLoss.apply(r_ci, r_cj[:, n : n + 1], one, loss, certain, None)
        torch.testing.assert_close(loss.ell(r_ci, r_cj)[:, n].mean(), value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_extreme_scores_stay_finite(loss):
    r_ci = torch.tensor([1e4, -1e4], requires_grad=True)
    r_cj = torch.tensor([[-1e4], [1e4]], requires_grad=True)
    value = WeightedPairLoss.apply(r_ci, r_cj, torch.ones(2, 1), loss, torch.zeros(2, 1), None)
    value.backward()
    t = getattr(loss, "temperature", 1.0)
    assert float(value.detach()) == pytest.approx(1e4 / t, rel=1e-3)
    assert r_ci.grad.tolist() == pytest.approx([0.0, -0.5 / t])


def test_a_second_backward_pass_is_refused_and_not_wrong(scores):
    r_ci, r_cj, p, _ = scores
    loss = WeightedPairLoss.apply(r_ci.requires_grad_(), r_cj, p, BPR(), None, None)
    loss.backward(retain_graph=True)
    with pytest.raises(TypeError):
        loss.backward()


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_over_all_items_it_is_the_loss_with_every_negative_listed(loss, generator, monkeypatch):
    """The chunked AllPairsLoss against a list of each pair's negatives, p = q = 1/n₋."""
    monkeypatch.setitem(CHUNK_NUMBERS, "cpu", 40)  # several chunks
    context = torch.randn(5, 3, generator=generator)
    items = torch.randn(11, 3, generator=generator)
    rows, positives = torch.tensor([0, 2, 2, 4, 1]), torch.tensor([3, 1, 5, 9, 2])
    taken = {0: [3, 7], 1: [2], 2: [1, 5, 6], 4: [9]}

    def taken_by(users):
        of = [(place, j) for place, u in enumerate(users.tolist()) for j in taken[u]]
        return tuple(torch.tensor(of).T)

    n_neg = torch.tensor([10.0 - len(taken[u]) for u in rows.tolist()])

    def listed(context, items):
        total = 0
        for row, i in zip(rows.tolist(), positives.tolist()):
            negatives = [j for j in range(1, 11) if j not in taken[row]]
            p = torch.full((1, len(negatives)), 1 / len(negatives))
            r_ci, r_cj = items[i] @ context[row], items[negatives] @ context[row]
            total += by_definition(loss, r_ci[None], r_cj[None], p, p.log())
        return total / len(rows)

    results = []
    for function in (
        listed,
        lambda c, v: AllPairsLoss.apply(c, v, rows, positives, rows, n_neg, taken_by, loss, torch_any),
        lambda c, v: AllPairsLoss.apply(c, v, rows, positives, rows, n_neg, taken_by, loss, numba_cpu),
    ):
        c, v = context.clone().requires_grad_(), items.clone().requires_grad_()
        value = function(c, v)
        (2 * value).backward()
        results.append((value.detach(), c.grad, v.grad))
    for ours in results[1:]:
        torch.testing.assert_close(ours, results[0], rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------- the paper's Discussion


def kl_to_uniform(p):
    """KL(p ‖ uniform) of each row."""
    return (p * (p * p.shape[1]).log()).nan_to_num(0).sum(dim=1)


def test_softmax_v_bounds_the_softmax_loss_from_above(scores):
    """Σ p ℓ is above log(1 + mean_j e^(r_cj − r_ci)) for p ∝ e^ℓ, τ = 1, by exactly KL(p ‖ uniform).

    For p ∝ exp(ℓ/τ), Σ p ℓ = τ log mean_j exp(ℓ/τ) + τ KL(p ‖ uniform) (Donsker and Varadhan), and
    mean_j exp ℓ = 1 + mean_j e^(r_cj − r_ci) for the ℓ of BPR: InfoNCE with equal weights 1/n. A larger
    ρ only raises Σ p ℓ, so Softmax-v is above the softmax loss from the ρ on at which its τ is 1.
    """
    r_ci, r_cj, *_ = scores
    L = BPR().ell(r_ci, r_cj)
    softmax_loss = torch.log1p((r_cj - r_ci[:, None]).exp().mean(dim=1))
    p = torch.softmax(L, dim=1)
    torch.testing.assert_close((p * L).sum(dim=1) - softmax_loss, kl_to_uniform(p))
    for b in range(len(L)):
        rho = float(L[b].var(unbiased=False)) / 2  # τ = √(Var / 2ρ) = 1
        for factor in (1.0, 2.0, 5.0, 50.0):
            weights = SoftmaxV(rho * factor).weigh(r_cj[b : b + 1], L[b : b + 1], None)
            assert float((weights * L[b]).sum()) >= float(softmax_loss[b]) - 1e-6


def test_the_gradient_of_the_softmax_loss_is_that_of_bpr_under_softmax_v_weights(scores):
    """With p ∝ e^ℓ, τ = 1: p_j σ(r_cj − r_ci) = e^(r_cj − r_ci) / Σ_k (1 + e^(r_ck − r_ci))."""
    r_ci, r_cj, *_ = scores
    n = r_cj.shape[1]
    p = torch.softmax(BPR().ell(r_ci, r_cj), dim=1)
    _, _, weighted = BPR().value_and_gradients(r_ci, r_cj, p, n)
    # InfoNCE with weights 1/n on each negative instead of 1: log(1 + mean_j e^(r_cj − r_ci)).
    _, _, softmax = InfoNCE().value_and_gradients(r_ci, r_cj, torch.full_like(r_cj, 1 / n**2), n)
    torch.testing.assert_close(weighted, softmax)


@pytest.mark.parametrize("M", [1, 3, 6])
def test_a_margin_of_the_triplet_loss_keeps_the_negatives_that_dns_keeps(scores, M):
    """The margin between the M-th and the next violation: the same M negatives, equally weighed."""
    r_ci, r_cj, *_ = scores
    n = r_cj.shape[1]
    for b in range(len(r_ci)):
        i, row = r_ci[b : b + 1], r_cj[b : b + 1]
        v = (row[0] - i).sort(descending=True).values
        margin = -float((v[M - 1] + v[M]) / 2)
        _, _, by_margin = Hinge(margin).value_and_gradients(i, row, torch.full((1, n), 1 / n), n)

        top = torch.zeros(1, n).scatter_(1, row.topk(DNS(M).M).indices, 1 / M)
        _, _, by_rank = Hinge(1e6).value_and_gradients(i, row, top, n)  # a slope of 1 everywhere
        torch.testing.assert_close(by_margin * n / M, by_rank)


def test_a_smaller_margin_keeps_fewer_negatives_as_a_smaller_m_does(scores):
    r_ci, r_cj, p, _ = scores
    kept = [
        int((Hinge(margin).value_and_gradients(r_ci, r_cj, p, 7)[2] > 0).sum())
        for margin in (0.1, 1.0, 2.0, 10.0)
    ]
    assert kept == sorted(kept)
    assert kept[0] < kept[-1]


def test_a_lower_temperature_is_harder_as_a_larger_rho_is(scores):
    """Both move the gradient's weights away from uniform, measured by KL."""
    r_ci, r_cj, *_ = scores
    equal = torch.full_like(r_cj, 1 / 7)

    def share(temperature):
        g = InfoNCE(temperature).value_and_gradients(r_ci, r_cj, equal, 7)[2]
        return g / g.sum(dim=1, keepdim=True)

    L = BPR().ell(r_ci, r_cj)
    by_temperature = [kl_to_uniform(share(t)).mean() for t in (5.0, 1.0, 0.5, 0.2)]
    by_rho = [kl_to_uniform(SoftmaxV(rho).weigh(r_cj, L, None)).mean() for rho in (0.01, 0.1, 1, 10)]
    for hardness in (by_temperature, by_rho):
        assert all(a < b for a, b in zip(hardness, hardness[1:]))


def test_sampled_softmax_estimates_the_softmax_over_all_items(generator):
    """The mean over draws of Σ e^r / (N q) is the whole sum, within 4 standard errors (p < 10⁻⁴)."""
    items, N, draws = 50, 20, 4000
    r = torch.randn(items, generator=generator)
    q = torch.rand(items, generator=generator)
    q /= q.sum()
    drawn = torch.multinomial(q.expand(draws, -1), N, replacement=True, generator=generator)
    r_ci = torch.zeros(draws)
    one_by_one = [
        float(
            SampledSoftmax()
            .value_and_gradients(r_ci[:1], r[d][None], torch.full((1, N), 1 / N), N, q[d].log()[None])[0]
            .exp()
            - 1
        )
        for d in drawn
    ]
    estimate = torch.tensor(one_by_one)
    error = estimate.std() / draws**0.5
    assert abs(float(estimate.mean() - r.exp().sum())) < 4 * float(error)


def test_every_pair_loss_has_a_name():
    assert {type(loss) for loss in LOSSES} == set(PAIR_LOSSES.values())
