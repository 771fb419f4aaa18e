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
from ray.cluster_utils import Cluster

import recbole_hns
from recbole_hns import Error, HNSConfig, Method, pools, rules, run_recbole_hns
from recbole_hns.cli.main import main
from recbole_hns.cli.tune import summary_text
from recbole_hns.runs.pipeline import make_loaders
from recbole_hns.training.checkpoint import read_checkpoint
from recbole_hns.tuning import Machines, SearchPlan, make_plan, run_search
from recbole_hns.tuning import trial as trial_module
from recbole_hns.tuning.cluster import alone, connected
from recbole_hns.tuning.search import search_parts
from recbole_hns.tuning.study import Reports, Study, name_of
from recbole_hns.tuning.trial import run_trial, take_over
from recbole_hns.tuning.trials import best_trial

QUICK = {"sampler": "dns", "N": 20, "epochs": 3, "valid_metric": "NDCG@10", "show_progress": False}


@pytest.fixture(scope="module")
def local_ray():
    """One Ray of this machine's own for the searches of this file that need no other."""
    with connected(None):
        yield


def plan_for(settings, text="M: {grid: [1, 2, 5, 20]}", seeds=2, **more):
    Path("search.yaml").write_text(text)
    settings = {**QUICK, **settings}
    if "epochs:" in text:
        del settings["epochs"]
    return make_plan("MF", "tiny", settings, Path("search.yaml"), seeds=seeds, **more)


class Stop(Exception):
    """What ends a trial of these tests."""


@pytest.fixture
def without_ray(monkeypatch):
    """Run a trial here; returns its reports, each with the state that it handed to Ray.

    ``taken`` is the state that it is to go on from, ``after`` the number of reports to stop it after.
    """

    def run(plan, parts, taken=None, after=None, number=0, **settings):
        told = []

        def report(metrics, checkpoint=None):
            state = None
            if checkpoint is not None:
                with checkpoint.as_directory() as place:
                    state = read_checkpoint(Path(place) / trial_module.STATE)
            told.append((metrics, state))
            if len(told) == after:
                raise Stop

        def get_checkpoint():
            if taken is None:
                return None
            folder = Path("handed").absolute()
            folder.mkdir(exist_ok=True)
            trial_module.write_checkpoint(taken, folder / trial_module.STATE)
            return trial_module.Checkpoint.from_directory(str(folder))

        monkeypatch.setattr(trial_module, "report", report)
        monkeypatch.setattr(trial_module, "get_checkpoint", get_checkpoint)
        monkeypatch.setattr(trial_module, "trial_name", lambda: name_of(number))
        here, threads = Path.cwd(), torch.get_num_threads()
        study = Study(plan, None, 1, str(here / "search"), str(here), [], [])
        try:
            run_trial({"trial": {"number": number, **settings}}, study, parts)
        except Stop:
            pass
        finally:
            monkeypatch.chdir(here)
            torch.set_num_threads(threads)
        return told

    return run


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
    before = signal.getsignal(signal.SIGINT)
    summary = run_search(plan_for(tiny, "M: {grid: [1, 5]}", seeds=0), folder, progress=False)
    assert signal.getsignal(signal.SIGINT) is before  # Ray takes it while it runs
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
    assert not any(Path(place).is_absolute() for place in places if place)


def test_a_search_selects_on_validation_and_tests_the_winner_only(tiny, local_ray, tmp_path):
    folder = tmp_path / "search"
    plan = plan_for(tiny)
    summary = run_search(plan, folder, progress=False)
    rows = rows_of(folder)
    assert [row["M"] for row in rows] == ["1", "2", "5", "20"]
    assert {row["status"] for row in rows} == {"done"}
    # Every trial is what a run with the same settings is, up to its validation.
    for row in rows:
        result = run_recbole_hns("MF", "tiny", config_dict={**plan.typed, "M": int(row["M"])})
        assert result["best_valid_score"] == pytest.approx(float(row["best_score"]))
    best = max(rows, key=lambda row: float(row["best_score"]))
    assert summary["best"] == {"M": int(best["M"])}
    # No trial has seen a test; the winner was tested once per seed, on the search's own split.
    for file in (folder / "trials").rglob("result.json"):
        assert json.loads(file.read_text())["test"] is None
    runs = [json.loads(file.read_text()) for file in sorted((folder / "runs").rglob("result.json"))]
    assert sorted(run["seed"] for run in runs) == [2020, 2021]
    assert all(run["sampler"]["M"] == int(best["M"]) for run in runs)
    again = run_recbole_hns("MF", "tiny", config_dict={**plan.typed, "M": int(best["M"])})
    assert runs[0]["test"] == pytest.approx(again["test_result"])
    mean = sum(run["test"]["ndcg@10"] for run in runs) / 2
    assert summary["test"]["ndcg@10"]["mean"] == pytest.approx(mean)
    # The files are ready for use.
    best_file = run_recbole_hns("MF", "tiny", None, [str(folder / "best.yaml")], tiny)
    assert best_file["test_result"] == again["test_result"]
    assert (folder / "report" / "report.html").stat().st_size > 1_000_000


def test_a_trial_needs_no_file_of_the_machine_that_began_the_search(tiny, tmp_path, monkeypatch):
    """On a cluster only the storage is shared: property files are read when the search begins."""
    Path("mine.yaml").write_text("N: 30\n")
    data = Path(tiny["data_path"]) / "tiny"
    (data / "tiny.yaml").write_text("epochs: 4\nN: 50\n")
    plan = make_plan("MF", "tiny", {**tiny, "sampler": "dns"}, {"M": [1, 2]}, ["mine.yaml"])
    run = HNSConfig("MF", "tiny", ["mine.yaml"], {**tiny, "sampler": "dns"})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for file in ("mine.yaml", "data/tiny/tiny.yaml"):
        (tmp_path / file).unlink()
    assert (plan.config()["N"], plan.config()["epochs"]) == (run["N"], run["epochs"]) == (30, 4)


@pytest.mark.parametrize("place", ["beside", "file", "typed", "nowhere"])
def test_a_search_has_the_settings_of_a_run_wherever_they_are_given(tiny, place):
    beside = Path(tiny["data_path"]) / "tiny" / "tiny.yaml"
    beside.write_text("N: 50\nlearning_rate: 2e-3\n" if place == "beside" else "")
    Path("own.yaml").write_text("N: 60\n" if place == "file" else "")
    typed = {**tiny, "sampler": "dns", **({"N": 70} if place == "typed" else {})}
    run = HNSConfig("MF", "tiny", ["own.yaml"], {**typed, "M": 5})
    trial = make_plan("MF", "tiny", typed, {"M": [1, 5]}, ["own.yaml"]).config({"M": 5})
    assert trial.final_config_dict == run.final_config_dict
    assert run["N"] == {"beside": 50, "file": 60, "typed": 70, "nowhere": 200}[place]


def test_what_a_trial_is_given_and_reports_has_nothing_of_the_test_set(tiny, without_ray):
    """Neither scheduler nor search can see a test metric: a trial has no test set to make one from."""
    plan = plan_for(tiny)
    parts = search_parts(plan.config())
    assert parts.test is None
    train, valid = (
        {*zip(d.inter_feat["user_id"].tolist(), d.inter_feat["item_id"].tolist())}
        for d in (parts.train, parts.valid)
    )
    pairs = Path(tiny["data_path"], "tiny", "tiny.inter").read_text().splitlines()[1:]
    assert len(train) + len(valid) == round(0.9 * len(pairs))
    loaders = make_loaders(plan.config(), parts)
    assert loaders.test is None
    for loader in (loaders.train, loaders.valid):
        for dataset in [loader._dataset, *getattr(getattr(loader, "_sampler", None), "datasets", [])]:
            own = {*zip(dataset.inter_feat["user_id"].tolist(), dataset.inter_feat["item_id"].tolist())}
            assert own <= train | valid
    told = without_ray(plan, parts, M=5)
    assert [set(metrics) for metrics, _ in told] == [
        {"epoch", "score", "best_score", "best_epoch", "seconds"}
    ] * 3


@pytest.mark.parametrize("mode", ["full", "pop5", "uni5"])
def test_a_trial_is_a_run_up_to_its_validation(tiny, without_ray, mode):
    """Also where the validation ranks among sampled items: both draw the same."""
    settings = {**tiny, "eval_args": {"mode": mode}}
    plan = plan_for(settings)
    told = without_ray(plan, search_parts(plan.config()), M=5)
    run = run_recbole_hns("MF", "tiny", config_dict={**QUICK, **settings, "M": 5})
    record = json.loads(Path(run["result_file"]).read_text())
    assert [metrics["score"] for metrics, _ in told] == [row["score"] for row in record["epochs"]]
    trial = json.loads(Path("search/trials/0000/result.json").read_text())
    assert trial["best"] == record["best"]
    for one in (trial, record):
        one["config"] = {
            k: v for k, v in one["config"].items() if k not in ("checkpoint_dir", "result_dir")
        }
        one["config"].pop("state")
    assert trial["config"] == record["config"]


def test_a_trial_that_was_stopped_goes_on_to_the_same_end(tiny, without_ray):
    plan = plan_for({**tiny, "epochs": 6})
    parts = search_parts(plan.config())
    whole = without_ray(plan, parts, number=0, M=5)
    first = without_ray(plan, parts, number=1, after=3, M=5)
    second = without_ray(plan, parts, number=1, M=5)
    without_time = [{k: v for k, v in m.items() if k != "seconds"} for m, _ in whole]
    assert [m["score"] for m, _ in first] == [m["score"] for m, _ in whole[:3]]
    # What is known already is told again, for schedulers that compare trials.
    assert [{k: v for k, v in m.items() if k != "seconds"} for m, _ in second] == without_time
    assert Reports.read(Path("search/trials/0001")).done
    assert not list(Path("search").rglob("*.pth"))
    third = without_ray(plan, parts, number=1, M=5)  # nothing is trained again
    assert third == second


def test_a_trial_takes_over_anothers_weights_and_not_its_score(tiny, without_ray):
    """What population-based training does: a score stays with the settings that made it."""
    plan = plan_for(
        {**tiny, "epochs": 9},
        "M: {choice: [1, 5]}\nlearning_rate: {choice: [0.001, 0.01]}",
        scheduler="pbt",
    )
    parts = search_parts(plan.config())
    good = without_ray(plan, parts, number=0, after=3, M=5, learning_rate=0.001)
    state = good[-1][1]
    taken = take_over(state, plan.config({"M": 1, "learning_rate": 0.01}))
    assert [group["lr"] for group in taken["optimizer"]["param_groups"]] == [0.01]
    assert taken["best_valid_score"] == float("-inf")
    assert torch.equal(
        taken["state_dict"]["user_embedding.weight"], state["state_dict"]["user_embedding.weight"]
    )
    poor = without_ray(plan, parts, number=1, taken=state, after=2, M=1, learning_rate=0.01)
    assert [metrics["epoch"] for metrics, _ in poor] == [4, 5]
    assert poor[-1][0]["best_score"] == max(metrics["score"] for metrics, _ in poor)
    assert poor[-1][1]["trial"]["settings"] == {"M": 1, "learning_rate": 0.01}
    record = json.loads(Path("search/trials/0001/result.json").read_text())
    assert (record["sampler"]["M"], record["config"]["learning_rate"]) == (1, 0.01)
    assert record["best"]["score"] == poor[-1][0]["best_score"]
    # With its own settings a trial goes on exactly where it was.
    same = without_ray(plan, parts, number=2, taken=state, after=1, M=5, learning_rate=0.001)
    whole = without_ray(plan, parts, number=3, after=4, M=5, learning_rate=0.001)
    assert same[0][0]["score"] == whole[3][0]["score"]


@pytest.mark.parametrize("scheduler", ["asha", pytest.param("median", marks=pytest.mark.slow), "pbt"])
def test_schedulers_run(tiny, local_ray, tmp_path, scheduler):
    text = "M: {choice: [1, 2, 5, 20]}\nlearning_rate: {loguniform: [1.0e-4, 1.0e-2]}"
    plan = plan_for({**tiny, "epochs": 12}, text, seeds=1, num_samples=4, scheduler=scheduler)
    summary = run_search(plan, tmp_path / "search", progress=False)
    assert summary["trials"] == 4
    assert summary["failed"] == 0
    rows = rows_of(tmp_path / "search")
    assert max(int(row["epochs"]) for row in rows) == 12
    for number, row in enumerate(rows):  # a row's score was made with the row's settings
        lines = Reports.read(tmp_path / "search" / "trials" / f"{number:04d}").lines
        scores = [line["score"] for line in lines if str(line["settings"]["M"]) == row["M"]]
        assert float(row["best_score"]) == max(scores) == max(line["score"] for line in lines)
        if scheduler == "pbt":  # every trial has files of its own and trains to the end
            epochs = [line["epoch"] for line in lines]
            assert epochs[-1] == 12
            assert len(set(map(str, lines))) == len(lines)


def test_a_trial_that_raises_is_marked_and_the_others_go_on(tiny, local_ray, tmp_path):
    """A learning rate that ends in infinite numbers: the trainer raises in the trial."""
    text = "learning_rate: {grid: [0.001, 1000.0]}"
    plan = plan_for({**tiny, "M": 1, "learner": "sgd", "train_batch_size": 8}, text, seeds=1)
    summary = run_search(plan, tmp_path / "search", Machines(max_failures=0), progress=False)
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
    with alone():
        cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        try:
            plan = plan_for({**tiny, "epochs": 60, "stopping_step": 100}, seeds=1)
            # While there is only the first node, so that the driver is on it.
            with connected(cluster.address):
                second = cluster.add_node(num_cpus=1)
                cluster.wait_for_nodes()
                assert ray.cluster_resources()["CPU"] == 2
                seen = _lose_a_node(plan, tmp_path / "search", cluster, second)
                assert sum(node["Alive"] for node in ray.nodes()) == 1
        finally:
            ray.shutdown()
            cluster.shutdown()
    rows = rows_of(tmp_path / "search")
    assert [row["M"] for row in rows] == ["1", "2", "5", "20"]
    assert {row["status"] for row in rows} == {"done"}
    assert {row["epochs"] for row in rows} == {"60"}
    assert len(seen) == 2  # trials ran on both nodes


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
    run_search(plan, folder, Machines(max_failures=3), progress=False)
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
        (["--resume=other", "--N=100"], "another search: there N is not given, here 100"),
        (["--model=MF", "--dataset=ml-100k", "--name=../x"], "it is the name of a folder in tuning"),
        (["--model=MF", "--dataset=ml-100k", "--storage=/dev/null"], "folder that can be written to"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(arguments, words, capsys):
    Path("other").mkdir()
    make_plan("MF", "ml-100k", {"sampler": "dns"}, {"M": [1]}, seeds=1).write(Path("other"))
    Path("other/s.yaml").write_text("M: {grid: [1, 2]}")
    started = time.monotonic()
    assert main(["tune", *arguments]) == 2
    assert time.monotonic() - started < 20
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1].startswith("recbole-hns: error: ")
    assert words in captured.err.splitlines()[-1]
    assert not Path("tuning").exists()  # nothing is left of a search that did not begin


def test_parts_of_ones_own_are_known_to_the_workers(tiny, local_ray, tmp_path, monkeypatch):
    """One from a module that was imported for it, one from this script, and one without a name."""
    Path("ownparts.py").write_text(
        "import recbole_hns as hns\n"
        "@hns.register\n"
        "class Halved(hns.Rule, frozen=True):\n"
        '    """Half of the candidates count."""\n'
        "    def weigh(self, s):\n"
        "        best = s.r_cj.topk(s.r_cj.shape[1] // 2).indices\n"
        "        return (s.r_cj * 0).scatter(1, best, 2 / s.r_cj.shape[1])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    search = Path("s.yaml")
    search.write_text("N: {grid: [6, 20]}")
    line = [
        "tune",
        "--import=ownparts",
        "--model=MF",
        "--dataset=tiny",
        "--sampler=halved",
        "--epochs=2",
    ]
    line += [f"--data_path={tiny['data_path']}", f"--search={search}", "--seeds=1", "--name=a"]
    assert main(line) == 0
    assert {row["status"] for row in rows_of(Path("tuning/a"))} == {"done"}
    method = Method(pools.Popularity(), rules.DNS(M=2), N=10)
    summary = recbole_hns.tune(
        "MF", "tiny", method=method, search={"M": [1, 2]}, epochs=2, seeds=1, progress=False, **tiny
    )
    assert (summary["trials"], summary["failed"], len(summary["seeds"])) == (2, 0, 1)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's table of sockets")
def test_nobody_else_can_reach_a_search_on_this_machine():
    """Whoever reaches Ray's ports can run code."""
    if ray.is_initialized():
        ray.shutdown()
    before = open_ports()
    with connected(None):
        assert len(open_ports(loopback=True)) >= 5
        assert open_ports() - before == set()


def open_ports(loopback=False):
    """The ports on which this machine listens for others, or for itself."""
    found = set()
    for table, here in (("tcp", "0100007F"), ("tcp6", "00000000000000000000000001000000")):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            host, port = address.split(":")
            mapped = host == "0000000000000000FFFF00000100007F"
            if state == "0A" and ((host == here or mapped) == loopback):
                found.add(int(port, 16))
    return found
