"""Candidates are scored in pieces of measured cost."""

import pytest
import torch
from conftest import prepare
from recbole.utils import init_seed

from recbole_hns.kernels import Candidates
from recbole_hns.models import cost
from recbole_hns.models.predict import FREE_ROWS, PREDICT_ROWS, PredictQuery


class Wide(torch.nn.Module):
    """4·(1 + 2·width) bytes a row, and a table that all rows share."""

    def __init__(self, width):
        super().__init__()
        self.width, self.table = width, torch.nn.Parameter(torch.rand(1000, 1))

    def forward(self, rows):
        whole = self.table * 2  # 4000 bytes, whatever the rows
        x = whole[:1].expand(rows, self.width)  # a view
        return ((x + 1) * 3).sum(dim=1)


@torch.no_grad()
def test_what_a_row_costs_is_what_is_made_for_it():
    model = Wide(100)
    with cost.BytesMade() as made:
        model(7)
    assert made.total == 4000 + 7 * 4 * (2 * 100 + 1)
    assert cost.rows_of_a_piece(model, model, 10**9) == cost.PIECE_BYTES // (4 * 201)
    assert cost.rows_of_a_piece(model, model, 50) == 50


def test_a_row_above_the_budget_goes_alone(monkeypatch):
    monkeypatch.setattr(cost, "PIECE_BYTES", 10)
    model = Wide(100)
    assert cost.rows_of_a_piece(model, model, 50) == 1


def test_no_random_number_is_used_up():
    model, before = Wide(3), torch.get_rng_state()
    cost.rows_of_a_piece(model, lambda rows: (torch.rand(rows), model(rows)), 50)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.fixture
def query(tiny):
    """ConvNCF and 20 pairs; what a score costs, 64 × 64 products and four layers, is 88 kB."""

    def make(name, **settings):
        init_seed(7, True)
        config, train_data, *_ = prepare(name, **tiny, **settings)
        model = config.model_class(config, train_data._dataset)
        return PredictQuery(model, train_data._dataset[torch.arange(20)])

    return make


def ids_for(query, N):
    return torch.randint(1, 60, (len(query.positives), N), dtype=torch.int32)


def sizes_of(query, monkeypatch, ids):
    """How many rows each call of ``predict`` has, those of the trial apart, and the scores."""
    sizes, predict = [], query.model.predict
    monkeypatch.setattr(query.model, "predict", lambda rows: (sizes.append(len(rows)), predict(rows))[1])
    scores = query.score(Candidates(ids))
    return sizes, scores


def test_a_cheap_model_is_scored_as_before(query, monkeypatch):
    query = query("BPR", embedding_size=8)
    sizes, _ = sizes_of(query, monkeypatch, ids_for(query, 200))
    assert sizes == [cost.FEW, 2 * cost.FEW, 20 * 200]
    assert sum(sizes[2:]) < PREDICT_ROWS
    sizes, _ = sizes_of(query, monkeypatch, ids_for(query, 200))
    assert sizes == [20 * 200]  # measured once


def test_a_dear_model_is_scored_in_pieces_below_the_budget(query, monkeypatch):
    query = query("ConvNCF")
    ids = ids_for(query, 100)
    query.model.eval()
    whole = query._predict(slice(None), ids).detach()
    monkeypatch.setattr(cost, "PIECE_BYTES", 1 << 25)
    sizes, scores = sizes_of(query, monkeypatch, ids)
    per_row = cost._PER_ROW[query.model]
    assert per_row > 80_000
    trial, pieces = sizes[:2], sizes[2:]
    assert trial == [cost.FEW, 2 * cost.FEW]
    assert sum(pieces) == ids.numel() > FREE_ROWS
    assert max(pieces) * per_row <= 1 << 25
    torch.testing.assert_close(scores, whole)


def test_the_candidates_of_a_pair_are_parted_where_they_cost_too_much(query, monkeypatch):
    query = query("ConvNCF")
    ids = ids_for(query, 100)
    monkeypatch.setattr("recbole_hns.models.cost._per_row", lambda score: 1)
    monkeypatch.setattr(cost, "PIECE_BYTES", 30)
    sizes, scores = sizes_of(query, monkeypatch, ids)
    assert sizes == [30, 30, 30, 10] * 20
    query.model.eval()
    torch.testing.assert_close(scores, query._predict(slice(None), ids).detach())
