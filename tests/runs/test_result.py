"""result.json: the whole run, as plain data."""

import json
from pathlib import Path

import pytest

from recbole_hns import Error, run_recbole_hns
from recbole_hns.runs.result import read_result

SETTINGS = {
    "epochs": 5,
    "sampler": "dns",
    "N": 20,
    "M": 2,
    "eval_step": 2,
    "metric_decimal_place": 6,
    "seed": 11,
}


def test_a_run_writes_all_that_happened(tiny):
    result = run_recbole_hns("MF", "tiny", "dns", config_dict={**tiny, **SETTINGS})
    file = Path(result["result_file"])
    assert file.parts[0] == "results"
    assert file.parent.name.startswith("BPR-tiny-dns-")
    record = read_result(file)
    assert record["test"] == pytest.approx(result["test_result"])
    assert record["sampler"] == {**result["sampler"]}
    assert (record["model"], record["dataset"], record["seed"]) == ("BPR", "tiny", 11)
    assert record["config"]["N"] == 20
    assert record["config"]["embedding_size"] == 32
    assert {"python", "torch", "recbole", "recbole-hns"} <= set(record["versions"])
    assert [row["epoch"] for row in record["epochs"]] == [0, 1, 2, 3, 4]
    validated = [row for row in record["epochs"] if "valid" in row]
    assert [row["epoch"] for row in validated] == [1, 3, 4]  # every second, and the last
    assert all(row["train_seconds"] > 0 and row["train_loss"] > 0 for row in record["epochs"])
    best = max(validated, key=lambda row: row["score"])
    assert record["best"]["epoch"] == best["epoch"]
    assert record["best"]["score"] == best["score"] == pytest.approx(result["best_valid_score"])
    assert record["best"]["valid"] == best["valid"]


def test_two_runs_of_the_same_second_do_not_meet(tiny):
    files = [
        run_recbole_hns("MF", "tiny", "uniform", config_dict={**tiny, "epochs": 1})["result_file"]
        for _ in range(3)
    ]
    assert len(set(files)) == 3


def test_results_can_be_left_out(tiny):
    settings = {**tiny, "epochs": 1, "result_dir": None}
    assert run_recbole_hns("MF", "tiny", "uniform", config_dict=settings)["result_file"] is None
    assert not Path("results").exists()


@pytest.mark.parametrize("content", ["", "[1]", "{}", json.dumps({"format": 99})])
def test_what_is_no_result_is_refused(tmp_path, content):
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(Error, match=r"result\.json"):
        read_result(tmp_path / "result.json")
