"""Runs that were begun by version 0.1.0, before the rooms of the package had their names, go on.

``old/SAMPLER.last.pth`` is an MF on the tiny data that was stopped after three of the five batches of
its third epoch, ``old/SAMPLER.pth`` its best model; the numbers are those that the same version went on
to.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch

from recbole_hns import run_recbole_hns
from recbole_hns.runs.evaluate import evaluate
from recbole_hns.training.checkpoint import read_checkpoint

OLD = Path(__file__).parent / "old"
LOSSES = {
    "dns": [3.5835844278, 3.4948601127, 3.4836079478, 3.4746986628, 3.4593303204],
    "adasir_p": [3.4504207373, 3.3892686963, 3.3359922171, 3.3093088269, 3.1849551201],
}
VALID = {
    "dns": [0.1177032705, 0.0467134899, 0.1060953133, 0.153143646, 0.1913406273],
    "adasir_p": [0.0399725258, 0.0327459052, 0.0319050442, 0.0125, 0.0343497437],
}
TEST = {
    "dns": {"recall@10": 0.475, "mrr@10": 0.1829861111, "ndcg@10": 0.2501793795}
    | {"hit@10": 0.475, "precision@10": 0.0475},
    "adasir_p": {"recall@10": 0.2, "mrr@10": 0.0548214286, "ndcg@10": 0.0889498555}
    | {"hit@10": 0.2, "precision@10": 0.02},
}


@pytest.fixture(params=["dns", "adasir_p"])
def old(request, tiny, tmp_path):
    """The sampler and the last state of an old run, in a folder that can be written to."""
    shutil.copytree(OLD, tmp_path / "saved")
    return request.param, tmp_path / "saved" / f"{request.param}.last.pth"


def test_an_old_run_goes_on_to_the_numbers_that_it_would_have_had(old):
    sampler, last = old
    result = run_recbole_hns(resume=last)
    record = json.loads(Path(result["result_file"]).read_text())
    assert [row["epoch"] for row in record["epochs"]] == [0, 1, 2, 3, 4]
    assert [row["train_loss"] for row in record["epochs"]] == pytest.approx(LOSSES[sampler], rel=1e-5)
    assert [row["score"] for row in record["epochs"]] == pytest.approx(VALID[sampler], rel=1e-5)
    assert record["best"]["epoch"] == VALID[sampler].index(max(VALID[sampler]))
    assert result["test_result"] == pytest.approx(TEST[sampler], rel=1e-5)


def test_an_old_best_model_is_evaluated(tiny):
    """Of adasir_p the first epoch stayed the best, so that its test is known."""
    found = evaluate(OLD / "adasir_p.pth")["test_result"]
    assert found == pytest.approx(TEST["adasir_p"], rel=1e-5)


def test_old_files_hold_tensors_and_plain_data_in_the_format_of_today(old):
    _, last = old
    state = read_checkpoint(last)
    assert state["versions"]["recbole-hns"] == "0.1.0"
    assert (state["epoch"], state["batch"], len(state["history"])) == (2, 3, 2)
    assert torch.load(last, weights_only=True)["format"] == 1
