"""RecBole's case study on what our runs leave, and loading it again step by step."""

from pathlib import Path

import numpy as np
import pytest
from recbole.utils.case_study import full_sort_scores, full_sort_topk

from recbole_hns import Error, quick_start, run_recbole_hns

COMMON = {"N": 10, "epochs": 2, "train_batch_size": 64, "metric_decimal_place": 8, "state": "ERROR"}
MODELS = {  # and its sampler and settings
    "MF": ("softmax_v", {"embedding_size": 8}),
    "LightGCN": ("dns", {"embedding_size": 8, "n_layers": 1, "M": 3}),
    "SASRec": (
        "dns",
        {
            **{"hidden_size": 8, "inner_size": 8, "n_layers": 1, "M": 3},
            "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
        },
    ),
}


@pytest.fixture(params=MODELS)
def run(request, tiny):
    """A run's result, and what RecBole's step-by-step way has of its files."""
    sampler, settings = MODELS[request.param]
    result = run_recbole_hns(request.param, "tiny", sampler, config_dict={**COMMON, **settings, **tiny})
    return result, *quick_start.load_data_and_model("saved")


def items_by_user(data):
    """What each user took in a part."""
    users, items = (np.asarray(data.inter_feat[field]) for field in (data.uid_field, data.iid_field))
    return {int(user): set(items[users == user].tolist()) for user in np.unique(users)}


def test_the_topk_of_the_case_study_has_the_recall_of_the_run(run):
    """Recall@10 = mean over users of the share of their test items that are among the first ten."""
    result, config, model, _, _, _, test_data = run
    taken = items_by_user(test_data.dataset)
    _, top = full_sort_topk(list(taken), model, test_data, k=10, device=config["device"])
    shares = [
        len(taken[user] & set(row)) / len(taken[user])
        for user, row in zip(taken, top.tolist(), strict=True)
    ]
    assert np.mean(shares) == pytest.approx(result["test_result"]["recall@10"], abs=1e-7)


def test_the_scores_of_the_case_study_hide_the_padding_and_what_was_taken(run):
    _, config, model, _, train_data, valid_data, test_data = run
    users = [3, 1, 17]
    scores = full_sort_scores(users, model, test_data, device=config["device"])
    assert scores.shape == (3, model.n_items)
    if config["model"] == "SASRec":  # what was taken may be taken again
        assert (scores == -np.inf).nonzero().tolist() == [[0, 0], [1, 0], [2, 0]]
        return
    parts = [items_by_user(loader.dataset) for loader in (train_data, valid_data)]
    for user, row in zip(users, scores, strict=True):
        hidden = {0}.union(*(part.get(user, set()) for part in parts))
        assert set((row == -np.inf).nonzero().flatten().tolist()) == hidden


def test_what_is_loaded_again_is_tested_as_the_run_was(run):
    result, config, model, _, _, valid_data, test_data = run
    trainer = quick_start.get_trainer(config)(config, model)
    again = trainer.evaluate(test_data, load_best_model=False)
    assert dict(again) == result["test_result"]
    assert dict(trainer.evaluate(valid_data, load_best_model=False)) == result["best_valid_result"]


def test_a_checkpoint_of_recboles_own_is_loaded_where_it_is_trusted(tiny, monkeypatch):
    """RecBole pickles its configuration into the file, which can run code."""
    from recbole.quick_start import run_recbole

    from recbole_hns.bridge.install import install

    install()
    monkeypatch.setattr("sys.argv", ["run"])
    settings = {**tiny, "epochs": 1, "embedding_size": 8, "checkpoint_dir": "recboles"}
    result = run_recbole("BPR", "tiny", config_dict=settings)
    (file,) = Path("recboles").glob("BPR-*.pth")
    with pytest.raises(Error, match="trust"):
        quick_start.load_data_and_model(file)
    config, model, _, _, _, test_data = quick_start.load_data_and_model(file, trust_checkpoint=True)
    taken = items_by_user(test_data.dataset)
    _, top = full_sort_topk(list(taken), model, test_data, k=10, device=config["device"])
    hits = [bool(taken[user] & set(row)) for user, row in zip(taken, top.tolist(), strict=True)]
    assert np.mean(hits) == pytest.approx(result["test_result"]["hit@10"], abs=1e-4)
