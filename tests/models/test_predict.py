"""Scores through a model's ``predict``, against the dot products that they are."""

import pytest
import torch
from conftest import prepare
from recbole.utils import init_seed

from recbole_hns.kernels import Candidates
from recbole_hns.models.predict import PredictQuery


@pytest.fixture(params=["BPR", "LightGCN"])
def case(request, tiny):
    """(model, batch, candidates, all users' and items' vectors)."""
    init_seed(7, True)
    config, train_data, *_ = prepare(request.param, **tiny, embedding_size=8)
    model = config.model_class(config, train_data._dataset)
    for table in (model.user_embedding, model.item_embedding):
        torch.nn.init.normal_(table.weight, std=0.5)
    batch = train_data._dataset[torch.arange(20)]
    ids = torch.randint(1, train_data._dataset.item_num, (20, 15), dtype=torch.int32)
    tables = (
        model.forward()
        if request.param == "LightGCN"
        else (
            model.user_embedding.weight,
            model.item_embedding.weight,
        )
    )
    return model, batch, Candidates(ids), [table.detach() for table in tables]


def dots(batch, ids, tables):
    return (tables[0][batch["user_id"]][:, None] * tables[1][ids.long()]).sum(dim=2)


def test_scores_are_the_models(case):
    model, batch, candidates, tables = case
    query, expected = PredictQuery(model, batch), dots(batch, candidates.ids, tables)
    scores = query.score(candidates)
    assert not scores.requires_grad
    torch.testing.assert_close(scores, expected)
    torch.testing.assert_close(query.r_ci, dots(batch, batch["item_id"][:, None], tables)[:, 0])
    best = expected.sort(dim=1, descending=True).values[:, :3]
    ids, scores = query.top(candidates, 3)
    torch.testing.assert_close(scores, best)
    torch.testing.assert_close(dots(batch, ids, tables), best)


def test_the_query_of_some_pairs_scores_as_they_do(case):
    model, batch, candidates, tables = case
    pairs = torch.tensor([7, 2, 7])
    part = PredictQuery(model, batch).at(pairs)
    some = Candidates(candidates.ids[pairs])
    torch.testing.assert_close(part.score(some), dots(batch, candidates.ids, tables)[pairs])


def test_in_pieces_the_scores_are_the_same(case, monkeypatch):
    model, batch, candidates, _ = case
    whole = PredictQuery(model, batch).score(candidates)
    sizes, predict = [], model.predict
    monkeypatch.setattr(model, "predict", lambda rows: (sizes.append(len(rows)), predict(rows))[1])
    monkeypatch.setattr("recbole_hns.models.predict.PREDICT_ROWS", 40)
    torch.testing.assert_close(PredictQuery(model, batch).score(candidates), whole)
    assert sizes == [30] * 10  # two pairs of 15 candidates each


def test_the_model_is_asked_as_in_evaluation_and_left_as_it_was(case):
    model, batch, candidates, _ = case
    modes, predict = [], model.predict
    model.predict = lambda rows: (modes.append(model.training), predict(rows))[1]
    for training in (True, False):
        model.train(training)
        PredictQuery(model, batch).score(candidates)
        assert model.training is training
    assert not any(modes)
    model.train()
    model.predict = lambda rows: 1 / 0
    with pytest.raises(ZeroDivisionError):
        PredictQuery(model, batch).score(candidates)
    assert model.training


def test_triples_beside_the_pairs_are_left_out(case):
    """RecBole joins a batch of a knowledge graph's triples to the pairs, of another length."""
    model, batch, candidates, tables = case
    batch.interaction["head_id"] = torch.arange(33)
    scores = PredictQuery(model, batch).score(candidates)
    torch.testing.assert_close(scores, dots(batch, candidates.ids, tables))
