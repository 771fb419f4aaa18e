"""What results/ and the README print is what the records say."""

import re
import shutil
import statistics
import sys
from pathlib import Path

import pytest
import yaml

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
