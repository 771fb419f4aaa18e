"""Tables and figures from result.json alone."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind

from recbole_hns import run_recbole_hns
from recbole_hns.cli.main import main
from recbole_hns.report import _strategies
from recbole_hns.report.collect import best_settings, collect, sweeps


def write_run(folder, sampler, seed, test, score=0.1, dataset="d", model="BPR", config=None, **settings):
    """A result.json as a run writes it, cut down to what a report reads."""
    values = [*settings.values(), *(config or {}).values()]
    folder = Path(folder) / f"{sampler}-{seed}-{'-'.join(map(str, values))}-{dataset}"
    folder.mkdir(parents=True)
    valid = {name: value / 2 for name, value in (test or {"ndcg@10": score}).items()}
    record = {
        "format": 1,
        "model": model,
        "dataset": dataset,
        "sampler": {"sampler": sampler, **settings, "hns_backend": "auto"},
        "seed": seed,
        "valid_metric": "NDCG@10",
        "valid_metric_bigger": True,
        "best": {"epoch": 3, "score": score, "valid": valid},
        "test": test,
        "epochs": [],
        "seconds": 1.0,
        "config": {"learning_rate": 0.001, "weight_decay": 0.0, **(config or {})},
    }
    (folder / "result.json").write_text(json.dumps(record))


def three_methods(folder="runs"):
    rng = np.random.default_rng(0)
    values = {}
    for sampler, level, settings in (
        ("uniform", 0.20, {"N": 1}),
        ("dns", 0.30, {"M": 5, "N": 200}),
        ("softmax_v", 0.25, {"rho": 1.0, "N": 200}),
    ):
        values[sampler] = level + rng.normal(0, 0.005, 5)
        for seed, value in enumerate(values[sampler]):
            test = {"ndcg@10": value, "recall@10": value / 2}
            write_run(folder, sampler, seed, test, score=level, **settings)
    return values


def test_the_table_has_best_bold_second_underlined_and_states_p():
    values = three_methods()
    assert main(["report", "runs", "--output=out"]) == 0
    table = Path("out/table.md").read_text()
    rows = {line.split("|")[1].strip(): line for line in table.splitlines() if line.startswith("| ")}
    mean, std = values["dns"].mean(), values["dns"].std(ddof=1)
    assert f"**{mean:.4f} ± {std:.4f}**\\*\\*" in rows["DNS(5, 200)"]
    assert f"<u>{values['softmax_v'].mean():.4f}" in rows["Softmax-v(1, 200)"]
    assert "**" not in rows["BPR"]
    p = ttest_ind(values["dns"], values["softmax_v"], equal_var=False).pvalue
    assert f"d NDCG@10 p = {p:.2g}" in table
    latex = Path("out/table.tex").read_text()
    assert f"\\textbf{{{mean:.4f} $\\pm$ {std:.4f}**}}" in latex
    assert latex.count("\\\\") == 5


def test_no_significance_without_seeds():
    write_run("runs", "uniform", 0, {"ndcg@10": 0.1}, N=1)
    write_run("runs", "dns", 0, {"ndcg@10": 0.2}, M=5, N=200)
    main(["report", "runs", "--output=out"])
    table = Path("out/table.md").read_text()
    assert "\\*\\*" not in table
    assert "No significance" in table


def test_settings_are_chosen_by_validation_and_not_by_test():
    write_run("runs", "dns", 0, {"ndcg@10": 0.9}, score=0.1, M=2, N=200)
    write_run("runs", "dns", 0, {"ndcg@10": 0.2}, score=0.3, M=5, N=200)
    (best,) = best_settings(collect([Path("runs")]))
    assert best.label == "DNS(5, 200)"


def test_losses_are_compared_and_not_chosen_from():
    write_run("runs", "dns", 0, {"ndcg@10": 0.2}, M=5, N=200, pair_loss="bpr")
    write_run("runs", "dns", 0, {"ndcg@10": 0.3}, M=5, N=200, pair_loss="hinge", margin=1.0)
    write_run("runs", "dns", 0, {"ndcg@10": 0.4}, dataset="e", M=2, N=200, pair_loss="hinge", margin=1.0)
    write_run("runs", "uniform", 0, {"ndcg@10": 0.1}, N=1, pair_loss="hinge", margin=1.0)
    write_run("runs", "warp", 0, {"ndcg@10": 0.1}, max_trials=9, pair_loss="hinge", margin=1.0)
    labels = {group.label for group in best_settings(collect([Path("runs")]))}
    assert labels == {
        "DNS(5, 200)",
        "DNS(5, 200), hinge",
        "DNS(2, 200), hinge",
        "Uniform, hinge",
        "WARP",
    }
    main(["report", "runs", "--output=out"])
    rows = Path("out/table.md").read_text().splitlines()
    methods = {row.split("|")[1].strip() for row in rows if row.startswith("|")}
    assert {"DNS(5, 200)", "DNS, hinge", "Uniform, hinge", "WARP"} <= methods


def test_trials_of_a_search_and_tests_of_their_winner_stay_apart():
    write_run("runs/trials", "dns", 0, None, M=5, N=200)
    write_run("runs/tests", "dns", 1, {"ndcg@10": 0.2}, M=5, N=200)
    groups = collect([Path("runs")])
    assert sorted(group.tested for group in groups) == [False, True]
    (best,) = best_settings(groups)
    assert best.values("ndcg@10") == [0.2]


def test_a_setting_that_was_varied_alone_is_a_sweep_with_its_maximum():
    for M, value in ((1, 0.1), (5, 0.3), (20, 0.2)):
        write_run("runs", "dns", 0, {"ndcg@10": value, "ndcg@50": value, "recall@10": 0.1}, M=M, N=200)
    write_run("runs", "dns", 0, {"ndcg@10": 0.1, "ndcg@50": 0.1, "recall@10": 0.1}, M=1, N=50)
    (sweep,) = sweeps(collect([Path("runs")]))
    assert (sweep.key, sweep.values) == ("M", [1, 5, 20])
    main(["report", "runs", "--output=out"])
    assert Path("out/effect-MF-d-dns-M.png").stat().st_size > 10_000
    page = Path("out/report.html").read_text()
    assert "The effect of M in DNS" in page
    assert page.count("lines+markers") >= 3


def test_the_page_needs_nothing_else_and_its_tables_can_be_sorted():
    three_methods()
    main(["report", "runs", "--output=out", "--title=A <b> & c"])
    page = Path("out/report.html").read_text()
    assert "A &lt;b&gt; &amp; c" in page
    body = page[page.index("<body>") :]
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", body)
    assert body.count("<table class='sortable'>") == 2
    assert "width=device-width" in page


def test_a_real_run_can_be_reported(tiny):
    settings = {**tiny, "sampler": "dns", "epochs": 1, "N": 5, "M": 1}
    for seed in (1, 2):
        run_recbole_hns("MF", "tiny", config_dict={**settings, "seed": seed})
    assert main(["report", "results"]) == 0
    assert "DNS(1, 5)" in Path("report/table.md").read_text()


def test_runs_with_another_schedule_are_other_settings():
    for step in (3, 5):
        write_run("runs", "uniform", 0, {"ndcg@10": step / 10}, config={"lr_step_size": step}, N=1)
    assert [len(group.runs) for group in collect([Path("runs")])] == [1, 1]


def test_the_original_dns_has_a_row_beside_the_controllable_one():
    for M, score in ((1, 0.1), (5, 0.3), (10, 0.2)):
        write_run("runs", "dns", 0, {"ndcg@10": score}, score=score, M=M, N=200)
    labels = [group.label for group in best_settings(collect([Path("runs")]))]
    assert labels == ["DNS(1, 200)", "DNS(5, 200)"]


def test_a_refit_is_reported_for_the_settings_that_validated_best():
    for M, score in ((5, 0.2), (10, 0.3), (20, 0.1)):
        write_run("runs", "dns", 0, {"ndcg@10": score}, score=score, M=M, N=200)
        write_run("runs", "dns", 0, {"ndcg@10": score}, score=None, config={"refit": True}, M=M, N=200)
    labels = [group.label for group in best_settings(collect([Path("runs")]))]
    assert labels == ["DNS(10, 200)", "DNS(10, 200), refit"]


def test_bars_compare_refits_with_refits():
    for sampler, settings in (("uniform", {"N": 1}), ("dns", {"M": 5, "N": 200})):
        for refit in (False, True):
            write_run("runs", sampler, 0, {"ndcg@10": 0.2}, config={"refit": refit}, **settings)
    ((_, compared),) = _strategies(best_settings(collect([Path("runs")])))
    assert [group.label for group in compared] == ["BPR, refit", "DNS(5, 200), refit"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "does not exist"),
        (["empty"], "holds no result.json"),
        (["runs", "--metrics=ndcg@99"], "ndcg@99 is not in every run: they have ndcg@10"),
        (["broken/result.json"], "cannot be read as a result"),
        ([], "RUNS"),
    ],
)
def test_a_mistake_gets_one_line(arguments, words, capsys):
    Path("empty").mkdir()
    Path("broken").mkdir()
    Path("broken/result.json").write_text("{")
    write_run("runs", "dns", 0, {"ndcg@10": 0.2}, M=5, N=200)
    assert main(["report", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error
    assert not Path("report").exists()
