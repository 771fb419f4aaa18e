"""The corrected command after a mistake: nothing is left that it would stumble over."""

import importlib
from pathlib import Path

import pytest

from recbole_hns.cli.main import main


@pytest.mark.parametrize("mistake", ["--cpus=999", "--ray_address=127.0.0.1:1"])
def test_a_search_of_the_same_name_begins(tiny, mistake, monkeypatch, capsys):
    """Before, the folder of the first was there, and was told to be a search already."""
    command = ["tune", "--model=MF", "--dataset=tiny", "--sampler=dns", "--N=3", "--name=mine"]
    command += [f"--data_path={tiny['data_path']}", "--storage=searches"]
    assert main([*command, mistake]) == 2
    assert not Path("searches").exists()
    tune = importlib.import_module("recbole_hns.cli.tune")
    begun = []
    monkeypatch.setattr(tune, "run_search", lambda plan, folder, *_, **__: begun.append(folder))
    monkeypatch.setattr(tune, "summary_text", lambda *_: "")
    assert main(command) == 0, capsys.readouterr().err
    assert begun == [Path("searches/mine")]
