"""What a run leaves: its numbers, lists and vectors, from the call that trained it or from its file."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import random_pairs
from recbole.model.general_recommender import BPR

import recbole_hns as hns
from recbole_hns.runs.recommend import recommend

SMALL = {
    **{"epochs": 4, "eval_step": 2, "N": 10, "M": 2, "embedding_size": 8, "train_batch_size": 64},
    **{"metric_decimal_place": 8, "learning_rate": 0.05, "state": "ERROR"},
}


@pytest.fixture
def trained(tiny):
    return hns.train("LightGCN", "tiny", "dns", **tiny, **{**SMALL, "n_layers": 2})


def test_the_test_result_is_that_of_run_recbole_hns(tiny, trained):
    settings = {**tiny, **SMALL, "n_layers": 2}
    result = hns.run_recbole_hns("LightGCN", "tiny", "dns", config_dict=settings)
    assert trained.test == result["test_result"]
    assert trained.evaluate() == {key: result[key] for key in ("best_valid_result", "test_result")}


def test_the_history_has_a_row_for_each_epoch(trained):
    history = trained.history
    assert isinstance(history, pd.DataFrame)
    assert history["epoch"].tolist() == [0, 1, 2, 3]
    assert history["score"].notna().tolist() == [False, True, False, True]
    assert history["ndcg@10"].max() == trained.evaluate()["best_valid_result"]["ndcg@10"]
    assert (history["train_seconds"] > 0).all()
    assert history["train_loss"].iloc[-1] < history["train_loss"].iloc[0]


def test_what_is_loaded_is_what_was_trained(trained):
    again = hns.load(trained.file)
    assert again.test == trained.test
    pd.testing.assert_frame_equal(
        again.history.drop(columns=["train_seconds", "valid_seconds"]),
        trained.history.drop(columns=["train_seconds", "valid_seconds"]),
    )
    for name, value in again.model.state_dict().items():
        assert torch.equal(value, trained.model.state_dict()[name])
    assert hns.load(Path(trained.file).parent).test == trained.test  # of a folder, the newest run


@pytest.mark.parametrize("model", ["MF", "LightGCN", "SASRec"])
def test_vectors_rank_as_recommend_does(tiny, model):
    """By hand: the best dot products among the items that the user did not take."""
    own = {
        "MF": {},
        "LightGCN": {"n_layers": 2},
        "SASRec": {
            **{"load_col": {"inter": ["user_id", "item_id", "timestamp"]}, "MAX_ITEM_LIST_LENGTH": 8},
            **{"hidden_size": 8, "inner_size": 8, "n_layers": 1},
        },
    }[model]
    settings = {
        key: value for key, value in SMALL.items() if (model, key) != ("SASRec", "embedding_size")
    }
    trained = hns.train(model, "tiny", "dns", **tiny, **settings, **own)
    vectors = trained.vectors()
    assert (vectors.users.dtype, vectors.items.dtype) == (np.float32, np.float32)
    assert vectors.users.shape == (40, 8)
    assert vectors.items.shape == (len(vectors.item_ids), 8)
    lists = trained.recommend(["u7", "u3"], k=4)
    assert list(lists) == ["user", "item", "rank", "score"]
    assert lists["user"].tolist() == ["u7"] * 4 + ["u3"] * 4
    for user in ("u7", "u3"):
        taken = {item for who, item in random_pairs() if who == user}
        context = vectors.users[list(vectors.user_ids).index(user)]
        scores = {
            item: float(context @ vector)
            for item, vector in zip(vectors.item_ids, vectors.items, strict=True)
            if item not in taken
        }
        best = sorted(scores, key=scores.get, reverse=True)[:4]
        own_rows = lists[lists["user"] == user]
        assert own_rows["item"].tolist() == best
        assert own_rows["score"].tolist() == pytest.approx([scores[item] for item in best], rel=1e-4)


def test_recommend_takes_ids_that_are_numbers_and_all_users_by_default(trained):
    lists = trained.recommend(k=3)
    assert lists["user"].nunique() == 40
    assert lists["rank"].tolist() == [1, 2, 3] * 40
    rows = [(row.user, row.item) for row in recommend(trained.file, k=3)]
    assert list(zip(lists["user"], lists["item"], strict=True)) == rows
    with pytest.raises(hns.Error, match="users=7 are unknown"):
        trained.recommend([7])


def test_other_metrics_of_the_same_model(trained):
    more = trained.evaluate(metrics=["NDCG", "OPAUC"], topk=[5, 10], opauc_beta=[0.1])["test_result"]
    assert set(more) == {"ndcg@5", "ndcg@10", "opauc@0.1"}
    assert more["ndcg@10"] == trained.test["ndcg@10"]


def test_a_model_whose_scores_are_no_dot_products_has_no_vectors(tiny):
    trained = hns.train("ConvNCF", "tiny", "uniform", **tiny, epochs=1, state="ERROR")
    with pytest.raises(hns.Error, match="ConvNCF has no vectors"):
        trained.vectors()
    assert len(trained.recommend(["u1"], k=2)) == 2


# ----------------------------------------------------------------------------------- objects


def test_a_method_is_trained_as_the_name_that_it_has(tiny):
    settings = {**tiny, **SMALL}
    settings.pop("N")
    settings.pop("M")
    method = hns.Method(hns.pools.Uniform(), hns.rules.DNS(M=2), N=10)
    by_object = hns.train("MF", "tiny", method=method, **settings)
    by_name = hns.train("MF", "tiny", "dns", **settings, N=10, M=2)
    assert by_object.test == by_name.test
    assert by_object.config.settings == by_name.config.settings


METHODS = [
    (
        hns.Method(hns.pools.Popularity(), hns.rules.DNS(M=2), N=5),
        {"sampler": "dns", "pool": "popularity"},
    ),
    (hns.Method(hns.pools.Popularity(), hns.rules.Uniform(), N=1), {"sampler": "popularity"}),
    (hns.Method(hns.pools.Everything(), hns.rules.Uniform()), {"sampler": "non_sampling"}),
    (
        hns.Method(hns.pools.Kernel(), hns.rules.SoftmaxV(0.2)),
        {"sampler": "softmax_v", "pool": "kernel"},
    ),
    (hns.Method(rule=hns.rules.WARP(), loss=hns.losses.Hinge()), {"sampler": "warp"}),
    (hns.Method(loss=hns.losses.Hinge(0.3)), {"sampler": "softmax_v", "margin": 0.3}),
]


@pytest.mark.parametrize(("method", "spelled"), METHODS)
def test_a_run_with_a_method_can_be_read_by_another_process(tiny, method, spelled):
    """Every combination of named parts is written as settings: its checkpoint says all that it takes."""
    trained = hns.train("MF", "tiny", method=method, **tiny, epochs=1, state="ERROR")
    assert trained.config.method == method
    written = trained.state["final"]
    assert {key: written[key] for key in spelled} == spelled
    code = "import json, recbole_hns as hns\n"
    code += (
        f"print(json.dumps(hns.load({str(trained.file)!r}).evaluate()['test_result'], default=float))"
    )
    if method is METHODS[0][0]:  # each takes seconds
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout.splitlines()[-1]) == trained.test


class Coldest(hns.Rule):
    """The hardest candidate alone; a rule that nobody has registered."""

    def weigh(self, s):
        return (s.ell == s.ell.max(1, keepdim=True).values).float()


def test_a_method_of_parts_that_have_no_name_trains_in_this_process(tiny, clean_registry):
    method = hns.Method(rule=Coldest(), N=10)
    trained = [hns.train("MF", "tiny", method=method, **tiny, epochs=1, state="ERROR") for _ in range(2)]
    assert trained[0].test == trained[1].test
    assert trained[0].config.settings["sampler"] == trained[1].config.settings["sampler"]
    assert trained[0].config.method == method


def test_a_sampler_and_a_method_are_one_too_many(tiny):
    with pytest.raises(hns.Error, match="two ways to say the same"):
        hns.train("MF", "tiny", "dns", method=hns.Method(), **tiny)


class OwnModel(BPR):
    """A model that RecBole does not know."""


def test_a_model_class_of_ones_own_is_loaded_with_its_class(tiny):
    trained = hns.train(OwnModel, "tiny", "dns", **tiny, **SMALL)
    with pytest.raises(hns.Error, match="a model class of your own"):
        hns.load(trained.file)
    assert hns.load(trained.file, model=OwnModel).test == trained.test


@pytest.mark.parametrize("where", ["nowhere.pth", "."])
def test_where_there_is_no_run_is_told_in_a_sentence(where):
    with pytest.raises(hns.Error, match=r"does not exist|no run in"):
        hns.load(where)
