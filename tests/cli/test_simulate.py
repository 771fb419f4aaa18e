from pathlib import Path

import pytest

from recbole_hns.cli.main import main

SMALL = ["--n_pos=20", "--n_neg=80", "--permutations=500", "--topk=5,10", "--n_betas=10"]


def test_correlation_prints_a_table_and_writes_both_files(capsys):
    assert main(["simulate", "correlation", *SMALL, "--output=out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["metric", "best", "β", "correlation", "AUC"]
    assert [line.split()[0] for line in lines[1:3]] == ["Precision@5", "Precision@10"]
    assert {path.name for path in Path("out").iterdir()} == {"correlation.csv", "correlation.png"}


def test_sampling_on_generated_embeddings(capsys):
    assert (
        main(["simulate", "sampling", "--draws=200", "--M=1,2", "--N=10", "--rho=1", "--output=out"])
        == 0
    )
    out = capsys.readouterr().out
    assert "DNS(2, 200)" in out
    assert {path.name for path in Path("out").iterdir()} == {"sampling.csv", "sampling.png"}


@pytest.mark.parametrize("model", ["MF", "LightGCN"])
def test_sampling_on_a_trained_model_and_a_named_pair(tiny, capsys, model):
    data = f"--data_path={tiny['data_path']}"
    train = [f"--model={model}", "--dataset=tiny", data, "--epochs=1", "--show_progress=False"]
    assert main(train) == 0
    checkpoint = next(Path("saved").glob("*.pth"))
    command = ["simulate", "sampling", f"--checkpoint={checkpoint}", "--draws=100", "--output=out"]
    assert main(command) == 0
    capsys.readouterr()
    assert main([*command, "--user=u1", "--item=nothing"]) == 2
    assert "nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["correlation", "--n_pos=0"],
        ["correlation", "--n_neg=0"],
        ["correlation", "--topk="],
        ["correlation", "--topk=2000"],
        ["correlation", "--permutations=one"],
        ["correlation", "--unknown=1"],
        ["sampling", "--M=0"],
        ["sampling", "--M=201"],
        ["sampling", "--N=1"],
        ["sampling", "--rho=-1"],
        ["sampling", "--draws=0"],
        ["sampling", "--checkpoint=missing.pth"],
        ["sampling", "--user=u1"],
    ],
)
def test_a_mistake_gets_one_line_and_leaves_nothing_behind(arguments, capsys, tmp_path):
    assert main(["simulate", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("recbole-hns: error: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
