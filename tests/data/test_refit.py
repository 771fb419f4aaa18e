"""Refit: the validation part is trained on, and the test part stays what it was."""

import json
from pathlib import Path

from conftest import prepare
from recbole.data import create_dataset, data_preparation
from recbole.utils import init_seed

from recbole_hns import HNSConfig, run_recbole_hns
from recbole_hns.data.refit import join_validation
from recbole_hns.runs.evaluate import evaluate


def pairs(part):
    feat = part._dataset.inter_feat
    return sorted(zip(feat["user_id"].tolist(), feat["item_id"].tolist()))


def test_training_gets_the_validation_pairs_and_nothing_of_the_test(tiny):
    for model in ("BPR", "SASRec"):
        init_seed(5, True)
        _, train, valid, test = prepare(model, **tiny)
        config = HNSConfig(model, "tiny", config_dict=tiny)
        init_seed(5, True)
        data = create_dataset(config)
        join_validation(data)
        whole, empty, same_test = data_preparation(config, data)
        assert pairs(whole) == sorted(pairs(train) + pairs(valid))
        assert len(empty._dataset) == 0
        assert pairs(same_test) == pairs(test)


def test_a_refit_trains_all_epochs_and_is_evaluated_as_it_was_tested(tiny):
    settings = {**tiny, "refit": True, "epochs": 4, "N": 9, "rho": 2, "valid_metric": "NDCG@10"}
    result = run_recbole_hns("BPR", "tiny", config_dict=settings)
    record = json.loads(Path(result["result_file"]).read_text())
    assert [row["epoch"] for row in record["epochs"]] == [0, 1, 2, 3]
    assert record["best"]["valid"] is None
    assert record["config"]["refit"] is True
    (best,) = [f for f in Path("saved").glob("*.pth") if ".last" not in f.name]
    assert evaluate(best)["test_result"] == result["test_result"]
