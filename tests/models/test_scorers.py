"""The fused path against autograd on gathers, LightGCN against RecBole's, and models of a user's own."""

import pytest
import torch
import torch.nn.functional as F
from conftest import prepare
from recbole.model.general_recommender import BPR, LightGCN
from recbole.utils import init_seed

from recbole_hns.bridge.world import world_of
from recbole_hns.kernels import Candidates
from recbole_hns.losses import Hinge
from recbole_hns.models import propagation
from recbole_hns.models.cards import scorer_of
from recbole_hns.models.fused import LightGCNScorer
from recbole_hns.sampling import Method, Negatives, pools, rules

RULES = [rules.Uniform(), rules.DNS(M=3), rules.Softmax(tau=0.5), rules.SoftmaxV(rho=1.0)]


class Case:
    """A model with vectors of some size, its scorer, and a batch of 50 pairs."""

    def __init__(self, tiny, name, kernels, reg_weight=0.1, **settings):
        init_seed(7, True)  # RecBole splits the data by torch's global generator
        self.config, train_data, *_ = prepare(
            name, **tiny, embedding_size=16, reg_weight=reg_weight, hns_backend=kernels.name, **settings
        )
        self.dataset = dataset = train_data._dataset
        self.model = self.config.model_class(self.config, dataset)
        for table in (self.model.user_embedding, self.model.item_embedding):
            torch.nn.init.normal_(table.weight, std=0.3)
        scorer = scorer_of(type(self.model))
        self.scorer = scorer(self.model, dataset, kernels, reg_weight=reg_weight)
        order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(1))
        self.batch = dataset[order[:50]]

    def candidates(self, N=20, block=1):
        """Uniform candidates of the batch's users."""
        source = pools.Uniform().open(world_of(self.dataset, self.config), block)
        return source.draw(self.batch["user_id"], N)

    def negatives(self, query, rule, N=20, block=1):
        """What a sampler would choose."""
        sampler = Method(pools.Uniform(), rule, N=N, block=block).open(
            world_of(self.dataset, self.config)
        )
        return sampler.select(self.batch["user_id"], query)


@pytest.fixture(params=["BPR", "LightGCN"])
def case(request, tiny, kernels):
    return Case(tiny, request.param, kernels)


def reference_loss(case, negatives):
    """Σ p ℓ + 0.1/2 Σ ‖·‖² by gathers and autograd, with the model's own forward."""
    model, batch = case.model, case.batch
    users, positives = batch["user_id"], batch["item_id"]
    if isinstance(model, LightGCN):
        user_all, item_all = model.forward()
    else:
        user_all, item_all = model.user_embedding.weight, model.item_embedding.weight
    c, ids = user_all[users], negatives.ids.long()
    r_ci = (c * item_all[positives]).sum(-1)
    r_cj = (c[:, None] * item_all[ids]).sum(-1)
    loss = (negatives.weights * F.softplus(-(r_ci[:, None] - r_cj))).sum(1).mean()
    squares = (
        model.user_embedding(users).square().sum()
        + model.item_embedding(positives).square().sum()
        + (negatives.weights * model.item_embedding(ids).square().sum(-1)).sum()
    )
    return loss + 0.1 * squares / len(users) / 2


@pytest.mark.parametrize("block", [1, 8])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_fused_gradient_is_autograds(case, rule, block):
    query = case.scorer.encode(case.batch)
    negatives = case.negatives(query, rule, block=block)
    assert not negatives.weights.requires_grad
    fused = case.scorer.loss(case.batch, query, negatives, None)
    fused.backward()
    grads = [p.grad.clone() for p in case.model.parameters()]
    case.model.zero_grad()
    expected = reference_loss(case, negatives)
    expected.backward()
    torch.testing.assert_close(fused, expected, rtol=1e-5, atol=1e-5)
    for parameter, grad in zip(case.model.parameters(), grads):
        assert grad.dtype == torch.float32
        torch.testing.assert_close(grad, parameter.grad, rtol=1e-5, atol=1e-5)


def test_the_loss_is_the_one_that_is_named(tiny, kernels):
    case = Case(tiny, "BPR", kernels, reg_weight=0.0)
    case.scorer.pair_loss = Hinge(margin=0.5)
    query = case.scorer.encode(case.batch)
    negatives = case.negatives(query, rules.Uniform())
    r_ci, r_cj = query.pair_scores(negatives.candidates)
    expected = (0.5 - r_ci[:, None] + r_cj).clamp(min=0).mean()
    torch.testing.assert_close(case.scorer.loss(case.batch, query, negatives, None), expected)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_gradients_of_single_rows_are_those_of_whole_tables(tiny, kernels, rule):
    """As sparse_adam takes them, regulariser included."""
    case = Case(tiny, "BPR", kernels)
    model, batch, scorer = case.model, case.batch, case.scorer
    negatives = case.negatives(scorer.encode(batch), rule)
    grads = []
    for sparse in (False, True):
        model.zero_grad()
        model.user_embedding.sparse = model.item_embedding.sparse = sparse
        scorer.loss(batch, scorer.encode(batch), negatives, None).backward()
        assert all(p.grad.is_sparse == sparse for p in model.parameters())
        grads.append([p.grad.to_dense() for p in model.parameters()])
    for dense, sparse in zip(*grads):
        torch.testing.assert_close(sparse, dense, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"require_pow": True}, {"require_pow": False}], ids=str)
def test_with_one_negative_the_loss_is_recboles_own(tiny, kernels, settings):
    """RecBole's BPR has no reg_weight; LightGCN's may be of squares or of norms."""
    name = "LightGCN" if settings else "BPR"
    case = Case(tiny, name, kernels, reg_weight=0.1 if settings else 0.0, **settings)
    query = case.scorer.encode(case.batch)
    negatives = case.negatives(query, rules.Uniform(), N=1)
    ours = case.scorer.loss(case.batch, query, negatives, None)
    case.batch["neg_item_id"] = negatives.ids[:, 0].long()
    theirs = case.model.calculate_loss(case.batch).squeeze()
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_lightgcn_vectors_and_their_gradient_are_recboles(tiny, kernels):
    case = Case(tiny, "LightGCN", kernels)
    ours, theirs = case.scorer.vectors(), case.model.forward()
    weights = [torch.randn_like(x) for x in theirs]
    gradients = []
    for tables in (ours, theirs):
        case.model.zero_grad()
        sum((w * x).sum() for w, x in zip(weights, tables)).backward()
        gradients.append([p.grad.clone() for p in case.model.parameters()])
    for a, b in zip([*ours, *gradients[0]], [*theirs, *gradients[1]]):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_a_step_propagates_once(tiny, kernels, monkeypatch):
    case = Case(tiny, "LightGCN", kernels)
    calls, original = [], propagation._mean_of_layers
    monkeypatch.setattr(propagation, "_mean_of_layers", lambda *a: (calls.append(1), original(*a))[1])
    monkeypatch.setattr(case.model, "forward", lambda: pytest.fail("a second propagation"))
    query = case.scorer.encode(case.batch)
    negatives = case.negatives(query, rules.DNS(M=2))
    loss = case.scorer.loss(case.batch, query, negatives, None)
    assert len(calls) == 1
    loss.backward()
    assert len(calls) == 2  # the backward pass


def test_stale_propagated_embeddings_are_dropped_when_training_goes_on(tiny, kernels):
    case = Case(tiny, "LightGCN", kernels)
    case.model.full_sort_predict(case.batch)
    assert case.model.restore_user_e is not None
    case.scorer.encode(case.batch)
    assert case.model.restore_user_e is None


def test_own_loss_gets_the_negatives_drawn_from_p(tiny, kernels, generator):
    """GCMC's own loss with the one negative that weighs; the items' features come along."""
    init_seed(7, True)
    config, train_data, *_ = prepare("GCMC", **tiny)
    dataset = train_data._dataset
    model = config.model_class(config, dataset)
    scorer = scorer_of(type(model))(model, dataset, kernels)
    batch = dataset[torch.arange(50)]
    ids = torch.randint(1, dataset.item_num, (50, 6), generator=generator, dtype=torch.int32)
    weights = torch.zeros(50, 6)
    weights[:, 4] = 1.0
    init_seed(9, True)
    loss = scorer.loss(batch, scorer.encode(batch), Negatives(Candidates(ids), weights), generator)
    assert batch["neg_item_id"].tolist() == ids[:, 4].tolist()
    init_seed(9, True)
    torch.testing.assert_close(loss, model.calculate_loss(batch))


def test_lightgcn_scorers_vectors_are_of_users_and_items(tiny, kernels):
    case = Case(tiny, "LightGCN", kernels)
    assert isinstance(case.scorer, LightGCNScorer)
    users, items = case.scorer.vectors()
    assert (users.shape, items.shape) == ((41, 16), (case.dataset.item_num, 16))


def test_a_model_of_ones_own_is_not_taken_for_its_parent(tiny, kernels):
    """Its loss may be another: +1 here."""

    class Mine(BPR):
        def calculate_loss(self, interaction):
            return super().calculate_loss(interaction) + 1

    case = Case(tiny, "BPR", kernels, reg_weight=0.0)
    mine = Mine(case.config, case.dataset)
    mine.load_state_dict(case.model.state_dict())
    query = case.scorer.encode(case.batch)
    negatives = case.negatives(query, rules.Uniform(), N=1)
    theirs = case.scorer.loss(case.batch, query, negatives, None)
    scorer = scorer_of(Mine)(mine, case.dataset, kernels)
    own = scorer.loss(case.batch, scorer.encode(case.batch), negatives, torch.Generator())
    torch.testing.assert_close(own, theirs + 1)
