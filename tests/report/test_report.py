"""Tables and figures from result.json alone."""

import re
from pathlib import Path

import numpy as np
import pytest
from report_runs import table_rows, write_run

from recbole_hns import run_recbole_hns
from recbole_hns.cli.main import main
from recbole_hns.report.groups import best_settings, collect
from recbole_hns.report.sections import make_sections
from recbole_hns.report.sweeps import effect_curves, sweeps


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


def test_the_table_has_best_bold_and_second_underlined():
    values = three_methods()
    assert main(["report", "runs", "--output=out"]) == 0
    rows, _ = table_rows()
    mean, std = values["dns"].mean(), values["dns"].std(ddof=1)
    assert rows["DNS(5, 200)"][0] == f"**{mean:.4f} ± {std:.4f}**\\*\\*"
    assert rows["Softmax-v(1, 200)"][0].startswith(f"<u>{values['softmax_v'].mean():.4f}")
    assert "*" not in rows["BPR"][0]
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
    curves = {(c.metric, c.K): c for c in effect_curves(sweep, ["ndcg@10", "ndcg@50", "recall@10"])}
    assert curves["NDCG", 10].y == pytest.approx([1 / 3, 1, 2 / 3])
    assert [curve.best for curve in curves.values()] == [1, 1, 0]
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


def test_any_method_has_a_row_whatever_it_is_called_and_has_set():
    write_run("runs", "softmax", 0, {"ndcg@10": 0.1}, tau=0.5, N=200)
    write_run("runs", "my_rule", 0, {"ndcg@10": 0.2}, heat=[1, 2])
    write_run("runs", "softmax_v", 0, {"ndcg@10": 0.3}, rho=0.5, N=200)
    labels = [group.label for group in best_settings(collect([Path("runs")]))]
    assert labels == ["Softmax", "Softmax-v(0.5, 200)", "my_rule"]


def test_a_setting_that_differs_between_data_sets_is_left_out_of_the_row():
    for dataset, M in (("one", 5), ("two", 10)):
        write_run("runs", "dns", 0, {"ndcg@10": 0.2}, dataset=dataset, M=M, N=200)
        write_run("runs", "dns", 0, {"ndcg@10": 0.1}, dataset=dataset, M=1, N=20 * M)
    main(["report", "runs", "--output=out"])
    rows, _ = table_rows()
    assert rows["DNS"] == ["**0.2000**", "**0.2000**"]
    assert rows["DNS, M = 1"] == ["<u>0.1000</u>", "<u>0.1000</u>"]


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
    (section,) = make_sections(collect([Path("runs")]))
    (strategies,) = section.strategies
    assert [group.label for group in strategies.groups] == ["BPR, refit", "DNS(5, 200), refit"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "does not exist"),
        (["empty"], "holds no result.json and no runs.jsonl"),
        (["runs", "--metrics=ndcg@99"], "metric ndcg@99 is in no run: they have ndcg@10."),
        (["runs", "--ours=nothing"], "ours=nothing is no sampler of these runs"),
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
