"""Which row is better than its best baseline: tests worked out by hand."""

import math

import pytest
from recbole.evaluator.register import smaller_metrics
from report_runs import record, table_rows, write_run, write_seeds

from recbole_hns.cli.main import main
from recbole_hns.report.comparison import baseline_of, compare, p_value
from recbole_hns.report.groups import best_settings, make_groups
from recbole_hns.report.measures import SMALLER
from recbole_hns.report.records import as_record


def groups_of(*runs):
    """The best groups of some records, by label."""
    groups = best_settings(make_groups(as_record(run, "a test") for run in runs))
    return groups, {group.label: group for group in groups}


def seeds(sampler, values, first_seed=0, refit=False, **settings):
    """Records of a sampler with NDCG@10 of these values."""
    return [
        record(sampler, seed, {"ndcg@10": value}, config={"refit": refit}, **settings)
        for seed, value in enumerate(values, first_seed)
    ]


def test_the_same_seeds_are_paired():
    """Differences 1, 1, 2, 2 in hundredths: t = 3√3 with 3 degrees of freedom.

    Two-sided, p = 1 − 2/π (θ + sin θ cos θ) with tan θ = t/√3 = 3.
    """
    _, by = groups_of(
        *seeds("dns", [0.30, 0.31, 0.32, 0.33], M=5, N=200), *seeds("uniform", [0.29, 0.30, 0.30, 0.31])
    )
    p, paired = p_value(by["DNS(5, 200)"], by["BPR"], "ndcg@10")
    assert paired
    assert p == pytest.approx(1 - 2 / math.pi * (math.atan(3) + 0.3))


def test_other_seeds_are_not_paired():
    """Means 0.6 and 0.2, both variances 0.02: t = 2√2 with 2 degrees of freedom, p = 1 − t/√(2 + t²)."""
    _, by = groups_of(*seeds("dns", [0.5, 0.7], M=5, N=200), *seeds("uniform", [0.1, 0.3], first_seed=7))
    p, paired = p_value(by["DNS(5, 200)"], by["BPR"], "ndcg@10")
    assert not paired
    assert p == pytest.approx(1 - math.sqrt(0.8))


def test_a_seed_that_ran_twice_is_not_paired():
    twice = [*seeds("dns", [0.5, 0.7], M=5, N=200), *seeds("dns", [0.6], M=5, N=200)]
    _, by = groups_of(*twice, *seeds("uniform", [0.1, 0.3]))
    assert p_value(by["DNS(5, 200)"], by["BPR"], "ndcg@10")[1] is False


def test_no_test_of_a_single_seed_or_of_what_does_not_vary():
    _, by = groups_of(*seeds("dns", [0.5], M=5, N=200), *seeds("uniform", [0.1]))
    assert p_value(by["DNS(5, 200)"], by["BPR"], "ndcg@10")[0] is None
    _, by = groups_of(*seeds("dns", [0.5, 0.5], M=5, N=200), *seeds("uniform", [0.5, 0.5]))
    assert compare(by["DNS(5, 200)"], list(by.values()), "ndcg@10") is None


def test_a_refit_is_compared_with_the_best_refit_of_another_method():
    groups, by = groups_of(
        *seeds("dns", [0.40, 0.42], M=5, N=200),
        *seeds("dns", [0.50, 0.52], M=5, N=200, refit=True),
        *seeds("warp", [0.30, 0.32]),
        *seeds("warp", [0.31, 0.33], refit=True),
        *seeds("uniform", [0.10, 0.12]),
        *seeds("uniform", [0.60, 0.62], refit=True),
    )
    baselines = {label: baseline_of(group, groups, "ndcg@10").label for label, group in by.items()}
    assert baselines == {
        "BPR": "DNS(5, 200)",
        "WARP": "DNS(5, 200)",
        "DNS(5, 200)": "WARP",
        "BPR, refit": "DNS(5, 200), refit",
        "WARP, refit": "BPR, refit",
        "DNS(5, 200), refit": "BPR, refit",
    }


def test_other_losses_of_a_method_are_not_its_baselines_but_the_original_dns_is():
    groups, by = groups_of(
        *seeds("dns", [0.5], M=5, N=200),
        *seeds("dns", [0.4], M=5, N=200, pair_loss="hinge"),
        *seeds("dns", [0.2], M=1, N=200),
        *seeds("uniform", [0.1]),
    )
    for label in ("DNS(5, 200)", "DNS(5, 200), hinge"):
        assert baseline_of(by[label], groups, "ndcg@10").label == "DNS(1, 200)"


def test_what_is_ours_is_nobodys_baseline():
    groups, by = groups_of(
        *seeds("softmax_v", [0.6], rho=1.0, N=200),
        *seeds("dns", [0.5], M=5, N=200),
        *seeds("dns", [0.3], M=1, N=200),
        *seeds("uniform", [0.1]),
    )
    assert baseline_of(by["DNS(5, 200)"], groups, "ndcg@10").label == "Softmax-v(1, 200)"
    for label in ("DNS(5, 200)", "Softmax-v(1, 200)", "BPR"):
        assert baseline_of(by[label], groups, "ndcg@10", ["dns", "softmax_v"]).label == "DNS(1, 200)"


def test_a_refit_gets_no_star_for_more_data_alone():
    """DNS gains 0.05 by 11 % more data, WARP 0.10: DNS after the refit is above everything before it.

    The rule of before, the best of all other rows, gave it a star against its own self before the refit.
    """
    paired = [0.001, -0.001, 0.002, -0.002, 0.0]
    values = {("dns", False): 0.30, ("warp", False): 0.25, ("dns", True): 0.35, ("warp", True): 0.36}
    groups, by = groups_of(
        *(
            run
            for (sampler, refit), mean in values.items()
            for run in seeds(
                sampler,
                [mean + one * (1 + refit) for one in paired],
                refit=refit,
                **({"M": 5, "N": 200} if sampler == "dns" else {}),
            )
        )
    )
    refit, before = by["DNS(5, 200), refit"], by["DNS(5, 200)"]
    p, is_paired = p_value(refit, before, "ndcg@10")
    assert is_paired
    assert p < 0.05 < 1 < refit.mean("ndcg@10") / before.mean("ndcg@10")  # the star of before
    ours = compare(refit, groups, "ndcg@10", ["dns"])
    assert ours.baseline is by["WARP, refit"]
    assert ours.paired
    assert not ours.significant
    assert compare(before, groups, "ndcg@10", ["dns"]).significant


def test_the_note_says_the_test_and_the_row():
    write_seeds("runs", "dns", [0.30, 0.31, 0.32, 0.33], M=5, N=200)
    write_seeds("runs", "uniform", [0.29, 0.30, 0.30, 0.31])
    write_seeds("runs", "aobpr", [0.1, 0.1], first_seed=9)
    main(["report", "runs", "--output=out"])
    rows, note = table_rows()
    assert rows["DNS(5, 200)"] == ["**0.3150 ± 0.0129**\\*\\*"]
    assert rows["BPR"] == ["<u>0.3000 ± 0.0082</u>"]
    assert "better than its best baseline, the best row of another method, at p < 0.05" in note
    assert "two-sided t-test, paired by seed, Welch's where the seeds differ" in note
    assert "d NDCG@10 against BPR: DNS(5, 200) p = 0.014." in note


def test_refits_are_ranked_apart():
    for refit in (False, True):
        config = {"refit": refit}
        write_seeds("runs", "dns", [0.3 + refit / 10], config=config, M=5, N=200)
        write_seeds("runs", "uniform", [0.2 + refit / 10], config=config)
    main(["report", "runs", "--output=out"])
    rows, note = table_rows()
    assert rows["DNS(5, 200)"] == ["**0.3000**"]
    assert rows["BPR"] == ["<u>0.2000</u>"]
    assert rows["DNS(5, 200), refit"] == ["**0.4000**"]
    assert rows["BPR, refit"] == ["<u>0.3000</u>"]
    assert "refits apart" in note


def test_the_smaller_gini_index_is_the_better():
    values = {"uniform": [0.92, 0.93], "dns": [0.52, 0.53], "warp": [0.72, 0.73]}
    for sampler, gini in values.items():
        settings = {"M": 5, "N": 200} if sampler == "dns" else {}
        for seed, value in enumerate(gini):
            write_run("runs", sampler, seed, {"ndcg@10": 0.1, "giniindex@10": value}, **settings)
    main(["report", "runs", "--output=out", "--metrics=giniindex@10"])
    rows, note = table_rows()
    assert rows["DNS(5, 200)"][1].startswith("**0.5250 ± 0.0071**")
    assert rows["WARP"][1].startswith("<u>0.7250")
    assert rows["BPR"][1] == "0.9250 ± 0.0071"
    assert "Smaller is better for GINIINDEX@10." in note
    assert "GINIINDEX@10 against WARP: DNS(5, 200) p = 0" in note


def test_recboles_own_classes_say_the_same_of_what_is_better():
    assert set(smaller_metrics) == SMALLER
