"""recbole-hns evaluate: the same numbers again, or others of the same model and split."""

import os
from pathlib import Path

import pytest
from conftest import write_inter

from recbole_hns import Error, run_recbole_hns
from recbole_hns.cli.main import main
from recbole_hns.runs.evaluate import evaluate, theorem_interval

SMALL = {
    "epochs": 3,
    "sampler": "dns",
    "N": 10,
    "M": 2,
    "learning_rate": 0.05,
    "metric_decimal_place": 8,
}


def train(model, settings, **more):
    """The best model's file, and the run's result."""
    result = run_recbole_hns(model, "tiny", "dns", config_dict={**SMALL, **settings, **more})
    (file,) = (f for f in Path("saved").glob("*.pth") if ".last" not in f.name)
    return file, result


@pytest.mark.parametrize("model", ["MF", "LightGCN"])
def test_a_checkpoint_gives_the_numbers_of_its_run(tiny, model, capsys):
    file, result = train(model, tiny)
    before = sorted(path for path in Path().rglob("*"))
    again = evaluate(file)
    assert again["test_result"] == result["test_result"]
    assert again["best_valid_result"] == result["best_valid_result"]
    assert main(["evaluate", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["metric", "valid", "test"]
    assert float(lines[3].split()[2]) == result["test_result"]["ndcg@10"]
    assert sorted(path for path in Path().rglob("*")) == before  # nothing is written


def test_from_a_folder_that_cannot_be_written_to(tiny, monkeypatch):
    """Where it stands, the run's checkpoint_dir is no folder that a run could write to."""
    file, result = train("MF", tiny)
    before, access = sorted(Path().rglob("*")), os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **more: not mode & os.W_OK and access(path, mode)
    )
    assert evaluate(file)["test_result"] == result["test_result"]
    assert sorted(Path().rglob("*")) == before


def test_a_sequential_model_too(tiny):
    more = {"load_col": {"inter": ["user_id", "item_id", "timestamp"]}, "MAX_ITEM_LIST_LENGTH": 8}
    file, result = train("GRU4Rec", tiny, **more, hidden_size=8, embedding_size=8)
    assert evaluate(file)["test_result"] == result["test_result"]


def test_other_metrics_and_k_of_the_same_model(tiny, capsys):
    file, _ = train("MF", tiny)
    more = {"metrics": ["Recall", "NDCG", "OPAUC"], "topk": [5, 10, 20], "valid_metric": "NDCG@5"}
    other, _ = train("MF", tiny, **more, checkpoint_dir="other", epochs=3)
    assert other == file
    (last,) = Path("other").glob("*.last.pth")  # the best one is another, by another metric
    (mine,) = Path("saved").glob("*.last.pth")
    assert evaluate(mine, more) == evaluate(last)
    command = ["evaluate", str(file), "--metrics=Recall,NDCG,OPAUC", "--topk=5,20", "--opauc_beta=[0.1]"]
    assert main(command) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert names == ["recall@5", "recall@20", "ndcg@5", "ndcg@20", "opauc@0.1"]


def test_the_theorems_interval_holds_the_recall(tiny, capsys):
    file, _ = train("MF", tiny, topk=[5], valid_metric="Recall@5")
    assert main(["evaluate", str(file), "--metrics=Recall", "--theorem=5"]) == 0
    *_, recall, words = capsys.readouterr().out.splitlines()
    interval = theorem_interval(file, 5)
    assert interval.low <= interval.recall <= interval.high
    assert interval.recall == pytest.approx(float(recall.split()[2]), abs=1e-8)
    assert (interval.users, interval.of) == (40, 40)  # of 59 items each left 49 or so
    assert words == f"test Recall@5 is {interval}."
    assert theorem_interval(file, 55)[3:] == (0, 40)


def test_the_split_is_the_runs_own(tiny):
    file, result = train("MF", tiny, seed=7, split_seed=9)
    assert evaluate(file)["test_result"] == result["test_result"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nothing.pth"], "nothing.pth does not exist"),
        (["FILE", "--metrics=NDGC"], "NDGC"),
        (["FILE", "--topk=many"], "topk"),
        (["FILE", "--topk=0"], "topk"),
        (["FILE", "--topk=1000"], "topk=1000 is not possible: data set tiny has 59 items"),
        (["FILE", "--theorem=0"], "theorem=0"),
        (["FILE", "--theorem=many"], "theorem"),
        (["FILE", "--embedding_size=4"], "embedding_size"),
        (["FILE", "--seed=4"], "seed"),
        (["FILE", "--data_path=nowhere"], "tiny is neither in"),
        (["FILE", "--dataset=ml-100k"], "dataset"),
        (["FILE", "--what=4"], "what"),
        (["FILE", "more"], "more"),
        ([], "CHECKPOINT"),
        (["."], "no run in"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(tiny, arguments, word, capsys):
    file, _ = train("MF", tiny, epochs=1)
    capsys.readouterr()
    assert main(["evaluate", *(str(file) if a == "FILE" else a for a in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert word in captured.err


def test_other_data_are_noticed(tiny, tmp_path):
    file, _ = train("MF", tiny, epochs=1)
    pairs = [(f"u{u}", f"i{(u + i) % 60}") for u in range(40) for i in range(10)]
    write_inter(tmp_path / "other", "tiny", pairs)
    with pytest.raises(Error, match="not the one that the checkpoint was trained on"):
        evaluate(file, {"data_path": str(tmp_path / "other")})
