"""Runs that were measured otherwise are never in one table, and none is dropped without a word."""

from pathlib import Path

import pytest
from report_runs import record, write_run, write_seeds

from recbole_hns.cli.main import main
from recbole_hns.report.groups import collect, make_groups
from recbole_hns.report.records import as_record
from recbole_hns.report.sections import make_sections


def split(**changes):
    """The settings of an evaluation."""
    own = {"split": {"RS": [0.8, 0.1, 0.1]}, "order": "RO", "group_by": "user", "mode": {"test": "full"}}
    return {"eval_args": {**own, **changes}, "split_seed": 1}


def text(*options):
    """The Markdown of a report on ``runs``."""
    assert main(["report", "runs", "--output=out", *options]) == 0
    return Path("out/table.md").read_text()


def test_searches_with_different_metrics_have_tables_of_their_own():
    write_seeds("runs", "dns", [0.30, 0.32], metric="ndcg@10", M=5, N=200)
    write_seeds("runs", "uniform", [0.20, 0.22], metric="ndcg@10")
    write_seeds("runs", "softmax_v", [0.40, 0.42], metric="recall@20", rho=1.0, N=200)
    first, second = text().split("### ")[1:]
    assert first.startswith("MF on d, chosen by NDCG@10\n")
    assert "| method | d NDCG@10 |" in first
    assert "**0.3100 ± 0.0141**" in first
    assert "Softmax-v" not in first
    assert second.startswith("MF on d, chosen by Recall@20\n")
    assert "| method | d Recall@20 |" in second
    assert "| Softmax-v(1, 200) | 0.4100 ± 0.0141 |" in second
    assert "its numbers compare with no other part's" in second
    assert Path("out/report.html").read_text().count("chosen by") == 2


@pytest.mark.parametrize(
    "change",
    [{"split": {"RS": [0.7, 0.1, 0.2]}}, {"order": "TO"}, {"mode": {"test": "uni100"}}],
    ids=["split", "order", "mode"],
)
def test_another_evaluation_is_another_table(change):
    write_run("runs", "dns", 0, {"ndcg@10": 0.3}, config=split(), M=5, N=200)
    write_run("runs", "uniform", 0, {"ndcg@10": 0.2}, config=split(**change))
    first, second = make_sections(collect([Path("runs")]))
    assert first.table.methods == ["BPR"]
    assert second.table.methods == ["DNS(5, 200)"]
    assert first.heading != second.heading
    assert "split by seed 1" in first.heading


def protocol(test=True, seed=0, **config):
    """What a run may be compared by."""
    run = record("dns", seed, {"ndcg@10": 0.3} if test else None, config=config, M=5, N=200)
    (group,) = make_groups([as_record(run, "a test")])
    return group.protocol


def test_splits_agree_where_the_data_do():
    assert protocol(split_seed=1) != protocol(split_seed=2)
    assert protocol(split_seed=1) != protocol()  # one split against one for every seed
    assert protocol(seed=1) == protocol(seed=2)
    files = {"benchmark_filename": ["train", "valid", "test"]}
    assert protocol(split_seed=1, **files) == protocol(**files)
    assert protocol(test=False, seed=7) == protocol(split_seed=7)  # a trial, and the tests of its winner


def test_more_k_is_no_other_protocol():
    write_run("runs", "dns", 0, {"ndcg@10": 0.3, "ndcg@50": 0.4}, M=5, N=200)
    write_run("runs", "uniform", 0, {"ndcg@10": 0.2})
    assert "| method | d NDCG@10 |\n" in text()
    wide = text("--metrics=ndcg@50")
    assert "| DNS(5, 200) | **0.3000** | 0.4000 |" in wide
    assert "| BPR | <u>0.2000</u> |  |" in wide


def test_the_metric_that_chose_comes_first_and_is_never_left_out():
    test = {"recall@5": 0.1, "ndcg@5": 0.2, "recall@10": 0.3, "ndcg@10": 0.4, "recall@50": 0.5}
    write_run("runs", "dns", 0, test, M=5, N=200)
    assert "| method | d NDCG@10 | d NDCG@5 | d Recall@5 | d Recall@50 |" in text()
    assert "| method | d NDCG@10 | d Recall@5 |" in text("--metrics=recall@5")


def test_a_metric_that_some_lack_is_told():
    write_run("runs", "dns", 0, {"ndcg@10": 0.3, "recall@5": 0.1}, dataset="one", M=5, N=200)
    write_run("runs", "dns", 0, {"ndcg@10": 0.2}, dataset="two", M=5, N=200)
    found = text("--metrics=recall@5")
    assert "| method | one NDCG@10 | one Recall@5 | two NDCG@10 |" in found
    assert "The runs on two have no Recall@5: they have NDCG@10." in found
    assert main(["report", "runs", "--metrics=recall@7"]) == 2


def test_what_was_not_tested_and_what_was_not_chosen_is_told():
    write_run("runs", "dns", 0, {"ndcg@10": 0.3}, score=0.3, M=5, N=200)
    write_run("runs", "dns", 0, {"ndcg@10": 0.4}, score=0.2, M=9, N=200)
    for M in (1, 2):
        write_run("runs", "dns", 0, None, valid="Recall@20", M=M, N=200)
    first, second = text().split("### ")[1:]
    assert "| DNS(5, 200) | 0.3000 |" in first
    assert "tested beside them: 1." in first
    assert second.startswith("MF on d, chosen by Recall@20")
    assert "Nothing was tested on d: 2 settings were validated only." in second


def test_sweeps_of_different_protocols_have_figures_of_their_own():
    for valid in ("ndcg@10", "ndcg@20"):
        for M in (1, 2, 3):
            write_run("runs", "dns", 0, {valid: M / 10}, valid=valid, M=M, N=200)
    text()
    assert {file.name for file in Path("out").glob("effect*")} == {
        "effect-MF-d-dns-M.png",
        "effect-MF-d-dns-M-2.png",
    }
