"""The fused path against autograd on the composed one, and LightGCN against RecBole's."""

import pytest
import torch
import torch.nn.functional as F
from conftest import prepare
from recbole.model.general_recommender import BPR, LightGCN

from recbole_hns.models.scorers import (
    LightGCNScorer,
    MFScorer,
    OwnLossScorer,
    PredictQuery,
    make_scorer,
)
from recbole_hns.sampling import DNS, Softmax, SoftmaxV, Uniform, UniformPool
from recbole_hns.sampling.negatives import Negatives

RULES = [Uniform(), DNS(3), Softmax(0.5), SoftmaxV(1.0)]


@pytest.fixture(params=["BPR", "LightGCN"])
def model_and_data(request, tiny):
    config, train_data, *_ = prepare(request.param, **tiny, embedding_size=16, reg_weight=0.1)
    torch.manual_seed(3)
    model = config.model_class(config, train_data._dataset)
    return model, train_data._dataset


def a_batch(dataset, B=50):
    return dataset[torch.randperm(len(dataset), generator=torch.Generator().manual_seed(1))[:B]]


def composed_loss(model, batch, negatives):
    """Σ p ℓ + 0.1/2 Σ ‖·‖² by gathers and autograd, with the model's own forward."""
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
def test_fused_gradient_is_autograds(model_and_data, kernels, rule, block):
    model, dataset = model_and_data
    scorer = make_scorer(model, dataset, kernels, reg_weight=0.1)
    pool = UniformPool("train", dataset, block=block, kernels=kernels).set_phase("train")
    batch = a_batch(dataset)
    query = scorer.encode(batch)
    with torch.no_grad():
        negatives = rule.choose(pool.draw(batch["user_id"], 20), query)

    fused = scorer.loss(batch, query, negatives, None)
    fused.backward()
    grads = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    composed = composed_loss(model, batch, negatives)
    composed.backward()
    torch.testing.assert_close(fused, composed, rtol=1e-5, atol=1e-5)
    for parameter, grad in zip(model.parameters(), grads):
        assert grad.dtype == torch.float32
        torch.testing.assert_close(grad, parameter.grad, rtol=1e-5, atol=1e-5)


def test_no_gradient_flows_through_the_weights(model_and_data, kernels):
    model, dataset = model_and_data
    scorer = make_scorer(model, dataset, kernels)
    pool = UniformPool("train", dataset, kernels=kernels).set_phase("train")
    batch = a_batch(dataset)
    query = scorer.encode(batch)
    with torch.no_grad():
        negatives = SoftmaxV(1.0).choose(pool.draw(batch["user_id"], 20), query)
    assert not negatives.weights.requires_grad


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_gradients_of_single_rows_are_those_of_whole_tables(tiny, kernels, rule):
    """As sparse_adam takes them, regulariser included."""
    config, train_data, *_ = prepare("BPR", **tiny)
    dataset, batch = train_data._dataset, a_batch(train_data._dataset)
    model = config.model_class(config, dataset)
    scorer = make_scorer(model, dataset, kernels, reg_weight=0.1)
    pool = UniformPool("train", dataset, kernels=kernels).set_phase("train")
    with torch.no_grad():
        negatives = rule.choose(pool.draw(batch["user_id"], 20), scorer.encode(batch))
    grads = []
    for sparse in (False, True):
        model.zero_grad()
        model.user_embedding.sparse = model.item_embedding.sparse = sparse
        scorer.loss(batch, scorer.encode(batch), negatives, None).backward()
        assert all(p.grad.is_sparse == sparse for p in model.parameters())
        grads.append([p.grad.to_dense() for p in model.parameters()])
    for dense, sparse in zip(*grads):
        torch.testing.assert_close(sparse, dense, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("require_pow", [True, False])
def test_with_one_negative_the_loss_is_recboles_own(tiny, kernels, require_pow):
    for name in ("BPR", "LightGCN"):
        settings = {"reg_weight": 0.1, "require_pow": require_pow} if name == "LightGCN" else {}
        config, train_data, *_ = prepare(name, **tiny, **settings)
        model = config.model_class(config, train_data._dataset)
        for table in (model.user_embedding, model.item_embedding):
            torch.nn.init.normal_(table.weight, std=0.3)
        batch = a_batch(train_data._dataset)
        scorer = make_scorer(model, train_data._dataset, kernels)
        query = scorer.encode(batch)
        pool = UniformPool("train", train_data._dataset, kernels=kernels).set_phase("train")
        negatives = Uniform().choose(pool.draw(batch["user_id"], 1), query)
        ours = scorer.loss(batch, query, negatives, None)
        batch["neg_item_id"] = negatives.ids[:, 0].long()
        torch.testing.assert_close(ours, model.calculate_loss(batch).squeeze(), rtol=1e-5, atol=1e-5)


def test_lightgcn_vectors_and_their_gradient_are_recboles(tiny, kernels):
    config, train_data, *_ = prepare("LightGCN", **tiny)
    model = config.model_class(config, train_data._dataset)
    ours = LightGCNScorer(model, train_data._dataset, kernels).vectors()
    theirs = model.forward()
    weights = [torch.randn_like(x) for x in theirs]
    gradients = []
    for tables in (ours, theirs):
        model.zero_grad()
        sum((w * x).sum() for w, x in zip(weights, tables)).backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    for a, b in zip([*ours, *gradients[0]], [*theirs, *gradients[1]]):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_a_step_propagates_once(tiny, kernels, monkeypatch):
    from recbole_hns.models import propagation

    config, train_data, *_ = prepare("LightGCN", **tiny)
    model = config.model_class(config, train_data._dataset)
    calls = []
    original = propagation._mean_of_layers
    monkeypatch.setattr(propagation, "_mean_of_layers", lambda *a: (calls.append(1), original(*a))[1])
    monkeypatch.setattr(model, "forward", lambda: pytest.fail("a second propagation"))
    scorer = make_scorer(model, train_data._dataset, kernels)
    pool = UniformPool("train", train_data._dataset, kernels=kernels).set_phase("train")
    batch = a_batch(train_data._dataset)
    query = scorer.encode(batch)
    negatives = DNS(2).choose(pool.draw(batch["user_id"], 10), query)
    loss = scorer.loss(batch, query, negatives, None)
    assert len(calls) == 1
    loss.backward()
    assert len(calls) == 2  # the backward pass


def test_stale_propagated_embeddings_are_dropped_when_training_goes_on(tiny, kernels):
    config, train_data, *_ = prepare("LightGCN", **tiny)
    model = config.model_class(config, train_data._dataset)
    model.full_sort_predict(a_batch(train_data._dataset))
    assert model.restore_user_e is not None
    make_scorer(model, train_data._dataset, kernels).encode(a_batch(train_data._dataset))
    assert model.restore_user_e is None


def test_any_model_scores_through_predict_as_the_fast_path_does(model_and_data, kernels):
    model, dataset = model_and_data
    batch = a_batch(dataset)
    pool = UniformPool("train", dataset, kernels=kernels).set_phase("train")
    candidates = pool.draw(batch["user_id"], 15)
    fast, slow = make_scorer(model, dataset, kernels).encode(batch), PredictQuery(model, batch)
    with torch.no_grad():
        torch.testing.assert_close(slow.score(candidates), fast.score(candidates))
        torch.testing.assert_close(slow.positive_scores(), fast.positive_scores())
        torch.testing.assert_close(slow.top(candidates, 3)[1], fast.top(candidates, 3)[1])


def test_predict_in_pieces_gives_the_same_scores(model_and_data, kernels, monkeypatch):
    model, dataset = model_and_data
    batch = a_batch(dataset)
    pool = UniformPool("train", dataset, kernels=kernels).set_phase("train")
    candidates = pool.draw(batch["user_id"], 15)
    with torch.no_grad():
        whole = PredictQuery(model, batch).score(candidates)
        monkeypatch.setattr("recbole_hns.models.scorers.PREDICT_ROWS", 40)
        torch.testing.assert_close(PredictQuery(model, batch).score(candidates), whole)


def test_own_loss_gets_the_negatives_drawn_from_p(tiny, kernels, generator):
    config, train_data, *_ = prepare("GCMC", **tiny)
    dataset = train_data._dataset
    model = config.model_class(config, dataset)
    scorer = make_scorer(model, dataset, kernels)
    assert isinstance(scorer, OwnLossScorer)
    pool = UniformPool("train", dataset, kernels=kernels).set_phase("train")
    batch = a_batch(dataset)
    candidates = pool.draw(batch["user_id"], 6)
    weights = torch.zeros(50, 6)
    weights[:, 4] = 1.0
    loss = scorer.loss(batch, scorer.encode(batch), Negatives(candidates, weights), generator)
    assert (batch["neg_item_id"] == candidates.ids[:, 4]).all()
    assert torch.isfinite(loss)


def test_a_subclass_with_a_loss_of_its_own_is_not_taken_for_its_parent(tiny, kernels):
    class Mine(BPR):
        def calculate_loss(self, interaction):
            return super().calculate_loss(interaction) + 1

    config, train_data, *_ = prepare("BPR", **tiny)
    dataset = train_data._dataset
    assert isinstance(make_scorer(Mine(config, dataset), dataset, kernels), OwnLossScorer)
    assert isinstance(make_scorer(BPR(config, dataset), dataset, kernels), MFScorer)
