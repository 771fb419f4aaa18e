"""What results/ and the README print is what the records say."""

import re
import shutil
import statistics
import sys
from pathlib import Path

import pytest
import yaml

from recbole_hns import run_recbole_hns
from recbole_hns.bridge import config as bridge
from recbole_hns.runs.config import HNSConfig
from recbole_hns.settings.layers import Layer

RESULTS = Path(__file__).parents[2] / "results"
STUDIES = sorted(file.parent.name for file in RESULTS.glob("*/runs.jsonl"))


@pytest.fixture
def make(monkeypatch):
    """results/make.py, and records.py with it."""
    monkeypatch.syspath_prepend(str(RESULTS))
    for name in ("make", "records"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import make

    yield make
    del sys.modules["make"], sys.modules["records"]


def test_the_tables_of_both_readmes_are_those_of_the_records(make):
    found = {**make.tables(), "time to quality": None}
    for file in (RESULTS / "README.md", RESULTS.parent / "README.md"):
        copy = Path(shutil.copy(file, "."))
        text = copy.read_text("utf-8")
        head, _, rest = text.partition("<!-- table: time to quality -->\n")  # of a benchmark
        found["time to quality"] = rest.partition("\n<!-- end -->")[0]
        make.put(copy, found)
        assert copy.read_text("utf-8") == text
        assert head.count("<!-- table: ") >= 1


def test_rows_whose_tests_never_saw_the_epoch_that_won_are_marked(make):
    """Kernel won after 8 epochs; its five tests validated after 5, and no later."""
    early = make.tested_early("gowalla-mf")
    assert early == {
        "uniform": (40, 42),
        "irgan": (40, 42),
        "kernel": (5, 8),
        "non_sampling": (10, 12),
    }
    assert not any(make.tested_early(study) for study in make.METRICS if study != "gowalla-mf")
    rows, _, below = make.beside_the_paper("gowalla-mf").partition("\n\n")
    names = [row.split(" | ")[0].strip("| ") for row in rows.splitlines()]
    assert [name for name in names if "†" in name] == ["BPR †", "IRGAN †", "Kernel †", "Non-Sampling †"]
    assert below.startswith("† To be run again: ")
    assert "Kernel after 5 of 8 epochs" in below
    assert "†" not in make.beside_the_paper("gowalla-mf-reg")


def test_the_words_about_the_original_dns_are_those_of_the_records(make):
    found = make.summaries("gowalla-mf")
    text = (RESULTS / "README.md").read_text("utf-8")
    said = re.search(
        r"within 5 % of DNS\(M, N\) after the refit \(([\d.]+) % and ([\d.]+) % below it", text
    )
    for metric, percent in zip(make.METRICS["gowalla-mf"], said.groups()):
        of_1, of_M = (found[name]["refit"]["test"][metric]["mean"] for name in ("dns1", "dns"))
        assert f"{100 * (1 - of_1 / of_M):.1f}" == percent
        assert float(percent) < 5


@pytest.mark.parametrize("study", STUDIES)
def test_a_summary_is_the_mean_and_deviation_of_its_runs(make, study):
    lines = make.lines_of(study)
    for search, line in make.of_kind(study, "summary").items():
        summary = line["summary"]
        for part, said in (
            ("runs", summary["test"]),
            ("refit", summary.get("refit", {}).get("test", {})),
        ):
            runs = [one["result"] for one in lines if (one["search"], one.get("part")) == (search, part)]
            for metric, value in said.items():
                values = [run["test"][metric] for run in runs]
                assert value["mean"] == pytest.approx(statistics.fmean(values), rel=1e-12)
                assert value["std"] == pytest.approx(statistics.stdev(values), rel=1e-9)


@pytest.mark.parametrize("study", STUDIES)
def test_the_domains_are_those_that_were_searched(make, study):
    from records import domains

    for search, line in make.of_kind(study, "plan").items():
        plan, name = line["plan"], search.partition("-")[2] if study == "effects" else search
        fixed = {key: ["grid", [value]] for key, value in plan["settings"].items()}
        for key, domain in yaml.safe_load(domains(study, name)).items():
            ((kind, values),) = domain.items()
            assert {**fixed, **plan["space"]}[key] == [kind, values]


def test_every_study_has_the_report_that_stands_there(make, monkeypatch, tmp_path):
    """tables.md and tables.tex, with their tests."""
    for study in make.METRICS:
        (tmp_path / "results" / study).mkdir(parents=True)
        (tmp_path / "results" / study / "runs.jsonl").symlink_to(RESULTS / study / "runs.jsonl")
    monkeypatch.setattr(make, "HERE", tmp_path / "results")
    monkeypatch.setattr(make, "plot_strategies", lambda *arguments: None)
    make.reports()
    for name in ("tables.md", "tables.tex"):
        assert (tmp_path / "results" / name).read_text("utf-8") == (RESULTS / name).read_text("utf-8")


# Where a run was and what it showed; how much is evaluated at a time.
DECIDES_NOTHING = {
    "data_path",
    "checkpoint_dir",
    "result_dir",
    "state",
    "show_progress",
    "worker",
    "gpu_id",
}
DECIDES_NOTHING |= {"use_gpu", "device", "split_seed", "eval_batch_size", "trust_checkpoint"}
# What the versions of then did, and had no setting for.
OF_THEN = {"reg_weight": 0, "margin": 1.0}


def winners(make, study):
    """Of each search its model, data set, best.yaml as a layer, and the whole configuration of its run."""
    part, plans = "trials" if study == "effects" else "runs", make.of_kind(study, "plan")
    for search, line in make.of_kind(study, "best").items():
        chosen = make.of_kind(study, "summary")[search]["summary"]["best"]
        configs = [
            one["result"]["config"]
            for one in make.lines_of(study)
            if (one["search"], one.get("part")) == (search, part)
        ]
        own = next(c for c in configs if all(c.get(key) == value for key, value in chosen.items()))
        plan, best = plans[search]["plan"], Layer("best.yaml", yaml.safe_load(line["yaml"]))
        yield plan["model"], plan["dataset"], best, own


@pytest.mark.parametrize("defaults", ["today's", "none"])
@pytest.mark.parametrize("study", STUDIES)
def test_a_recorded_best_is_everything_that_decided(make, study, defaults, monkeypatch):
    """With it a configuration is that of the recorded run, whatever the package's defaults have become."""
    if defaults == "none":
        shipped = bridge.shipped
        monkeypatch.setattr(
            bridge, "shipped", lambda name: shipped(name) if name == "overall" else Layer(name, {})
        )
    for model, dataset, best, of_run in winners(make, study):
        today = HNSConfig(model, dataset, [best]).final_config_dict
        then = {**OF_THEN, **of_run}
        differ = {
            key: (then.get(key), value)
            for key, value in today.items()
            if str(then.get(key)) != str(value)
        }
        unequal = {
            key for key, (a, b) in differ.items() if not (isinstance(a, (int, float)) and float(a) == b)
        }
        assert unequal - DECIDES_NOTHING == set(), differ
        # What the run had and today's has not, its sampler does not heed.
        unheeded = {"N", "pool", "pool_block", "pool_alpha"}
        assert set(of_run) - set(today) <= unheeded | DECIDES_NOTHING


def test_there_are_28_recorded_winners(make):
    assert sum(len(list(winners(make, study))) for study in STUDIES) == 28


@pytest.mark.slow
def test_a_run_of_a_recorded_best_is_the_run_of_its_whole_configuration(make):
    """On ml-100k, whose split is by chance: every loss and test to the last digit."""
    by_sampler = {best.values["sampler"]: (best, own) for *_, best, own in winners(make, "gowalla-mf")}
    best, own = by_sampler["kernel"]
    more = {"benchmark_filename": None, "epochs": 3, "state": "ERROR", "show_progress": False}
    own = {key: value for key, value in own.items() if key in best.values}
    found = [
        run_recbole_hns("MF", "ml-100k", config_dict={**settings, **more})
        for settings in (best.values, {**own, "reg_weight": 0, "sampler": "kernel"})
    ]
    assert found[0]["test_result"] == found[1]["test_result"]
    assert found[0]["best_valid_result"] == found[1]["best_valid_result"]
