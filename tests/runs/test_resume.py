"""A run that is killed or stopped, at whatever moment, goes on to the end it would have had."""

import os
import random
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from killable import (
    MOMENTS,
    assert_same,
    at_moment,
    finish,
    settings_for,
    start,
    what_is_left,
)
from recbole.model.general_recommender import BPR

from recbole_hns import Error, run_recbole_hns
from recbole_hns.cli.main import main
from recbole_hns.runs.evaluate import evaluate
from recbole_hns.runs.recommend import recommend
from recbole_hns.runs.result import read_result
from recbole_hns.sampling.methods import all_methods
from recbole_hns.training.stopping import RunStopped, StopRequest

SEQUENTIAL = {
    "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
    "MAX_ITEM_LIST_LENGTH": 8,
}
KILLED = ("uniform", "dns", "softmax_v", "adasir_p", "irgan")


@pytest.fixture(autouse=True)
def without_rays_handler():
    """Ray takes SIGTERM when it is imported, which another test may have done."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def run_here(folder, data_path, sampler, model="MF", **settings):
    settings = of_model(model, settings_for(sampler, data_path, folder, **settings))
    run_recbole_hns(model, "tiny", sampler, config_dict=settings)
    return what_is_left(folder)


def of_model(model, settings):
    """Without what the model has under another name."""
    return {
        key: value for key, value in settings.items() if (model, key) != ("SASRec", "embedding_size")
    }


def stop_at(kind, count, folder, data_path, sampler="dns", model="MF", signum=signal.SIGINT, **more):
    """A run that gets a signal at a moment; what it raises."""
    settings = of_model(model, settings_for(sampler, data_path, folder, **more))
    moment = at_moment(kind, count, lambda: signal.raise_signal(signum))
    with moment, pytest.raises(RunStopped) as stop:
        run_recbole_hns(model, "tiny", sampler, config_dict=settings)
    return stop.value


def last_of(folder):
    """The run's last state; None if it was killed before it wrote one, and can only be started again."""
    files = [file for file in (folder / "saved").glob("*.last.pth*") if file.suffix != ".tmp"]
    names = {str(file).removesuffix(".previous") for file in files}
    assert len(names) <= 1
    return next(iter(names), None)


def kill_and_resume(folder, data_path, sampler, kind, count):
    settings = settings_for(sampler, data_path, folder)
    finish(start(folder, sampler, settings, kind=kind, count=count), -signal.SIGKILL)
    finish(start(folder, sampler, settings, resume=last_of(folder)))
    return what_is_left(folder)


def kill_from_outside(folder, data_path, sampler, delay):
    """Kill a run some time after its first checkpoint; whether it was in time."""
    settings = settings_for(sampler, data_path, folder)
    process = start(folder, sampler, settings)
    while not list((folder / "saved").glob("*.last.pth")) and process.is_alive():
        time.sleep(0.001)
    time.sleep(delay)
    process.kill()
    process.join()
    if process.exitcode == -signal.SIGKILL:
        finish(start(folder, sampler, settings, resume=last_of(folder)))
    return process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("sampler", "kind", "count"),
    [
        ("adasir_p", "batch", 13),
        ("irgan", "evaluation", 7),
        ("dns", "write", 5),
        ("softmax_v", "between renames", 6),
        ("uniform", "evaluation", 27),  # the test
    ],
)
def test_a_killed_run_ends_as_if_never_killed(tmp_path, tiny, sampler, kind, count):
    whole = run_here(tmp_path / "whole", tiny["data_path"], sampler)
    killed = kill_and_resume(tmp_path / "killed", tiny["data_path"], sampler, kind, count)
    assert_same(whole, killed)


def test_a_run_killed_from_outside_ends_as_if_never_killed(tmp_path, tiny):
    whole = run_here(tmp_path / "whole", tiny["data_path"], "irgan")
    assert kill_from_outside(tmp_path / "killed", tiny["data_path"], "irgan", delay=0.05)
    assert_same(whole, what_is_left(tmp_path / "killed"))


@pytest.mark.slow
def test_twenty_kills_at_random_moments_leave_no_trace(tmp_path, tiny):
    """Per sampler: a batch, an evaluation and a write, each at random, and one kill from outside."""
    rng = random.Random(6)
    same = []
    for sampler in KILLED:
        whole = run_here(tmp_path / sampler / "whole", tiny["data_path"], sampler)
        kinds = ["batch", "evaluation", rng.choice(MOMENTS[2:])]
        for number, kind in enumerate(kinds):
            folder = tmp_path / sampler / str(number)
            count = rng.randint(1, {"batch": 25, "evaluation": 20}.get(kind, 5))
            assert_same(whole, kill_and_resume(folder, tiny["data_path"], sampler, kind, count))
            same.append((sampler, kind, count))
        delay = 0.3
        folder = tmp_path / sampler / "outside"
        while not kill_from_outside(folder, tiny["data_path"], sampler, rng.uniform(0, delay)):
            delay /= 2  # it had ended before
            folder = folder / "again"
        assert_same(whole, what_is_left(folder))
        same.append((sampler, "outside", None))
    print(*same, sep="\n")
    assert len(same) == 20


# ----------------------------------------------------------------------------------- signals


@pytest.mark.parametrize("sampler", all_methods())
def test_a_run_stopped_in_the_middle_of_an_epoch_ends_as_if_never_stopped(tmp_path, tiny, sampler):
    whole = run_here(tmp_path / "whole", tiny["data_path"], sampler)
    stop = stop_at("batch", 13, tmp_path / "stopped", tiny["data_path"], sampler)
    assert stop.signum == signal.SIGINT
    state = torch.load(stop.checkpoint, weights_only=True)
    assert (state["epoch"], state["batch"]) == (2, 3)  # five batches an epoch: the 13th was finished
    assert state["loss"] > 0
    torch.manual_seed(99)  # nothing may hang on where the process happens to be
    run_recbole_hns(resume=stop.checkpoint)
    assert_same(whole, what_is_left(tmp_path / "stopped"))


@pytest.mark.parametrize(
    ("model", "count", "more"),
    [
        ("LightGCN", 8, {"reg_weight": 1e-3}),
        ("NGCF", 8, {"hidden_size_list": [8], "message_dropout": 0.3}),
        ("SGL", 8, {"type": "ED", "drop_ratio": 0.3}),
        ("SGL", 5, {"type": "ED", "drop_ratio": 0.3}),
        ("SASRec", 8, {**SEQUENTIAL, "n_layers": 1, "hidden_size": 8, "inner_size": 8}),
        ("MF", 8, {"learner": "sparse_adam"}),
    ],
)
def test_models_that_draw_numbers_or_remember_go_on_exactly(tmp_path, tiny, model, count, more):
    whole = run_here(tmp_path / "whole", tiny["data_path"], "dns", model, epochs=3, **more)
    stopped, data = tmp_path / "stopped", tiny["data_path"]
    stop = stop_at("batch", count, stopped, data, model=model, epochs=3, **more)
    run_recbole_hns(resume=stop.checkpoint)
    assert_same(whole, what_is_left(tmp_path / "stopped"))


def test_a_run_stopped_in_an_evaluation_repeats_that_alone(tmp_path, tiny):
    more = {"eval_args": {"split": {"RS": [8, 1, 1]}, "order": "RO", "mode": "full", "group_by": "user"}}
    whole = run_here(tmp_path / "whole", tiny["data_path"], "adasir_u", **more)
    stopped, data = tmp_path / "stopped", tiny["data_path"]
    stop = stop_at("evaluation", 3, stopped, data, "adasir_u", signum=signal.SIGTERM, **more)
    state = torch.load(stop.checkpoint, weights_only=True)
    assert (state["epoch"], state["batch"]) == (0, 5)
    with at_moment("batch", 21, lambda: pytest.fail("epoch 0 is trained again")):
        run_recbole_hns(resume=stop.checkpoint)
    assert_same(whole, what_is_left(tmp_path / "stopped"))


def test_knowledge_models_go_on_from_the_beginning_of_the_epoch(tmp_path):
    settings = {
        **{"sampler": "dns", "epochs": 3, "N": 5, "M": 1, "embedding_size": 8, "kg_embedding_size": 8},
        **{"show_progress": False, "state": "ERROR", "train_batch_size": 16384},
    }
    folders = [tmp_path / name for name in ("whole", "stopped")]
    whole, stopped = (
        {**settings, "checkpoint_dir": str(f / "saved"), "result_dir": str(f / "results")}
        for f in folders
    )
    run_recbole_hns("CKE", "ml-100k", "dns", config_dict=whole)
    moment = at_moment("batch", 6, lambda: signal.raise_signal(signal.SIGINT))
    with moment, pytest.raises(RunStopped) as stop:
        run_recbole_hns("CKE", "ml-100k", "dns", config_dict=stopped)
    checkpoint = stop.value.checkpoint
    state = torch.load(checkpoint, weights_only=True)
    assert (state["epoch"], state["batch"]) == (1, 0)
    run_recbole_hns(resume=checkpoint)
    assert_same(*(what_is_left(folder) for folder in folders))


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_the_command_says_how_to_go_on_and_going_on_works(tmp_path, tiny, signum, code):
    command = [sys.executable, "-m", "recbole_hns", "--model=MF", "--dataset=tiny", "--sampler=dns"]
    command += [
        f"--data_path={tiny['data_path']}",
        "--epochs=100000",
        "--stopping_step=100000",
        "--N=10",
        "--M=2",
    ]
    quiet = ["--show_progress=False", "--state=ERROR"]
    process = subprocess.Popen(command + quiet, stderr=subprocess.PIPE, text=True)
    while not list(Path("saved").glob("*.last.pth")):
        time.sleep(0.01)
        assert process.poll() is None
    time.sleep(0.2)
    process.send_signal(signum)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == code
    (line,) = (line for line in err.splitlines() if "--resume" in line)
    words = shlex.split(line.partition("go on with: ")[2])
    assert words[:3] == ["python", "-m", "recbole_hns"]
    state = torch.load(words[3].partition("=")[2], weights_only=True)
    assert main([*words[3:], f"--epochs={state['epoch'] + 2}"]) == 0


def test_a_second_signal_stops_at_once():
    stop = StopRequest()
    with stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.signum == signal.SIGINT
        with pytest.raises(RunStopped):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_thread_leaves_signals_alone():
    seen = []

    def in_thread():
        with StopRequest():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_signals_that_somebody_else_handles_are_left_alone():
    def mine(signum, frame):
        seen.append(signum)

    seen = []
    before = signal.signal(signal.SIGTERM, mine)
    try:
        with StopRequest() as stop:
            signal.raise_signal(signal.SIGTERM)
            assert stop.signum is None
            signal.raise_signal(signal.SIGINT)
            assert stop.signum == signal.SIGINT
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]


# ----------------------------------------------------------------------------------- which run


@pytest.fixture
def stopped(tmp_path, tiny):
    """The last state of a run that was stopped in its third epoch."""
    return stop_at("batch", 13, tmp_path / "run", tiny["data_path"]).checkpoint


def epochs_of(folder):
    (file,) = folder.glob("results/*/result.json")
    return [row["epoch"] for row in read_result(file)["epochs"]]


@pytest.mark.parametrize("name", ["last", "best", "folder"])
def test_a_run_is_named_by_either_of_its_files_or_its_folder(stopped, tmp_path, name):
    best = Path(str(stopped).replace(".last", ""))
    run_recbole_hns(resume={"last": stopped, "best": best, "folder": stopped.parent}[name])
    assert epochs_of(tmp_path / "run") == [0, 1, 2, 3, 4]


def test_resume_without_a_value_is_the_newest_unfinished_run(stopped, tmp_path, tiny, capsys):
    folder = f"--checkpoint_dir={stopped.parent}"
    more = settings_for("uniform", tiny["data_path"], tmp_path / "run", result_dir=None, epochs=1)
    run_recbole_hns("MF", "tiny", "uniform", config_dict={**more, "result_dir": None})
    assert main(["--resume", folder]) == 0
    assert epochs_of(tmp_path / "run") == [0, 1, 2, 3, 4]
    capsys.readouterr()
    assert main(["--resume", folder]) == 2
    assert "no run that is not finished" in capsys.readouterr().err
    assert main(["--resume"]) == 2  # nothing here is called saved
    assert capsys.readouterr().err.count("\n") == 1


def test_a_finished_run_is_tested_again_and_has_one_result(stopped, tmp_path):
    results = [run_recbole_hns(resume=stopped) for _ in range(2)]
    assert results[0] == results[1]
    with at_moment("batch", 1, lambda: pytest.fail("it trains again")):
        run_recbole_hns(resume=stopped)
    assert epochs_of(tmp_path / "run") == [0, 1, 2, 3, 4]


def test_a_finished_run_can_be_made_longer(stopped, tmp_path, tiny):
    whole = run_here(tmp_path / "whole", tiny["data_path"], "dns", epochs=8)
    run_recbole_hns(resume=stopped)
    run_recbole_hns(resume=stopped, config_dict={"epochs": 8})
    assert_same(whole["result"], what_is_left(tmp_path / "run")["result"])
    assert_same(whole["best"]["state_dict"], what_is_left(tmp_path / "run")["best"]["state_dict"])


@pytest.mark.parametrize(
    "given",
    [
        ["--learning_rate=0.01"],
        ["--sampler=uniform"],
        ["--N=11"],
        ["--seed=1"],
        ["--model=LightGCN"],
        ["--dataset=ml-100k"],
        ["--smapler=dns"],
        ["--config_files=other.yaml"],
        ["--nproc=2"],
    ],
)
def test_what_contradicts_the_run_is_refused_in_a_sentence(stopped, given, capsys):
    Path("other.yaml").write_text("embedding_size: 16\n")
    before = stopped.read_bytes()
    assert main([f"--resume={stopped}", *given]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert given[0].partition("=")[0].strip("-").replace("config_files", "embedding_size") in err
    assert stopped.read_bytes() == before


def test_what_agrees_with_the_run_may_be_said_again(stopped):
    same = ["--learning_rate=0.05", "--model=MF", "--sampler=dns", "--show_progress=False", "--topk=10"]
    assert main([f"--resume={stopped}", *same]) == 0


def test_other_data_are_noticed(stopped, tiny):
    file = Path(tiny["data_path"]) / "tiny" / "tiny.inter"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:-1], lines[-1].replace("u39", "u1")]) + "\n")
    with pytest.raises(Error, match="not the one that the checkpoint was trained on"):
        run_recbole_hns(resume=stopped)


class OwnModel(BPR):
    """A model that RecBole does not know."""


def test_a_model_class_of_ones_own_goes_on_in_python(tmp_path, tiny):
    stop = stop_at("batch", 8, tmp_path / "run", tiny["data_path"], model=OwnModel)
    with pytest.raises(Error, match="a model class of your own"):
        run_recbole_hns(resume=stop.checkpoint)
    result = run_recbole_hns(OwnModel, resume=stop.checkpoint)
    assert epochs_of(tmp_path / "run") == [0, 1, 2, 3, 4]
    best = str(stop.checkpoint).replace(".last", "")
    assert evaluate(best, model=OwnModel)["test_result"] == result["test_result"]
    assert len(list(recommend(best, ["u1"], k=3, model=OwnModel))) == 3


def test_a_damaged_last_state_is_replaced_by_the_one_before(tmp_path, tiny, caplog):
    whole = run_here(tmp_path / "whole", tiny["data_path"], "adasir_p")
    settings = settings_for("adasir_p", tiny["data_path"], tmp_path / "killed")
    finish(start(tmp_path / "killed", "adasir_p", settings, kind="batch", count=18), -signal.SIGKILL)
    last = Path(last_of(tmp_path / "killed"))
    os.truncate(last, last.stat().st_size // 2)
    with at_moment("after rename", 2, lambda: torch.load(f"{last}.previous", weights_only=True)):
        run_recbole_hns(resume=last)
    assert re.search(r"last\.pth is damaged.*The one before is used", caplog.text)
    assert_same(whole, what_is_left(tmp_path / "killed"))


def test_a_run_without_its_best_model_is_refused(stopped):
    for file in stopped.parent.glob("*.pth*"):
        if ".last" not in file.name:
            file.unlink()
    with pytest.raises(Error, match="without its best model"):
        run_recbole_hns(resume=stopped)


# ----------------------------------------------------------------------------------- its own file

OWN = """
sampler: dns
learning_rate: 5e-2
weight_decay: 1e-3
eval_args: {split: {RS: [8, 1, 1]}, mode: full}
clip_grad_norm: {max_norm: 5}
topk: 10
metrics: [NDCG, Recall]
valid_metric: ndcg@10
user_inter_num_interval: "[1,50]"
n_layers: 2
mlp_hidden_size: [64, 32]
"""


@pytest.fixture
def with_file(tmp_path, tiny):
    """The last state of a run that was begun with a property file, and stopped."""
    settings = settings_for("dns", tiny["data_path"], tmp_path / "run")
    for key in ("learning_rate", "valid_metric"):
        settings.pop(key)
    Path("own.yaml").write_text(OWN)
    moment = at_moment("batch", 13, lambda: signal.raise_signal(signal.SIGINT))
    with moment, pytest.raises(RunStopped) as stop:
        run_recbole_hns("MF", "tiny", config_file_list=["own.yaml"], config_dict=settings)
    return stop.value.checkpoint


def test_a_run_goes_on_with_its_own_file(with_file, tmp_path):
    """Before, 5e-2 was a number when the run began and a word when it went on: a contradiction."""
    assert main([f"--resume={with_file}", "--config_files=own.yaml"]) == 0
    (file,) = tmp_path.glob("run/results/*/result.json")
    assert read_result(file)["config"]["learning_rate"] == 0.05
    assert epochs_of(tmp_path / "run") == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "said",
    [
        "--learning_rate=5e-2",
        "--learning_rate=0.05",
        "--weight_decay=1e-3",
        "--topk=[10]",
        "--metrics=NDCG,Recall",
        "--eval_args={'split': {'RS': [8, 1, 1]}}",
        "--user_inter_num_interval=[1,50]",
        "--result_dir=~",
        "--epochs=5",
    ],
)
def test_every_form_of_a_value_agrees_with_itself(with_file, said):
    assert main([f"--resume={with_file}", said]) == 0


@pytest.mark.parametrize(
    "said",
    [
        "--learning_rate=5e-3",
        "--eval_args={'split': {'RS': [7, 2, 1]}}",
        "--clip_grad_norm=~",
        "--refit=true",
        "--user_inter_num_interval=[1,51]",
    ],
)
def test_another_value_is_a_contradiction(with_file, said, capsys):
    assert main([f"--resume={with_file}", said]) == 2
    assert said[2:].partition("=")[0] + "=" in capsys.readouterr().err


# ----------------------------------------------------------------------------------- where it writes


def with_places(last: Path, outside: Path) -> None:
    """The settings of a checkpoint that name places of somebody else's."""
    for file in (last, Path(str(last).replace(".last", ""))):
        content = torch.load(file, weights_only=True)
        places = {"checkpoint_dir": str(outside / "saved"), "result_dir": str(outside / "results")}
        for key in ("settings", "final"):
            content[key] = {**content[key], **places}
        torch.save(content, file)


@pytest.fixture
def elsewhere(stopped, tmp_path, monkeypatch):
    """A run that says it writes outside of the folder where one goes on with it."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with_places(stopped, tmp_path / "outside")
    return stopped


def test_a_checkpoint_does_not_say_where_is_written(elsewhere, tmp_path, caplog):
    run_recbole_hns(resume=elsewhere, config_dict={"state": "INFO"})
    assert not (tmp_path / "outside").exists()
    assert len(list((tmp_path / "work").glob("results/*/result.json"))) == 1
    assert not (tmp_path / "work/saved").exists()  # it went on beside its file
    assert "the result goes to results" in caplog.text


def test_what_is_typed_says_where_is_written(elsewhere, tmp_path):
    run_recbole_hns(resume=elsewhere, config_dict={"result_dir": str(tmp_path / "typed")})
    assert len(list((tmp_path / "typed").glob("*/result.json"))) == 1
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "work/results").exists()


@pytest.mark.parametrize("command", ["evaluate", "recommend"])
def test_other_commands_make_no_folder_that_a_checkpoint_names(elsewhere, tmp_path, command):
    assert main([command, str(elsewhere).replace(".last", "")]) == 0
    assert not (tmp_path / "outside").exists()


def test_a_file_whose_cross_entropy_was_replaced_is_no_contradiction_when_going_on(tmp_path, tiny):
    """It said loss_type: CE when the run began, and says so still."""
    columns = "load_col: {inter: [user_id, item_id, timestamp]}\n"
    sizes = "hidden_size: 8\ninner_size: 8\nn_layers: 1\nN: 10\n"
    (tmp_path / "own.yaml").write_text(f"loss_type: CE\ntrain_neg_sample_args: ~\n{columns}{sizes}")
    files = [str(tmp_path / "own.yaml")]
    settings = {**tiny, "checkpoint_dir": str(tmp_path / "saved"), "state": "ERROR"}
    run_recbole_hns("SASRec", "tiny", "dns", files, {**settings, "epochs": 1})
    more = run_recbole_hns(config_file_list=files, config_dict={"epochs": 2}, resume=tmp_path / "saved")
    at_once = run_recbole_hns(
        "SASRec", "tiny", "dns", files, {**settings, "epochs": 2, "checkpoint_dir": "other"}
    )
    assert more["test_result"] == at_once["test_result"]
