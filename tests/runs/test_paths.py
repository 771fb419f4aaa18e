"""``~`` is the home folder wherever a path is given, in a file and on the command line: no shell sees it."""

import json
from pathlib import Path

import pytest
from conftest import random_pairs, write_inter

from recbole_hns import load
from recbole_hns.cli.main import main
from recbole_hns.files import a_path

SMALL = "epochs: 1\nsampler: dns\nN: 5\nM: 1\nshow_progress: false\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder with a data set and a property file."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    write_inter(home / "data", "tiny", random_pairs())
    (home / "own.yaml").write_text(SMALL)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return home


PATHS = ["data_path=~/data", "checkpoint_dir=~/saved", "result_dir=~/results"]


def the_model(home):
    (file,) = (file for file in (home / "saved").glob("*.pth") if ".last" not in file.name)
    return f"~/saved/{file.name}"


@pytest.mark.parametrize("way", ["command line", "file"])
def test_a_run_reads_and_writes_at_home(home, way):
    given = [f"--{path}" for path in PATHS]
    if way == "file":
        (home / "own.yaml").write_text(SMALL + "".join(p.replace("=", ": ") + "\n" for p in PATHS))
        given = []
    assert main(["--model=MF", "--dataset=tiny", "--config_files=~/own.yaml", *given]) == 0
    (record,) = (home / "results").glob("*/result.json")
    assert json.loads(record.read_text())["sampler"]["N"] == 5
    assert the_model(home)
    assert not Path("~").exists()
    assert not Path("saved").exists()


def test_commands_find_what_is_at_home(home, capsys):
    """Evaluate, recommend, resume, report and Python's load."""
    given = [f"--{path}" for path in PATHS]
    assert main(["--model=MF", "--dataset=tiny", "--config_files=~/own.yaml", *given]) == 0
    table = capsys.readouterr().out
    model = the_model(home)
    assert main(["evaluate", model, "--data_path=~/data"]) == 0
    assert capsys.readouterr().out == table
    (home / "users.txt").write_text("u1\nu2\n")
    assert main(["recommend", model, "--users=~/users.txt", "--k=3", "--output=~/lists.csv"]) == 0
    assert len((home / "lists.csv").read_text().splitlines()) == 1 + 2 * 3
    assert main(["--resume=~/saved", "--epochs=2"]) == 0
    assert len(list((home / "results").glob("*/result.json"))) in (1, 2)
    assert main(["report", "~/results", "--output=~/report"]) == 0
    assert (home / "report" / "table.md").is_file()
    assert load("~/saved").config["model"] == "BPR"
    assert not Path("~").exists()


def test_a_search_is_stored_at_home(home):
    from recbole_hns.cli.tune import make_parser

    options = make_parser().parse_args(["--storage=~/tuning", "--resume=~/tuning/one"])
    assert (options.storage, options.resume) == (home / "tuning", home / "tuning" / "one")


def test_an_unknown_users_home_stays_as_it_is_typed(home, capsys):
    assert a_path("~nobody-of-that-name/x") == Path("~nobody-of-that-name/x")
    assert a_path("~/x") == home / "x"
    assert a_path("a/~/x") == Path("a/~/x")
    assert main(["--model=MF", "--dataset=tiny", "--data_path=~nobody-of-that-name/x"]) == 2
    assert "data set tiny is neither in" in capsys.readouterr().err
