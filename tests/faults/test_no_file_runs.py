"""No command runs what is in a file: neither by a pickle nor by YAML nor by a value."""

from __future__ import annotations

import io
import os
import pickle
import random
import shutil
from pathlib import Path

import pytest
import torch
from fuzzing import run_here, train_one, write_data
from hostile import CACHES, KINDS, MARK, TUNE, WAYS, Variant, variants

from recbole_hns.cli.main import main

ALL = variants()
FAST = [one for one in ALL if not one.slow][::9]


@pytest.fixture(scope="module")
def beginnings(tmp_path_factory):
    """A folder with data and a trained model, of which every variant gets a copy."""
    place = tmp_path_factory.mktemp("hostile")
    data = place / "folder/data"
    write_data(data)
    (data / "tiny/tiny.yaml").unlink()
    train_one(place / "trained", data)
    for file in (data / "trained").iterdir():
        shutil.move(file, place / "folder" / file.name)
    return place / "folder"


def try_it(variant: Variant, beginnings: Path, folder: Path) -> str | None:
    """What went wrong, if anything did."""
    shutil.copytree(beginnings, folder)
    os.chdir(folder)
    variant.put()
    outcome = run_here(variant.line, folder, folder)
    if any(folder.rglob(MARK)):
        return f"{variant.name}: ran"
    if outcome.code not in (0, 2) or "Traceback" in outcome.error:
        return f"{variant.name}: {outcome.error[-2000:]}"
    return None


def assert_none_runs(chosen: list[Variant], beginnings: Path, folder: Path) -> None:
    wrong = [try_it(one, beginnings, folder / str(n)) for n, one in enumerate(chosen)]
    found = [text for text in wrong if text]
    print(f"{len(chosen)} files that try to run code: {sum(': ran' in text for text in found)} ran")
    assert not found, "\n\n".join(found)


def test_none_of_a_few_files_runs(beginnings, tmp_path):
    assert_none_runs(FAST, beginnings, tmp_path)


@pytest.mark.slow
def test_no_file_runs(beginnings, tmp_path):
    chosen = [one for one in ALL if not one.slow]
    assert len(chosen) >= 100
    random.Random(18).shuffle(chosen)
    assert_none_runs(chosen, beginnings, tmp_path)


@pytest.mark.slow
def test_no_file_in_the_folder_of_a_search_runs(beginnings, tmp_path, monkeypatch):
    monkeypatch.setattr("fuzzing.TIME_LIMIT", 300)  # Ray starts and trains
    first = tmp_path / "first"
    shutil.copytree(beginnings, first)
    os.chdir(first)
    Path("search.yaml").write_text("M: {grid: [1, 2]}\n")
    assert main([*TUNE, "--search=search.yaml", "--name=found"]) == 0
    assert_none_runs([one for one in ALL if one.slow], first, tmp_path / "again")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_runs_where_it_is_trusted(kind, way, tmp_path):
    """So that the tests above could fail."""
    content = KINDS[kind](WAYS[way]())
    if kind.startswith("pickle"):
        pickle.loads(content)
    elif kind != "renamed":  # which no reader of today takes
        torch.load(io.BytesIO(content), weights_only=False)
    assert Path(MARK).exists() == (kind != "renamed")


def test_the_caches_are_where_recbole_looks(beginnings):
    """RecBole's own functions run what lies there: what is kept from running could."""
    from recbole.config import Config
    from recbole.data import create_dataset

    Path(CACHES[0]).parent.mkdir()
    Path(CACHES[0]).write_bytes(pickle.dumps(WAYS["exec"]()))
    settings = {"data_path": str(beginnings / "data"), "checkpoint_dir": "saved"}
    with pytest.raises(Exception):  # noqa: B017, PT011  what ran is no data set
        create_dataset(Config("BPR", "tiny", config_dict=settings))
    assert Path(MARK).exists()
