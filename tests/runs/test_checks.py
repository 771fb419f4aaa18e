"""Settings that contradict the data are refused before a run begins, and nothing is left behind."""

from pathlib import Path

import pytest
import torch
from recbole.model.general_recommender import BPR
from recbole.utils import InputType

from recbole_hns import Error, run_recbole_hns

QUICK = {"epochs": 1, "sampler": "dns", "N": 5, "M": 2, "state": "ERROR"}


def refusal(tiny, model="BPR", **settings) -> str:
    before = sorted(Path().rglob("*"))
    with pytest.raises(Error) as error:
        run_recbole_hns(model, "tiny", config_dict={**tiny, **QUICK, **settings})
    assert sorted(Path().rglob("*")) == before
    return str(error.value)


def test_more_positions_than_items_are_refused(tiny):
    assert "topk=61 is not possible: data set tiny has 59 items" in refusal(
        tiny, topk=[61], valid_metric="MRR@61"
    )
    assert "opauc_k=61" in refusal(tiny, metrics=["MRR", "OPAUC"], opauc_k=[61])


def test_columns_that_are_missing_are_told_by_their_setting(tiny):
    """The last is dropped after the split: with a knowledge-aware model RecBole does not notice."""
    by_time = {"eval_args": {"order": "TO", "split": {"RS": [8, 1, 1]}}}
    assert "order=TO needs TIME_FIELD=timestamp" in refusal(tiny, **by_time)
    only_users = {"load_col": {"inter": ["user_id", "timestamp"]}}
    assert "data set tiny cannot be loaded" in refusal(tiny, **only_users)
    dropped = {"unused_col": {"inter": ["item_id"]}}
    assert "unused_col={'inter': ['item_id']} drops ITEM_ID_FIELD=item_id" in refusal(tiny, **dropped)


def test_a_model_whose_sizes_do_not_fit_is_refused(tiny):
    assert "DGCF cannot be built" in refusal(tiny, "DGCF", n_factors=3)
    assert "assert self.embedding_size % self.n_factors == 0" in refusal(tiny, "DGCF", n_factors=3)
    assert "GCMC cannot score" in refusal(tiny, "GCMC", class_num=1)
    assert "train_batch_size=2048 is too large for DGCF" in refusal(tiny, "DGCF")


def test_an_error_in_a_model_of_ones_own_is_not_hidden(tiny):
    class Broken(BPR):
        input_type = InputType.PAIRWISE

        def __init__(self, config, dataset):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_recbole_hns(Broken, "tiny", config_dict={**tiny, **QUICK})


def test_what_recbole_saves_is_saved_when_a_run_begins_and_not_before(tiny):
    assert "GCMC cannot score" in refusal(
        tiny, "GCMC", class_num=1, save_dataset=True, save_dataloaders=True
    )
    both = {"save_dataset": True, "save_dataloaders": True}
    first, again = (
        run_recbole_hns("BPR", "tiny", config_dict={**tiny, **QUICK, **both})["test_result"]
        for _ in range(2)
    )
    assert {"tiny-Dataset.pth", "tiny-for-BPR-dataloader.pth"} <= {
        f.name for f in Path("saved").iterdir()
    }
    assert first == again


def test_the_rehearsal_changes_no_result(tiny, monkeypatch):
    def result():
        return run_recbole_hns("SGL", "tiny", config_dict={**tiny, **QUICK, "epochs": 2})["test_result"]

    with_it = result()
    monkeypatch.setattr("recbole_hns.runs.pipeline.rehearse", lambda *_: None)
    assert result() == with_it


def test_metrics_of_items_are_evaluated(tiny):
    metrics = [
        "MRR",
        "ItemCoverage",
        "AveragePopularity",
        "ShannonEntropy",
        "GiniIndex",
        "TailPercentage",
    ]
    result = run_recbole_hns("BPR", "tiny", config_dict={**tiny, **QUICK, "metrics": metrics})
    assert {name.partition("@")[0] for name in result["test_result"]} == {m.lower() for m in metrics}


@pytest.mark.parametrize("alpha", [100.0, 1e30])
def test_popularity_with_a_huge_power_draws_the_most_popular(tiny, alpha):
    settings = {**tiny, "epochs": 1, "N": 5, "pool_alpha": alpha, "sampler": "popularity"}
    assert torch.tensor(run_recbole_hns("BPR", "tiny", config_dict=settings)["best_valid_score"]) >= 0
