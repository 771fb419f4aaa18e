import re
import subprocess
import sys

import pytest

from recbole_hns.cli.main import main
from recbole_hns.cli.parser import result_table
from recbole_hns.sampling.methods import all_methods

QUICK = ["--epochs=1", "--show_progress=False", "--N=10"]


def test_a_run_ends_with_a_result_table(capsys):
    assert main(["--model=MF", "--dataset=ml-100k", "--sampler=dns", "--M=2", *QUICK]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["metric", "valid", "test"]
    assert out.splitlines()[3].startswith("ndcg@10")


def test_config_files_are_read(tmp_path, capsys):
    (tmp_path / "a.yaml").write_text("sampler: softmax_v\nrho: -1\n")
    (tmp_path / "b.yaml").write_text("N: 7\n")
    assert main(["--model=MF", "--dataset=ml-100k", "--config_files=a.yaml b.yaml"]) == 2
    assert "rho=-1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--model=MF", "--dataset=ml-100k", "--sampler=dsn"],
        ["--model=MF", "--dataset=ml-100k", "--sampler=dns", "--M=0"],
        ["--model=MF", "--dataset=ml-100k", "--sampler=dns", "--M=300"],
        ["--model=MF", "--dataset=ml-100k", "--sampler=softmax_v", "--rho=0"],
        ["--model=MF", "--dataset=ml-100k", "--N=few"],
        ["--model=MF", "--dataset=nowhere"],
        ["--model=Nothing", "--dataset=ml-100k"],
        ["--model=NeuMF", "--dataset=ml-100k"],
        ["--model=MF"],
        ["--dataset=ml-100k"],
        [],
        ["train"],
        ["--model=MF", "--dataset=ml-100k", "--smapler=dns"],
        ["--model=MF", "--dataset=ml-100k", "--nproc=two"],
        ["--model=MF", "--dataset=ml-100k", "--config_files=missing.yaml"],
    ],
)
def test_a_mistake_gets_one_line_exit_code_2_and_leaves_nothing_behind(arguments, capsys, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("recbole-hns: error: ")
    assert captured.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_help_names_the_samplers_and_their_keys(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    words = ["softmax_v", "popularity", "--rho", "--tau", "--pool_block", "--lr_step_size"]
    assert all(word in out for word in [*words, *all_methods()])


def test_samplers_lists_all_with_their_settings(capsys):
    assert main(["samplers"]) == 0
    out = capsys.readouterr().out
    for name, one in all_methods().items():
        line, settings = re.search(rf"^{name} +(.*)\n +(.*)$", out, re.MULTILINE).groups()
        assert line == one.about
        assert settings.split(", ") == [f"{key}={value}" for key, value in one.defaults({}).items()]
    assert "M=20, N=200, pool=uniform" in out
    assert main(["samplers", "--foo"]) == 2


def test_the_command_is_a_real_process_too():
    command = [
        sys.executable,
        "-m",
        "recbole_hns",
        "--model=MF",
        "--dataset=ml-100k",
        "--sampler=dns",
        "--M=0",
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "M=0" in run.stderr


def test_result_table_survives_a_run_without_validation():
    result = {"best_valid_result": None, "test_result": {"ndcg@10": 0.25}}
    assert result_table(result).splitlines()[1].split() == ["ndcg@10", "0.25"]
