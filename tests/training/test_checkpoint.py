"""Checkpoint files: whole or not at all, and nobody's code in them."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import prepare
from recbole.quick_start import run_recbole
from recbole.trainer import Trainer
from recbole.utils import init_seed

from recbole_hns import Error, run_recbole_hns
from recbole_hns.cli.main import main
from recbole_hns.training import checkpoint
from recbole_hns.training.checkpoint import read_checkpoint, write_checkpoint
from recbole_hns.training.plain import plain_data
from recbole_hns.training.random_state import random_states, restore_random_states
from recbole_hns.training.run_files import claimed
from recbole_hns.training.trainer import make_trainer

CONTENT = {
    **{"format": checkpoint.FORMAT, "model": "BPR", "dataset": "nowhere", "settings": {}, "final": {}},
    **{"state_dict": {"w": torch.arange(1000.0)}, "epoch": 1},
}
SMALL = {"epochs": 2, "sampler": "dns", "N": 5, "M": 1, "show_progress": False, "state": "ERROR"}


def newer(epoch):
    return {**CONTENT, "epoch": epoch}


class Payload:
    """A pickle that creates a file when it is read."""

    def __init__(self, file):
        self.file = str(file)

    def __reduce__(self):
        return open, (self.file, "w")


@pytest.fixture(params=["torch", "torch, as a checkpoint", "pickle"])
def malicious(request, tmp_path):
    """A file that would create another, and that other."""
    file, mark = tmp_path / "evil.pth", tmp_path / "it-ran"
    if request.param == "pickle":
        file.write_bytes(pickle.dumps(Payload(mark)))
    elif request.param == "torch":
        torch.save(Payload(mark), file)
    else:
        torch.save({**CONTENT, "more": Payload(mark)}, file)
    return file, mark


COMMANDS = {
    "resume": lambda file: [f"--resume={file}"],
    "evaluate": lambda file: ["evaluate", str(file)],
    "recommend": lambda file: ["recommend", str(file)],
    "simulate": lambda file: ["simulate", "sampling", f"--checkpoint={file}"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_malicious_pickle_is_refused_and_does_not_run(malicious, command, capsys):
    file, mark = malicious
    assert main(COMMANDS[command](file)) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "code of whoever wrote it" in err
    assert "--trust_checkpoint" in err
    assert not mark.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_trust_is_what_lets_it_run(malicious, command, capsys):
    """So that the test above could fail: with trust the payload does run."""
    file, mark = malicious
    assert main([*COMMANDS[command](file), "--trust_checkpoint"]) == 2  # it is no model's checkpoint
    assert capsys.readouterr().err.count("\n") == 1
    assert mark.exists()


@pytest.mark.parametrize("trust", [False, True])
def test_the_trainer_reads_a_pickle_only_where_its_caller_trusts(malicious, tiny, trust):
    file, mark = malicious
    config, train_data, _, test_data = prepare(**{**tiny, **SMALL})
    model = config.model_class(config, train_data._dataset)
    trainer = make_trainer(config, model, trust=trust)
    for read in (trainer.resume_checkpoint, lambda file: trainer.evaluate(test_data, model_file=file)):
        with pytest.raises(Error, match="." if trust else "--trust_checkpoint"):
            read(file)
        assert mark.exists() == trust
        mark.unlink(missing_ok=True)


@pytest.mark.parametrize("command", ["resume", "evaluate", "recommend"])
def test_no_file_can_say_that_a_pickle_is_trusted(malicious, command, capsys):
    file, mark = malicious
    Path("own.yaml").write_text("trust_checkpoint: true\n")
    assert main([*COMMANDS[command](file), "--config_files=own.yaml"]) == 2
    assert not mark.exists()


@pytest.mark.parametrize("trust", [False, True])
def test_a_saved_data_set_is_a_pickle_and_is_read_with_trust_alone(tmp_path, tiny, trust):
    file, mark = tmp_path / "tiny-Dataset.pth", tmp_path / "it-ran"
    file.write_bytes(pickle.dumps(Payload(mark)))
    settings = {**tiny, **SMALL, "dataset_save_path": str(file)}
    if trust:
        with pytest.raises(Error, match="data set tiny"):  # it is none
            run_recbole_hns("MF", "tiny", config_dict=settings, trust_checkpoint=True)
    else:
        assert run_recbole_hns("MF", "tiny", config_dict=settings)["test_result"]
    assert mark.exists() == trust


def test_what_a_run_writes_is_tensors_and_plain_data(tiny):
    run_recbole_hns("LightGCN", "tiny", "irgan", config_dict={**tiny, "epochs": 2, "state": "ERROR"})
    files = sorted(Path("saved").iterdir())
    assert len(files) == 4  # the best and the last, and the ones before them
    for file in files:
        content = torch.load(file, weights_only=True)
        assert content["model"] == "LightGCN"
        assert content["settings"]["sampler"] == "irgan"
        assert {"state_dict", "other_parameter", "versions", "format"} <= set(content)


def test_the_file_before_is_kept(tmp_path):
    file = tmp_path / "x.pth"
    for epoch in (1, 2, 3):
        write_checkpoint(newer(epoch), file)
    assert read_checkpoint(file)["epoch"] == 3
    assert read_checkpoint(tmp_path / "x.pth.previous")["epoch"] == 2
    assert sorted(os.listdir(tmp_path)) == ["x.pth", "x.pth.previous"]


def damage(file, how):
    data = bytearray(file.read_bytes())
    if how == "missing":
        file.unlink()
        return
    if how == "flipped":
        data[len(data) // 2] ^= 1
    elif how == "zeros":
        data[:] = bytes(len(data))
    else:
        data = data[: int(how * len(data))]
    file.write_bytes(data)


@pytest.mark.parametrize("how", [0.0, 0.1, 0.5, 0.99, "flipped", "zeros", "missing"])
def test_of_a_damaged_file_the_one_before_is_used_and_it_is_said(tmp_path, how, caplog):
    file = tmp_path / "x.pth"
    for epoch in (1, 2):
        write_checkpoint(newer(epoch), file)
    damage(file, how)
    assert read_checkpoint(file)["epoch"] == 1
    assert "The one before is used" in caplog.text
    assert caplog.text.count("\n") == 1


@pytest.mark.parametrize("how", [0.0, 0.1, 0.5, 0.99, "flipped", "zeros", "missing"])
def test_a_damaged_file_alone_is_told_in_a_sentence(tmp_path, how):
    file = tmp_path / "x.pth"
    write_checkpoint(newer(1), file)
    damage(file, how)
    with pytest.raises(Error, match=r"checkpoint .*x\.pth"):
        read_checkpoint(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": 1}, "no model in it"),
        ([1], "no model in it"),
        ({**CONTENT, "format": 99}, "format 99"),
    ],
)
def test_what_is_no_checkpoint_of_ours_is_refused(tmp_path, content, message):
    torch.save(content, tmp_path / "x.pth")
    with pytest.raises(Error, match=message):
        read_checkpoint(tmp_path / "x.pth")


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path):
    with pytest.raises(Error, match="cannot be written"):
        write_checkpoint(CONTENT, tmp_path / "missing" / "x.pth")


@pytest.fixture
def disk_of():
    """Let the system refuse to make files longer than some bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 100, 2000, 4500])  # of 5,000: torch's error, or the system's
def test_a_full_disk_is_told_and_the_file_before_stays(tmp_path, disk_of, size):
    file = tmp_path / "x.pth"
    write_checkpoint(newer(1), file)
    assert file.stat().st_size > 5000
    disk_of(size)
    with pytest.raises(Error, match=r"x\.pth cannot be written: File too large\.$"):
        write_checkpoint(newer(2), file)
    disk_of(10**9)
    assert os.listdir(tmp_path) == ["x.pth"]
    assert read_checkpoint(file)["epoch"] == 1
    write_checkpoint(newer(3), file)
    assert read_checkpoint(file)["epoch"] == 3


def test_numpys_numbers_become_pythons_and_other_objects_are_refused():
    plain = plain_data({"a": np.float64(1.5), "b": [np.int64(2)], "c": (None, -np.inf)})
    assert plain == {"a": 1.5, "b": [2], "c": (None, -np.inf)}
    assert type(plain["a"]) is float
    assert type(plain["b"][0]) is int
    with pytest.raises(Error, match=r"other_parameter\.x is a ndarray"):
        plain_data({"x": np.zeros(2)}, "other_parameter")


def test_two_runs_of_the_same_second_have_files_of_their_own(tmp_path):
    first = tmp_path / "BPR-now.pth"
    with claimed(first) as own:
        assert own == first
        with claimed(first) as another:
            assert another.name == "BPR-now-2.pth"  # though nothing has been written yet
    write_checkpoint(CONTENT, tmp_path / "BPR-now.last.pth")
    with claimed(first) as second, claimed(first) as third:
        assert (second.name, third.name) == ("BPR-now-2.pth", "BPR-now-3.pth")
    assert os.listdir(tmp_path) == ["BPR-now.last.pth"]


def test_runs_that_begin_at_once_never_share_a_name(tmp_path):
    def write(_):
        with claimed(tmp_path / "BPR-now.pth") as own:
            own.touch(exist_ok=False)
            return own

    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(write, range(64)))
    assert len(set(names)) == 64


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    with (
        pytest.raises(Error, match=r"BPR-now\.pth cannot be written: No such file"),
        claimed(tmp_path / "missing" / "BPR-now.pth"),
    ):
        pass


def test_random_states_come_back():
    import random

    init_seed(3, True)
    np.random.standard_normal()  # one of a pair is kept back
    random.gauss(0, 1)
    states = random_states()
    numbers = [[torch.rand(3), np.random.standard_normal(3), random.gauss(0, 1)] for _ in range(2)]
    restore_random_states(states)
    again = [torch.rand(3), np.random.standard_normal(3), random.gauss(0, 1)]
    for first, second in zip(numbers[0], again):
        assert np.array_equal(first, second)
    assert not torch.equal(numbers[1][0], again[0])


# ----------------------------------------------------------------------------------- RecBole's own


@pytest.fixture
def recboles(tiny, monkeypatch):
    """A checkpoint that RecBole's own trainer wrote, and its test result."""
    monkeypatch.setattr("sys.argv", ["run"])
    settings = {
        **tiny,
        "epochs": 2,
        "metric_decimal_place": 10,
        "train_batch_size": 64,
        "state": "ERROR",
    }
    result = run_recbole("BPR", "tiny", config_dict=settings)
    (file,) = Path("saved").glob("BPR-*.pth")
    return file, result["test_result"]


def test_recboles_trainer_reads_back_what_it_wrote_and_no_other_pickle(recboles, tmp_path):
    """run_recbole has loaded its own checkpoint for the test; a copy of it is anybody's file."""
    from recbole.trainer import trainer

    file, _ = recboles
    assert trainer.torch.load(file)["epoch"] >= 0
    copy = tmp_path / "copy.pth"
    copy.write_bytes(file.read_bytes())
    with pytest.raises(pickle.UnpicklingError):
        trainer.torch.load(copy)
    file.write_bytes(file.read_bytes()[:-1])  # touched since
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        trainer.torch.load(file)
    assert Trainer.__module__ == trainer.__name__


def test_a_trusted_checkpoint_of_recbole_is_evaluated_and_recommends(recboles):
    from recbole_hns.runs.evaluate import evaluate
    from recbole_hns.runs.recommend import recommend

    file, test_result = recboles
    with pytest.raises(Error, match="trust_checkpoint"):
        evaluate(file)
    assert evaluate(file, trust_checkpoint=True)["test_result"] == test_result
    more = evaluate(file, {"topk": [5]}, trust_checkpoint=True)["test_result"]
    assert "ndcg@5" in more
    rows = list(recommend(file, ["u1", "u2"], k=3, trust_checkpoint=True))
    assert [row.rank for row in rows] == [1, 2, 3] * 2


def test_a_trusted_checkpoint_of_recbole_goes_on_with_hard_negatives(recboles):
    file, test_result = recboles
    before = file.read_bytes()
    with pytest.raises(Error, match="trust_checkpoint"):
        run_recbole_hns(resume=file)
    no_more = {"epochs": 1, "sampler": "dns", "N": 5, "M": 1}
    result = run_recbole_hns(resume=file, config_dict=no_more, trust_checkpoint=True)
    assert result["test_result"] == test_result
    given = {"epochs": 4, "N": 5, "M": 1, "sampler": "dns"}
    result = run_recbole_hns(resume=file, config_dict=given, trust_checkpoint=True)
    assert result["sampler"]["M"] == 1
    assert file.read_bytes() == before
