"""Real searches on a real Ray, on loopback."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import ray
import torch
import yaml
from ray.cluster_utils import Cluster

from recbole_hns import Error, HNSConfig, run_recbole_hns, tuning
from recbole_hns.cli.main import Parser, main
from recbole_hns.tuning import SearchPlan, make_plan, run_search, summary_text
from recbole_hns.tuning import trial as trial_module
from recbole_hns.tuning.cluster import connected
from recbole_hns.tuning.data import SearchData, prepare_search
from recbole_hns.tuning.search import best_trial

QUICK = {"sampler": "dns", "N": 20, "epochs": 3, "valid_metric": "NDCG@10", "show_progress": False}


@pytest.fixture(scope="module")
def local_ray():
    """One Ray of this machine's own for the searches of this file that need no other."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def plan_for(settings, text="M: {grid: [1, 2, 5, 20]}", seeds=2, **more):
    Path("search.yaml").write_text(text)
    settings = {**QUICK, **settings}
    if "epochs:" in text:
        del settings["epochs"]
    return make_plan("MF", "tiny", settings, Path("search.yaml"), seeds=seeds, **more)


class Bare(trial_module.Trial):
    """A trial without Ray around it."""

    logdir = trial_id = ""

    def __init__(self):
        pass


def bare_trial(plan, data, **searched):
    Bare.logdir = os.getcwd()
    results = os.path.join(os.getcwd(), "results")
    study = trial_module.Study(plan, 1, results)
    trial = Bare()
    trial.setup(searched, study, data)
    return trial


def rows_of(folder):
    with open(folder / "trials.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_searched_number_of_epochs_stays_what_it_was(tiny, local_ray, tmp_path):
    folder = tmp_path / "search"
    plan = plan_for({**tiny, "M": 1, "stopping_step": 0}, "epochs: {grid: [500]}", seeds=0)
    run_search(plan, folder, progress=False)
    (row,) = rows_of(folder)
    assert row["epochs"] == "500"
    assert int(row["best_epoch"]) < 499  # it was stopped early


def test_a_search_with_no_seeds_tests_nothing(tiny, local_ray, tmp_path):
    folder = tmp_path / "search"
    summary = run_search(plan_for(tiny, "M: {grid: [1, 5]}", seeds=0), folder, progress=False)
    assert summary["best"]["M"] in (1, 5)
    assert summary["test"] == {}
    assert not (folder / "runs").exists()
    assert "test over" not in summary_text(summary, folder)


def test_a_refit_of_the_winner_is_tested_too(tiny, local_ray, tmp_path):
    folder = tmp_path / "search"
    plan = plan_for(tiny, "M: {grid: [1, 5]}", refit=True)
    summary = run_search(plan, folder, progress=False)
    winner = best_trial(
        [{**row, "best_score": float(row["best_score"])} for row in rows_of(folder)], True
    )
    records = [json.loads(file.read_text()) for file in sorted(folder.glob("refit/*/*/result.json"))]
    assert len(records) == 2
    for record in records:
        assert record["config"]["refit"] is True
        assert len(record["epochs"]) == summary["refit"]["epochs"] == int(winner["best_epoch"]) + 1
        assert record["sampler"]["M"] == summary["best"]["M"]
    mean = sum(record["test"]["ndcg@10"] for record in records) / 2
    assert summary["refit"]["test"]["ndcg@10"]["mean"] == pytest.approx(mean)
    assert "after refit" in summary_text(summary, folder)
    table = (folder / "report" / "table.md").read_text()
    label = f"DNS({summary['best']['M']}, 20)"
    assert f"| {label} |" in table
    assert f"| {label}, refit |" in table
    assert SearchPlan.read(folder) == plan
    every = [json.loads(file.read_text()) for file in folder.rglob("result.json")]
    places = [place for r in every for place in (r["checkpoint"], r["config"]["result_dir"])]
    assert len(every) == 2 + 2 + 2
    assert not any(Path(place).is_absolute() for place in places)


def test_a_search_selects_on_validation_and_tests_the_winner_only(tiny, local_ray, tmp_path):
    folder = tmp_path / "search"
    plan = plan_for(tiny)
    summary = run_search(plan, folder, progress=False)
    rows = rows_of(folder)
    assert [row["M"] for row in rows] == ["1", "2", "5", "20"]
    assert {row["status"] for row in rows} == {"done"}
    # Every trial is what a run with the same settings is, up to its validation.
    for row in rows:
        result = run_recbole_hns("MF", "tiny", config_dict={**plan.settings, "M": int(row["M"])})
        assert result["best_valid_score"] == pytest.approx(float(row["best_score"]))
    best = max(rows, key=lambda row: float(row["best_score"]))
    assert summary["best"] == {"M": int(best["M"])}
    # No trial has seen a test; the winner was tested once per seed, on the search's own split.
    for file in (folder / "trials").rglob("result.json"):
        assert json.loads(file.read_text())["test"] is None
    runs = [json.loads(file.read_text()) for file in sorted((folder / "runs").rglob("result.json"))]
    assert sorted(run["seed"] for run in runs) == [2020, 2021]
    assert all(run["sampler"]["M"] == int(best["M"]) for run in runs)
    again = run_recbole_hns("MF", "tiny", config_dict={**plan.settings, "M": int(best["M"])})
    assert runs[0]["test"] == pytest.approx(again["test_result"])
    mean = sum(run["test"]["ndcg@10"] for run in runs) / 2
    assert summary["test"]["ndcg@10"]["mean"] == pytest.approx(mean)
    # The files are ready for use.
    settings = yaml.safe_load((folder / "best.yaml").read_text())
    assert settings["M"] == HNSConfig("MF", "tiny", [str(folder / "best.yaml")]).spec.method.M
    assert (folder / "report" / "report.html").stat().st_size > 1_000_000


def test_a_trial_needs_no_file_of_the_machine_that_began_the_search(tiny, tmp_path, monkeypatch):
    """On a cluster only the storage is shared: property files are read when the search begins."""
    Path("mine.yaml").write_text("N: 30\n")
    data = Path(tiny["data_path"]) / "tiny"
    (data / "tiny.yaml").write_text("epochs: 4\n")
    Path("search.yaml").write_text("rho: {grid: [1, 2]}")
    arguments = ["--model=MF", "--dataset=tiny", f"--data_path={tiny['data_path']}"]
    arguments += ["--config_files=mine.yaml", "--search=search.yaml"]
    options, rest = tuning.make_parser(Parser).parse_known_args(arguments)
    plan, _ = tuning._new(options, rest)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for file in ("mine.yaml", "search.yaml", "data/tiny/tiny.yaml"):
        (tmp_path / file).unlink()
    assert (plan.config()["N"], plan.config()["epochs"]) == (30, 4)


def test_what_a_trial_is_given_and_reports_has_nothing_of_the_test_set(tiny):
    """Neither scheduler nor search can see a test metric: a trial has no test set to make one from."""
    plan = plan_for(tiny)
    data = prepare_search(plan.config())
    assert set(vars(data)) == {"train", "valid"}
    train, valid = (
        {*zip(d.inter_feat["user_id"].tolist(), d.inter_feat["item_id"].tolist())}
        for d in (data.train, data.valid)
    )
    pairs = Path(tiny["data_path"], "tiny", "tiny.inter").read_text().splitlines()[1:]
    assert len(train) + len(valid) == round(0.9 * len(pairs))

    report = bare_trial(plan, data, M=5).step()
    assert not any("test" in key for key in report)
    config = plan.config({"M": 5})
    loaders = SearchData(data.train, data.valid).loaders(config)
    for loader in loaders:
        for dataset in [loader._dataset, *getattr(getattr(loader, "_sampler", None), "datasets", [])]:
            own = {*zip(dataset.inter_feat["user_id"].tolist(), dataset.inter_feat["item_id"].tolist())}
            assert own <= train | valid


def test_a_trial_goes_on_from_anothers_checkpoint_with_its_own_hardness(tiny, tmp_path):
    """What population-based training does: weights of the one, settings of the other."""
    plan = plan_for({**tiny, "epochs": 9})
    data = prepare_search(plan.config())
    good = bare_trial(plan, data, M=5, learning_rate=0.001)
    for _ in range(3):
        good.step()
    good.save_checkpoint(str(tmp_path))
    poor = bare_trial(plan, data, M=1, learning_rate=0.01)
    poor.load_checkpoint(str(tmp_path))
    assert poor.epoch == 3
    assert poor.trainer.sampler.method.M == 1
    assert poor.trainer.optimizer.param_groups[0]["lr"] == 0.01
    for name, weight in good.trainer.model.state_dict().items():
        assert torch.equal(weight, poor.trainer.model.state_dict()[name])
    # With its own settings a trial goes on exactly where it was.
    same = bare_trial(plan, data, M=5, learning_rate=0.001)
    same.load_checkpoint(str(tmp_path))
    assert same.step()["train_loss"] == good.step()["train_loss"]


@pytest.mark.parametrize("scheduler", ["asha", pytest.param("median", marks=pytest.mark.slow), "pbt"])
def test_schedulers_run(tiny, local_ray, tmp_path, scheduler):
    text = "M: {choice: [1, 2, 5, 20]}\nlearning_rate: {loguniform: [1.0e-4, 1.0e-2]}"
    plan = plan_for({**tiny, "epochs": 12}, text, seeds=1, num_samples=4, scheduler=scheduler)
    summary = run_search(plan, tmp_path / "search", progress=False)
    assert summary["trials"] == 4
    assert summary["failed"] == 0
    epochs = [int(row["epochs"]) for row in rows_of(tmp_path / "search")]
    assert max(epochs) == 12


def test_a_trial_that_raises_is_marked_and_the_others_go_on(tiny, local_ray, tmp_path):
    """A learning rate that ends in infinite numbers: the trainer raises in the trial."""
    text = "learning_rate: {grid: [0.001, 1000.0]}"
    plan = plan_for({**tiny, "M": 1, "learner": "sgd", "train_batch_size": 8}, text, seeds=1)
    summary = run_search(plan, tmp_path / "search", max_failures=0, progress=False)
    good, bad = rows_of(tmp_path / "search")
    assert (good["status"], bad["status"]) == ("done", "failed")
    assert "diverged" in bad["reason"]
    assert summary["failed"] == 1
    assert summary["best"] == {"learning_rate": 0.001}


def test_where_every_trial_fails_that_is_said():
    rows = [
        {"status": "failed", "best_score": None, "reason": "ValueError: no"},
        {"status": "failed", "best_score": 0.9, "reason": ""},
    ]
    with pytest.raises(Error, match="every trial failed: ValueError: no"):
        best_trial(rows, True)


@pytest.mark.slow
def test_a_killed_search_goes_on_and_finds_the_same_winner(tiny, tmp_path):
    """SIGKILL to the driver in the middle; finished trials are kept, and none is repeated."""
    Path("grid.yaml").write_text("M: {grid: [1, 2, 5, 20]}\n")
    command = [sys.executable, "-m", "recbole_hns", "tune", "--model=MF", "--dataset=ml-100k"]
    options = [
        "--sampler=dns",
        "--search=grid.yaml",
        "--epochs=20",
        "--seeds=1",
        "--valid_metric=NDCG@10",
    ]
    options += ["--learning_rate=0.005", "--stopping_step=50"]
    subprocess.run([*command, *options, "--storage=whole"], check=True, capture_output=True, timeout=300)
    (whole,) = Path("whole").iterdir()

    process = subprocess.Popen(
        [*command, *options, "--storage=killed"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        results = list(Path("killed").glob("*/trials/*/result.json"))
        epochs = [len(json.loads(file.read_text())["epochs"]) for file in results]
        if sum(n == 20 for n in epochs) >= 2 and any(0 < n < 20 for n in epochs):
            break
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    (killed,) = Path("killed").iterdir()
    assert not (killed / "summary.json").exists()
    done = {
        file: file.stat().st_mtime_ns
        for file in killed.glob("trials/*/result.json")
        if len(json.loads(file.read_text())["epochs"]) == 20
    }
    assert 1 <= len(done) < 4

    subprocess.run([*command[:4], f"--resume={killed}"], check=True, capture_output=True, timeout=300)
    first, second = (json.loads((folder / "summary.json").read_text()) for folder in (whole, killed))
    for summary in (first, second):
        summary.pop("search_seconds"), summary.pop("startup_seconds")
    assert first == second
    assert [row["best_score"] for row in rows_of(whole)] == [
        row["best_score"] for row in rows_of(killed)
    ]
    repeated = [file for file, stamp in done.items() if file.stat().st_mtime_ns != stamp]
    assert len(repeated) <= 2  # those that Ray had not noted as finished when it was killed


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path):
    Path("grid.yaml").write_text("M: {grid: [1, 2, 5, 20]}\n")
    command = [sys.executable, "-m", "recbole_hns", "tune", "--model=MF", "--dataset=ml-100k"]
    command += ["--sampler=dns", "--search=grid.yaml", "--epochs=60", "--stopping_step=99", "--seeds=1"]
    process = subprocess.Popen(
        [*command, "--storage=s"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not list(Path("s").glob("*/trials/*/result.json")):
        time.sleep(0.1)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    (folder,) = Path("s").iterdir()
    assert f"--resume={folder.absolute()}" in error.splitlines()[-1]
    assert "Traceback" not in error
    resumed = subprocess.run(
        [*command[:4], f"--resume={folder}", "--cpus=1"], capture_output=True, text=True, timeout=200
    )
    assert resumed.returncode == 0, resumed.stderr
    assert {row["epochs"] for row in rows_of(folder)} == {"60"}


def test_a_cluster_of_two_nodes_loses_one_and_the_search_completes(tiny, tmp_path):
    if ray.is_initialized():
        ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        plan = plan_for({**tiny, "epochs": 60, "stopping_step": 100}, seeds=1)
        with connected(
            cluster.address
        ):  # while there is only the first node, so that the driver is on it
            second = cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes()
            assert ray.cluster_resources()["CPU"] == 2
            seen = _lose_a_node(plan, tmp_path / "search", cluster, second)
            assert sum(node["Alive"] for node in ray.nodes()) == 1
        rows = rows_of(tmp_path / "search")
        assert [row["M"] for row in rows] == ["1", "2", "5", "20"]
        assert {row["status"] for row in rows} == {"done"}
        assert {row["epochs"] for row in rows} == {"60"}
        assert len(seen) == 2  # trials ran on both nodes
    finally:
        ray.shutdown()
        cluster.shutdown()


def _lose_a_node(plan, folder, cluster, second):
    """Run a search, and take the second node away as soon as both of them train."""
    seen = set()

    def watch():
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            actors = [a for a in ray._private.state.actors().values() if a["State"] == "ALIVE"]
            seen.update(actor["Address"]["NodeID"] for actor in actors)
            trained = list(folder.glob("trials/*/result.json"))
            if len(seen) == 2 and len(trained) >= 2:  # the first may be at its second trial by now
                cluster.remove_node(second)
                return
            time.sleep(0.2)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    run_search(plan, folder, max_failures=3, progress=False)
    watcher.join(timeout=100)
    return seen


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model=MF"], "needs --model and --dataset"),
        (["--model=MF", "--dataset=ml-100k", "--search=no.yaml"], "no.yaml does not exist"),
        (["--model=MF", "--dataset=ml-100k", "--scheduler=best"], "scheduler"),
        (["--model=MF", "--dataset=ml-100k", "--cpus=0"], "a trial needs some"),
        (["--model=MF", "--dataset=ml-100k", "--ray_address=127.0.0.1:1"], "cannot be reached"),
        (["--model=MF", "--dataset=ml-100k", "--cpus=999"], "does not fit"),
        (["--model=MF", "--dataset=ml-100k", "--ray_address=nonsense"], "cannot be reached"),
        (["--resume=nowhere"], "is not the folder of a search"),
        (["--model=MF", "--dataset=ml-100k", "--storage=.", "--name=other"], "holds a search already"),
        (["--resume=other", "--search=other/s.yaml"], "another search: there search is"),
        (["--resume=other", "--seeds=3"], "another search: there seeds is 1, here 3"),
        (["--resume=other", "--dataset=yelp"], "another search: there dataset is ml-100k, here yelp"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(arguments, words, capsys):
    Path("other").mkdir()
    search = {"model": "MF", "dataset": "ml-100k", "settings": {"sampler": "dns"}}
    search.update(space={"M": ["grid", [1]]}, num_samples=1, scheduler="none", seeds=1)
    Path("other/search.json").write_text(json.dumps(search))
    Path("other/s.yaml").write_text("M: {grid: [1, 2]}")
    started = time.monotonic()
    assert main(["tune", *arguments]) == 2
    assert time.monotonic() - started < 20
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1].startswith("recbole-hns: error: ")
    assert words in captured.err.splitlines()[-1]
