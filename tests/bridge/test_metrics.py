"""The metrics inside RecBole's own evaluation."""

import importlib
import itertools

import numpy as np
import pytest
import torch
from conftest import prepare
from hypothesis import given, settings
from hypothesis import strategies as st
from recbole.evaluator.collector import Collector, DataStruct
from recbole.quick_start import run_recbole
from recbole.utils import init_seed

from recbole_hns import Error, HNSConfig, run_recbole_hns
from recbole_hns.bridge.collector import evaluate_counts, register
from recbole_hns.bridge.metrics import OPAUC
from recbole_hns.data.loader import positives_only
from recbole_hns.kernels import numba as in_numba
from recbole_hns.metrics import RankCounts
from recbole_hns.metrics.counts import can_count
from recbole_hns.theory import users_outside_bounds
from recbole_hns.training.trainer import make_trainer

OURS = {"metrics": ["Recall", "NDCG", "OPAUC", "NOPAUC", "LLPAUC"], "valid_metric": "OPAUC@0.1"}
QUICK = {"show_progress": False, "epochs": 2}


def evaluated(tiny, **more):
    config, train_data, _, test_data = prepare(**tiny, **{**OURS, "metric_decimal_place": 9, **more})
    torch.manual_seed(1)
    trainer = make_trainer(config, config.model_class(config, train_data._dataset))
    trainer.eval_collector.data_collect(train_data)
    return trainer, train_data, test_data, trainer.evaluate(test_data, load_best_model=False)


def test_full_sort_evaluation_masks_what_recbole_masks(tiny):
    trainer, _, test_data, result = evaluated(tiny, opauc_k=[5])
    model, dataset = trainer.model, test_data._dataset
    test_items = [set() for _ in range(dataset.user_num)]
    for user, item in zip(dataset.inter_feat["user_id"], dataset.inter_feat["item_id"]):
        test_items[int(user)].add(int(item))
    values, at_k = [], []
    for user in range(1, dataset.user_num):
        if not test_items[user]:
            continue
        history = set(test_data.uid2history_item[user].tolist())
        scores = model.item_embedding.weight @ model.user_embedding.weight[user]
        negatives = [j for j in range(1, dataset.item_num) if j not in history | test_items[user]]
        x = [float((scores[negatives] > scores[i]).float().mean()) for i in test_items[user]]
        values.append(np.mean([max(0, 0.1 - v) for v in x]))
        at_k.append(np.mean([max(0, 5 / len(negatives) - v) for v in x]))
    assert result["opauc@0.1"] == pytest.approx(np.mean(values), abs=1e-7)
    assert result["opauc@k=5"] == pytest.approx(np.mean(at_k), abs=1e-7)


@pytest.mark.parametrize("tied", [False, True])
def test_nopauc_at_1_is_recboles_gauc(tiny, tied):
    """RecBole weighs users by their positives; with one test item each the means are the same."""
    leave_one_out = {
        "split": {"LS": "valid_and_test"},
        "order": "RO",
        "group_by": "user",
        "mode": "full",
    }
    settings = {"metrics": ["NOPAUC", "GAUC"], "valid_metric": "NOPAUC@1", "eval_args": leave_one_out}
    trainer, _, test_data, result = evaluated(tiny, **settings)
    if tied:
        for table in trainer.model.parameters():
            table.data = (table.data * 4).round()
        scores = trainer.model.item_embedding.weight @ trainer.model.user_embedding.weight[1]
        assert len(scores.unique()) < len(scores) / 2
        result = trainer.evaluate(test_data, load_best_model=False)
    assert result["nopauc@1"] == pytest.approx(result["gauc"], abs=1e-6)


def test_users_without_negatives_are_counted_in_the_log(caplog):
    caplog.set_level("INFO")  # whatever level a search left behind
    config = HNSConfig("BPR", "ml-100k", config_dict=OURS)
    struct = DataStruct()
    counts = RankCounts(np.array([1.0, 0.0]), np.zeros(2), np.ones(2), np.array([4.0, 0.0]), np.zeros(2))
    struct.set("rec.above", counts)
    assert OPAUC(config).calculate_metric(struct)["opauc@1"] == 0.75
    assert "OPAUC: 1 users without a negative item are left out" in caplog.text


@pytest.mark.parametrize("mode", ["uni20", "pop20"])
def test_sampled_evaluation_counts_the_sampled_negatives(tiny, mode):
    eval_args = {"split": {"RS": [0.8, 0.1, 0.1]}, "order": "RO", "group_by": "user", "mode": mode}
    *_, result = evaluated(tiny, eval_args=eval_args)
    assert 0 < result["opauc@1"] < 1
    assert result["opauc@0.1"] <= 0.1


def test_every_evaluation_starts_from_nothing(tiny):
    trainer, _, test_data, first = evaluated(tiny)
    assert trainer.evaluate(test_data, load_best_model=False) == first


def test_keys_and_decimals_are_recboles(tiny):
    *_, result = evaluated(
        tiny, opauc_beta=[0.5, 1], opauc_k=[3], metric_decimal_place=2, valid_metric="OPAUC@1"
    )
    keys = {"opauc@0.5", "opauc@1", "opauc@k=3", "nopauc@0.5", "nopauc@1", "llpauc@0.5", "llpauc@1"}
    assert keys <= set(result)
    assert all(round(result[key], 2) == result[key] for key in keys)


def test_run_recbole_knows_the_metrics_too(tiny, monkeypatch):
    monkeypatch.setattr("sys.argv", ["pytest"])
    result = run_recbole("BPR", "tiny", config_dict={**tiny, **QUICK, **OURS})
    assert {"opauc@0.001", "nopauc@1", "llpauc@0.01"} <= set(result["test_result"])
    assert result["best_valid_score"] == result["best_valid_result"]["opauc@0.1"]


def test_early_stopping_on_opauc(caplog):
    settings = {**QUICK, **OURS, "valid_metric": "OPAUC@0.01", "epochs": 60, "stopping_step": 2}
    settings.update(metric_decimal_place=6, learning_rate=0.02, N=50, M=2)
    with caplog.at_level("INFO"):
        result = run_recbole_hns("MF", "ml-100k", "dns", config_dict=settings)
    assert "Finished training, best eval result in epoch" in caplog.text
    assert result["best_valid_score"] == result["best_valid_result"]["opauc@0.01"]


def test_every_user_of_a_trained_model_lies_within_the_theorems_bounds():
    """Test set of ml-100k, after some epochs: users with more than K positives and negatives."""
    config, train_data, _, test_data = prepare(
        "BPR", "ml-100k", **QUICK, **OURS, sampler="dns", N=20, M=2
    )
    trainer = make_trainer(config, config.model_class(config, train_data._dataset))
    trainer.fit(positives_only(config, train_data), saved=False)
    counts = evaluate_counts(trainer, test_data)
    for k in (1, 5, 10):
        checked, outside = users_outside_bounds(*counts.by_user(), k)
        assert checked > 200
        assert outside == []


def test_counts_need_one_of_our_metrics(tiny):
    config, train_data, _, test_data = prepare(**tiny)
    trainer = make_trainer(config, config.model_class(config, train_data._dataset))
    with pytest.raises(Error, match="add OPAUC to metrics"):
        evaluate_counts(trainer, test_data)


def test_registering_again_changes_nothing():
    before = Collector.eval_batch_collect
    register()
    assert Collector.eval_batch_collect is before


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"opauc_beta": [0]}, "opauc_beta=0"),
        ({"opauc_beta": [1.5]}, "opauc_beta=1.5"),
        ({"opauc_beta": []}, "opauc_beta is empty"),
        ({"opauc_beta": ["x"]}, "opauc_beta=x"),
        ({"opauc_k": [0]}, "opauc_k=0"),
        ({"llpauc_alpha": 0}, "llpauc_alpha=0"),
        ({"valid_metric": "OPAUC@0.02"}, "opauc@0.01"),
        ({"valid_metric": "MRR@10"}, "not evaluated"),
        ({"valid_metric": "NDCG@7"}, "ndcg@10"),
        ({"eval_args": {"mode": "labeled"}}, "labeled"),
        ({"metrics": ["OPAUC", "AUC"]}, "Ranking metrics and value metrics"),
    ],
)
def test_mistakes_get_a_sentence(settings, words):
    with pytest.raises(Error, match=words):
        HNSConfig("BPR", "ml-100k", config_dict={**OURS, **settings})


def test_a_cut_beyond_the_items_is_refused(tiny):
    with pytest.raises(Error, match="opauc_k=1000"):
        evaluated(tiny, opauc_k=[1000])


@settings(max_examples=60, deadline=None)
@given(data=st.data(), users=st.integers(1, 6), items=st.integers(4, 30), k=st.integers(1, 4))
def test_counting_finds_the_same_hits_as_sorting(data, users, items, k):
    order = st.permutations(range(items))
    scores = torch.tensor([data.draw(order) for _ in range(users)], dtype=torch.float32)
    scores[:, 0] = -torch.inf  # the padding
    positive = torch.zeros(users, items, dtype=torch.long)
    for row in positive:
        row[data.draw(st.lists(st.integers(1, items - 1), min_size=1, unique=True))] = 1
    positive_u, positive_i = positive.nonzero(as_tuple=True)
    assert can_count(scores, positive_u, positive_i)
    counts = RankCounts.from_scores(scores, positive_u, positive_i, in_numba)
    expected = torch.cat([positive.gather(1, scores.topk(k).indices), positive.sum(1, keepdim=True)], 1)
    assert torch.equal(counts.hits(k), expected)


def test_a_positive_amid_its_ties_stands_in_their_middle():
    scores = torch.tensor([[-torch.inf, 1.0, 1.0, 1.0, 1.0, 1.0]])
    user = torch.tensor([0])
    counts = RankCounts.from_scores(scores, user, torch.tensor([1]), in_numba)
    assert counts.hits(5)[0].tolist() == [0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("users", "items", "scores"),
    [
        ([0, 1, 1], [1, 2, 2], [[0.0, 1, 2], [3, 4, 5]]),
        ([0, 0], [1, 2], [[0.0, 1, 2], [3, 4, 5]]),
        ([0, 1], [1, 2], [[0.0, 1, 2], [3, 4, -torch.inf]]),
    ],
    ids=["named twice", "a user without any", "one that takes no part"],
)
def test_recbole_sorts_where_counting_does_not_know_better(users, items, scores):
    assert not can_count(torch.tensor(scores), torch.tensor(users), torch.tensor(items))


@pytest.mark.parametrize("mode", ["full", "uni20"])
def test_recboles_own_metrics_do_not_change_by_counting(tiny, mode, monkeypatch):
    every = ["Recall", "NDCG", "MRR", "Precision", "Hit", "MAP"]
    more = {"metrics": every, "valid_metric": "MRR@10", "topk": [1, 5, 10], "eval_args": {"mode": mode}}
    init_seed(7, True)  # RecBole splits the data and draws its negatives by the global generators
    counted = evaluated(tiny, **more)[-1]
    collecting = importlib.import_module("recbole_hns.bridge.collector")
    monkeypatch.setattr(collecting, "can_count", lambda *_: False)
    init_seed(7, True)
    assert evaluated(tiny, **more)[-1] == counted


def test_batches_that_are_counted_and_sorted_go_together(tiny, monkeypatch):
    more = {"metrics": ["Recall", "NDCG"], "valid_metric": "NDCG@10", "eval_batch_size": 300}
    init_seed(7, True)
    counted = evaluated(tiny, **more)[-1]
    collecting = importlib.import_module("recbole_hns.bridge.collector")
    turns = itertools.cycle([True, True, False])
    monkeypatch.setattr(collecting, "can_count", lambda *args: next(turns) and can_count(*args))
    init_seed(7, True)
    assert evaluated(tiny, **more)[-1] == counted
