"""Files are whole or not there, whatever happens while they are written."""

import errno
import json
import os
from pathlib import Path

import pytest

from recbole_hns import Error, files
from recbole_hns.files import whole_file, write_json


def write(path, text, **more):
    with whole_file(path, **more) as stream:
        stream.write(text)


@pytest.fixture
def file(tmp_path):
    """A file that is there already."""
    file = tmp_path / "own" / "x.txt"
    file.parent.mkdir()
    write(file, "old")
    return file


def test_a_file_is_replaced_when_it_is_written_to_its_end(file):
    with whole_file(file) as stream:
        stream.write("new")
        stream.flush()
        assert file.read_text() == "old"
    assert file.read_text() == "new"
    assert os.listdir(file.parent) == ["x.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_goes_wrong_while_writing_leaves_the_old_file_and_nothing_else(file, error):
    def rows():
        yield "half"
        raise error

    with pytest.raises(error), whole_file(file) as stream:
        stream.writelines(rows())
    assert file.read_text() == "old"
    assert os.listdir(file.parent) == ["x.txt"]


CALLS = [("open", 1), ("fsync", 1), ("replace", 1), ("replace", 2), ("fsync", 2)]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize(("call", "count"), CALLS)
def test_a_fault_at_any_call_is_a_sentence_and_leaves_a_whole_file(
    file, monkeypatch, call, count, number
):
    original, seen = (open if call == "open" else getattr(os, call)), []

    def faulty(*args, **kwargs):
        seen.append(call)
        if len(seen) == count:
            raise OSError(number, os.strerror(number))
        return original(*args, **kwargs)

    monkeypatch.setattr(*((files, "open") if call == "open" else (os, call)), faulty, raising=False)
    with pytest.raises(Error, match=rf"x\.txt cannot be written: {os.strerror(number)}\.$"):
        write(file, "new", keep=file.with_name("kept"))
    monkeypatch.undo()
    after_the_end = (call, count) == ("fsync", 2)  # of the folder
    assert file.read_text() == ("new" if after_the_end else "old")
    assert set(os.listdir(file.parent)) == ({"x.txt", "kept"} if after_the_end else {"x.txt"})
    write(file, "newer")
    assert file.read_text() == "newer"


def test_a_file_system_that_cannot_sync_a_folder_will_do(file, monkeypatch):
    sync = os.fsync
    handles = []

    def no_folders(handle):
        handles.append(handle)
        if len(handles) == 2:
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(handle)

    monkeypatch.setattr(os, "fsync", no_folders)
    write(file, "new")
    assert len(handles) == 2
    assert file.read_text() == "new"


def test_what_a_killed_process_left_is_replaced(file):
    left = file.with_name(".x.txt.tmp")
    left.write_text("half of what a process wrote that was killed")
    write(file, "new")
    assert file.read_text() == "new"
    assert os.listdir(file.parent) == ["x.txt"]


def test_nothing_is_written_through_a_link_at_the_temporary_name(file, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    file.with_name(".x.txt.tmp").symlink_to(victim)
    write(file, "new")
    assert victim.read_text() == "mine"
    assert file.read_text() == "new"
    assert not file.is_symlink()


def test_of_two_that_write_one_file_at_once_the_first_is_told_and_the_second_wins(file):
    first, second = whole_file(file), whole_file(file)
    first.__enter__().write("first")
    second.__enter__().write("second")
    with pytest.raises(Error, match="another process is writing it too"):
        first.__exit__(None, None, None)
    assert file.read_text() == "old"
    second.__exit__(None, None, None)
    assert file.read_text() == "second"
    assert os.listdir(file.parent) == ["x.txt"]


def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    for path in (tmp_path, Path(os.devnull)):
        with pytest.raises(Error, match="not a regular file"):
            write(path, "x")
    assert Path(os.devnull).is_char_device()


def test_a_new_file_has_the_rights_that_files_have_here(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "x", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def test_the_one_before_is_kept_under_its_name(tmp_path):
    file, kept = tmp_path / "x", tmp_path / "y"
    for text in "abc":
        write(file, text, keep=kept)
    assert (file.read_text(), kept.read_text()) == ("c", "b")


def test_rows_reach_the_disk_while_they_are_written(file):
    with whole_file(file, newline="") as stream:
        for _ in range(100_000):
            stream.write("row\r\n")
        assert file.with_name(".x.txt.tmp").stat().st_size > 490_000
    assert file.read_bytes() == b"row\r\n" * 100_000


def test_json_is_read_back(tmp_path):
    content = {"β": [1, 2.5, None, "é"]}
    assert write_json(content, tmp_path / "x.json") == tmp_path / "x.json"
    text = (tmp_path / "x.json").read_text("utf-8")
    assert json.loads(text) == content
    assert "β" in text
    assert text.endswith("\n")
