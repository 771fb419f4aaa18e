"""Hardness as it is aimed at and as it is measured, against sums written out."""

import json
import math
import signal

import pytest
import torch
from killable import at_moment, settings_for
from trained import losses_of, trainer_for

from recbole_hns import run_recbole_hns
from recbole_hns.runs.result import read_result
from recbole_hns.sampling import DotQuery
from recbole_hns.training.checkpoint import read_checkpoint
from recbole_hns.training.hardness import aimed_at, divergence, in_words, measured, out_of_reach
from recbole_hns.training.stopping import RunStopped

QUICK = {"epochs": 2, "learning_rate": 0.05}


def by_loops(p, N):
    """Σ p log(N p) and 1/Σ p² of one pair."""
    kl = sum(x * math.log(N * x) for x in p if x > 0)
    return kl, 1 / sum(x * x for x in p)


def test_divergence_is_the_sum(generator):
    p = torch.rand(7, 12, generator=generator)
    p[:, :3] = 0
    p /= p.sum(dim=1, keepdim=True)
    kl, effective = divergence(p, 20)
    for row, *values in zip(p.double().tolist(), kl.tolist(), effective.tolist()):
        assert values == pytest.approx(by_loops(row, 20))


def hardness_of(settings, **more):
    trainer, loader = trainer_for("BPR", settings, **QUICK, **more)
    trainer.fit(loader, saved=False)
    return [row.get("hardness") for row in trainer.history]


def test_the_m_hardest_of_n_are_log_n_over_m_nats_from_uniform(tiny):
    expected = {"kl": math.log(50 / 4), "effective": 4, "candidates": 50}
    for row in hardness_of(tiny, sampler="dns", M=4, N=50):
        assert row == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("sampler", ["uniform", "popularity", "adasir_u"])
def test_alike_candidates_are_0_nats_from_uniform(tiny, sampler):
    for row in hardness_of(tiny, sampler=sampler, N=8):
        assert row == pytest.approx({"kl": 0, "effective": 8, "candidates": 8}, abs=1e-6)


def test_a_small_rho_is_the_divergence_that_it_names(tiny):
    """KL ≈ ρ for small ρ (theorem 2 is of second order), and never above log N for a large one."""
    for row in hardness_of(tiny, sampler="softmax_v", rho=0.01, N=50):
        assert row["kl"] == pytest.approx(0.01, rel=0.1)
    for row in hardness_of(tiny, sampler="softmax_v", rho=100.0, N=50):
        assert 2 < row["kl"] <= math.log(50)


@pytest.mark.parametrize(("sampler", "more"), [("warp", {}), ("irgan", {"N": 8})])
def test_what_draws_its_negative_itself_has_no_weights_to_measure(tiny, sampler, more):
    assert hardness_of(tiny, sampler=sampler, **more) == [None, None]


def test_over_all_negatives_it_is_that_of_the_weights_of_each_user(tiny):
    assert hardness_of(tiny, sampler="uniform", pool="all")[0]["kl"] == 0
    trainer, loader = trainer_for("BPR", tiny, sampler="softmax", pool="all", tau=0.5)
    trainer.prepare(loader)
    world, generator = trainer.sampler.world, torch.Generator().manual_seed(1)
    context, items = torch.randn(world.n_users, 4, generator=generator), torch.randn(60, 4)
    users = torch.tensor([1, 2, 2, 3])
    positives = torch.tensor([int(world.positives.row(int(u))[0]) for u in users])
    query = DotQuery(context, items, positives, users)
    found = measured(trainer.config.method, trainer.sampler.select(users, query))
    rows = []
    for u in users.tolist():
        taken = set(world.positives.row(u).tolist())
        scores = [float(context[u] @ items[j]) / 0.5 for j in range(1, 60) if j not in taken]
        total = sum(math.exp(s) for s in scores)
        rows.append((*by_loops([math.exp(s) / total for s in scores], len(scores)), len(scores)))
    means = [sum(column) / 4 for column in zip(*rows)]
    assert [found["kl"], found["effective"], found["candidates"]] == pytest.approx(means, rel=1e-4)


def test_the_log_and_the_record_have_it_in_words(tiny, caplog):
    settings = {**tiny, **QUICK, "sampler": "dns", "M": 4, "N": 50}
    with caplog.at_level("INFO"):
        file = run_recbole_hns("BPR", "tiny", config_dict=settings)["result_file"]
    with open(file) as record:
        rows = json.load(record)["epochs"]
    assert [row["hardness"]["effective"] for row in rows] == pytest.approx([4, 4])
    words = (
        "of 50 candidates of pool=uniform 4 count (1/Σp²), KL from uniform weights 2.526 of at most 3.912 "
        "nats (means of the epoch's first batch)"
    )
    assert in_words(rows[0]["hardness"], "uniform") == words
    assert all(any(f"epoch {e} hardness" in m and words in m for m in caplog.messages) for e in range(2))


def test_measuring_changes_no_number(tiny, monkeypatch):
    def run():
        trainer, loader = trainer_for("BPR", tiny, **QUICK, sampler="softmax_v", N=20)
        trainer.fit(loader, saved=False)
        return losses_of(trainer), trainer.model.state_dict()

    losses, state = run()
    monkeypatch.setattr("recbole_hns.training.trainer.measured", lambda *_: None)
    again, other = run()
    assert losses == again
    assert all(torch.equal(state[name], other[name]) for name in state)


def prepared(settings, **more):
    trainer, loader = trainer_for("BPR", settings, **more)
    trainer.prepare(loader)
    return trainer.sampler


def test_a_rho_beyond_the_pool_is_told_and_gives_no_beta_of_10_to_the_minus_44(tiny):
    sampler = prepared(tiny, sampler="softmax_v", rho=100.0, N=50)
    assert aimed_at(sampler).startswith("at best OPAUC(β = 0.02), ")
    assert out_of_reach(sampler) == (
        "rho=100 asks for a KL divergence of 100 nats from uniform weights, and 50 candidates reach 3.912 "
        "at most, where the hardest has all the weight: it is milder than it says."
    )


def test_a_rho_beyond_a_pool_of_popular_items_is_told_too(tiny):
    sampler = prepared(tiny, sampler="softmax_v", pool="popularity", rho=1000.0, N=50)
    assert aimed_at(sampler) is None  # the candidates do not stand for all negatives
    assert "asks for a KL divergence of inf nats" in out_of_reach(sampler)


@pytest.mark.parametrize(
    "settings",
    [
        {"sampler": "dns", "M": 1, "N": 50},
        {"sampler": "softmax_v", "rho": 3.9, "N": 50},
        {"sampler": "softmax", "tau": 0.01, "N": 50},
        {"sampler": "softmax_v", "rho": 3.5, "pool": "all"},
        {"sampler": "uniform"},
    ],
)
def test_what_can_be_reached_is_not_warned_of(tiny, settings):
    assert out_of_reach(prepared(tiny, **settings)) is None


def test_a_run_that_is_stopped_within_an_epoch_keeps_what_it_measured(tiny, tmp_path):
    def rows(folder, **stopped):
        settings = settings_for("softmax_v", tiny["data_path"], tmp_path / folder)
        if stopped:
            signal_at = at_moment("batch", stopped["batch"], lambda: signal.raise_signal(signal.SIGINT))
            with signal_at, pytest.raises(RunStopped) as stop:
                run_recbole_hns("MF", "tiny", "softmax_v", config_dict=settings)
            assert read_checkpoint(stop.value.checkpoint)["hardness"]["candidates"] == settings["N"]
            run_recbole_hns(resume=stop.value.checkpoint)
        else:
            run_recbole_hns("MF", "tiny", "softmax_v", config_dict=settings)
        (file,) = (tmp_path / folder).glob("results/*/result.json")
        return [row["hardness"] for row in read_result(file)["epochs"]]

    assert rows("stopped", batch=13) == rows("whole")
