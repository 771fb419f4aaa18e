"""One process at a time trains a run, writes a data set or searches; runs of one process share no file."""

import json
import logging
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from killable import assert_same, at_moment, finish, settings_for, start, what_is_left

from recbole_hns import run_recbole_hns
from recbole_hns.cli.main import main
from recbole_hns.locks import alone
from recbole_hns.training.stopping import RunStopped


@contextmanager
def somebody_else_holds(path):
    """Another thread has the lock, which is as good as another process."""
    held, end = threading.Event(), threading.Event()

    def hold():
        with alone(path):
            held.set()
            end.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    yield
    end.set()
    thread.join()


def refused(arguments, capsys):
    """The one line that a command ends with."""
    assert main(arguments) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("recbole-hns: error: ")
    return said


@pytest.fixture
def stopped(tmp_path, tiny):
    """The last state of a run that was stopped in its third epoch."""
    settings = settings_for("dns", tiny["data_path"], tmp_path / "run")
    moment = at_moment("batch", 13, lambda: signal.raise_signal(signal.SIGINT))
    with moment, pytest.raises(RunStopped) as stop:
        run_recbole_hns("MF", "tiny", "dns", config_dict=settings)
    return stop.value.checkpoint


@pytest.mark.parametrize("by", ["file", "folder", "nothing"])
def test_a_run_that_is_trained_is_not_resumed_by_another(stopped, capsys, by):
    """Before, both wrote: four of six died, and one lost its best model."""
    before = {file: file.read_bytes() for file in stopped.parent.iterdir()}
    named = {"file": [f"--resume={stopped}"], "folder": [f"--resume={stopped.parent}"]}
    best = Path(str(stopped).replace(".last", ""))
    with somebody_else_holds(best):
        given = named.get(by, ["--resume", f"--checkpoint_dir={stopped.parent}"])
        assert "is being trained by another process" in refused(given, capsys)
    assert {file: file.read_bytes() for file in stopped.parent.iterdir()} == before
    assert main([f"--resume={stopped}"]) == 0
    assert not list(stopped.parent.glob(".*"))


@pytest.mark.slow
def test_two_that_go_on_at_once_end_as_one(tmp_path, tiny):
    whole = settings_for("dns", tiny["data_path"], tmp_path / "whole")
    run_recbole_hns("MF", "tiny", "dns", config_dict=whole)
    for number in range(5):
        folder = tmp_path / str(number)
        settings = settings_for("dns", tiny["data_path"], folder)
        finish(start(folder, "dns", settings, kind="batch", count=8), -signal.SIGKILL)
        (last,) = folder.glob("saved/*.last.pth")
        both = [start(folder, "dns", settings, resume=str(last)) for _ in range(2)]
        for process in both:
            process.join(120)
        codes = sorted(process.exitcode for process in both)
        assert codes in ([0, 0], [0, 1])  # the second is refused, or comes when the first has ended
        assert_same(what_is_left(tmp_path / "whole"), what_is_left(folder))
        assert not list(folder.glob("saved/.*"))


def test_a_data_set_that_is_written_is_not_written_by_another(tmp_path, capsys):
    Path("a.csv").write_text("user_id,item_id\nu,i\nu,j\nv,i\n")
    assert main(["convert", "a.csv", "--name=mine", "--split=none"]) == 0
    before = {file.name: file.read_bytes() for file in Path("dataset/mine").iterdir()}
    with somebody_else_holds(tmp_path / "dataset" / "mine"):
        again = ["convert", "a.csv", "--name=mine", "--split=none", "--overwrite"]
        assert "mine is in the hands of another process" in refused(again, capsys)
        assert main(["convert", "a.csv", "--name=other", "--split=none"]) == 0
    assert {file.name: file.read_bytes() for file in Path("dataset/mine").iterdir()} == before
    assert not list(Path("dataset").glob(".*"))


def test_a_search_that_runs_is_not_run_by_another(tmp_path, tiny, capsys):
    Path("tuning").mkdir()
    command = ["tune", "--model=MF", "--dataset=tiny", "--sampler=dns", "--name=mine", "--epochs=1"]
    command.append(f"--data_path={tiny['data_path']}")
    with somebody_else_holds(tmp_path / "tuning" / "mine"):
        assert "mine is in the hands of another process" in refused(command, capsys)
    assert not list(Path("tuning").iterdir())


# ----------------------------------------------------------------------------------- in one process


@contextmanager
def as_a_program():
    """Without pytest's log, beside which a run has none of its own."""
    root = logging.getLogger()
    handlers, level, root.handlers = root.handlers, root.level, []
    try:
        yield
        assert root.handlers == []
    finally:
        root.handlers = handlers
        root.setLevel(level)


def test_runs_of_one_process_have_each_a_log_and_curves_of_their_own(tmp_path, tiny):
    """Before, the second wrote into the first one's."""
    out, err = sys.stdout, sys.stderr
    threads = []
    for seed in (1, 2, 3):
        settings = settings_for("dns", tiny["data_path"], tmp_path / "run", epochs=1, seed=seed)
        with as_a_program():
            run_recbole_hns("MF", "tiny", "dns", config_dict={**settings, "state": "INFO"})
        threads.append(set(threading.enumerate()))
    logs = sorted(Path("log/BPR").iterdir(), key=lambda file: file.stat().st_mtime_ns)
    assert len(logs) == len(list(Path("log_tensorboard").iterdir())) == 3
    for seed, log in zip((1, 2, 3), logs):
        text = log.read_text()
        assert f"seed = {seed}\n" in text
        assert text.count("test result") == 1
    assert (sys.stdout, sys.stderr) == (out, err)  # RecBole wrapped them once more for every run
    assert threads[0] == threads[2]


def test_curves_are_as_tensorboards_own(tmp_path, tiny):
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    settings = settings_for("dns", tiny["data_path"], tmp_path / "run", epochs=3)
    record = run_recbole_hns("MF", "tiny", "dns", config_dict=settings)
    rows = json.loads(Path(record["result_file"]).read_text())["epochs"]
    (folder,) = Path("log_tensorboard").iterdir()
    (file,) = folder.glob("events.*")
    seen = {
        (value.tag, event.step): value.tensor.float_val[0]
        for event in EventFileLoader(str(file)).Load()
        for value in event.summary.value
    }
    for row in rows:
        assert seen["Loss/Train", row["epoch"]] == pytest.approx(row["train_loss"], rel=1e-6)
        assert seen["Vaild_score", row["epoch"]] == pytest.approx(row["score"], rel=1e-6)
    assert list(folder.glob("*/events.*"))  # the settings and what they led to
