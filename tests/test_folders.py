"""A data set's folder in the place of another: one of the two is there, whenever the process dies."""

import subprocess
import sys
from pathlib import Path

import pytest

from recbole_hns.bridge.config import LayeredConfig
from recbole_hns.cli.main import main
from recbole_hns.data.locate import ensure_dataset
from recbole_hns.folders import put_in_place, recover

# Kills itself at the n-th call that changes a folder.
KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from recbole_hns import folders
left = int(sys.argv[1])
def at_times(call):
    def counted(*args, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **options)
    return counted
os.rename, shutil.rmtree = at_times(os.rename), at_times(shutil.rmtree)
folders.put_in_place(Path("new"), Path("data/mine"))
"""


def folders(old: bool = True) -> Path:
    for folder, content in [("new", "new"), *([("data/mine", "old")] if old else [])]:
        Path(folder).mkdir(parents=True)
        Path(folder, "mine.inter").write_text(content)
    Path("data").mkdir(exist_ok=True)
    return Path("data/mine")


def what_is_in(folder: Path) -> list[str]:
    """The content, with which nothing else lies there."""
    assert [file.name for file in folder.parent.iterdir()] == [folder.name]
    return [file.read_text() for file in folder.iterdir()]


@pytest.mark.parametrize("old", [True, False])
def test_the_new_folder_is_there_and_the_old_one_gone(old):
    target = folders(old)
    put_in_place(Path("new"), target)
    assert what_is_in(target) == ["new"]
    assert not Path("new").exists()


@pytest.mark.parametrize(("call", "left"), [(1, "old"), (2, "old"), (3, "old"), (4, "new"), (5, "new")])
def test_whoever_is_killed_leaves_one_of_them_whole(call, left):
    target = folders()
    done = subprocess.run([sys.executable, "-c", KILLED, str(call)])
    assert done.returncode == (-9 if call < 5 else 0)  # there are four such calls
    recover(target)
    assert [file.read_text() for file in target.iterdir()] == [left]
    Path("new").mkdir(exist_ok=True)
    Path("new/mine.inter").write_text("next")
    put_in_place(Path("new"), target)
    assert what_is_in(target) == ["next"]


def test_what_cannot_be_put_in_place_leaves_the_old_one():
    target = folders()
    with pytest.raises(OSError, match="missing"):
        put_in_place(Path("missing"), target)
    assert what_is_in(target) == ["old"]


@pytest.mark.parametrize("next_one", ["run", "convert", "convert --overwrite"])
def test_what_was_put_aside_comes_back_with_whatever_is_next(next_one, capsys):
    Path("raw.txt").write_text("1 2 3 4 5 6\n")
    convert = ["convert", "raw.txt", "--name=mine", "--output=data"]
    assert main(convert) == 0
    before = sorted(file.read_bytes() for file in Path("data/mine").iterdir())
    Path("data/mine").rename("data/.mine.old")  # as if killed between the two renames
    if next_one == "run":
        ensure_dataset(LayeredConfig("BPR", "mine", config_dict={"data_path": "data"}))
    elif next_one == "convert":
        assert main(convert) == 2
        assert "exists already" in capsys.readouterr().err
    else:
        assert main([*convert, "--overwrite"]) == 0
    assert sorted(file.read_bytes() for file in Path("data/mine").iterdir()) == before
    assert not Path("data/.mine.old").exists()
