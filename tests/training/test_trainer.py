import itertools
import math

import pytest
import torch
from conftest import prepare
from recbole.trainer import KGTrainer, Trainer

from recbole_hns import Error
from recbole_hns.cli.main import main
from recbole_hns.data.loader import positives_only
from recbole_hns.models.optim import FusedSparseAdam
from recbole_hns.sampling import SAMPLERS
from recbole_hns.training.trainer import HNSTrainerMixin, make_trainer


def trainer_for(model, settings, **more):
    torch.manual_seed(0)  # RecBole splits the data by torch's global generator
    config, train_data, *_ = prepare(model, **settings, **more)
    torch.manual_seed(0)
    loader = positives_only(config, train_data)
    network = config.model_class(config, loader._dataset)
    return make_trainer(config, network), loader


def test_the_learning_rate_decays_by_epoch(tiny):
    trainer, loader = trainer_for(
        "BPR", tiny, epochs=5, learning_rate=0.001, lr_step_size=2, lr_gamma=0.5
    )
    rates = []
    original = trainer.sampled_loss
    trainer.sampled_loss = lambda batch: (
        rates.append(trainer.optimizer.param_groups[0]["lr"]),
        original(batch),
    )[1]
    trainer.fit(loader, saved=False)
    assert rates == pytest.approx([0.001, 0.001, 0.0005, 0.0005, 0.00025])


def test_without_a_step_size_the_learning_rate_stays(tiny):
    trainer, loader = trainer_for("BPR", tiny, epochs=3, learning_rate=0.001)
    trainer.fit(loader, saved=False)
    assert trainer.optimizer.param_groups[0]["lr"] == 0.001


def test_mf_is_regularised_as_its_trainer_says_and_not_as_its_data(tiny):
    """The trials of a search share a data set, whose configuration is that of the search."""
    _, loader = trainer_for("BPR", tiny, reg_weight=0.0)
    norms = []
    for reg_weight in (0.0, 100.0):
        trainer, _ = trainer_for("BPR", tiny, epochs=20, reg_weight=reg_weight, weight_decay=0)
        trainer.fit(loader, saved=False)
        norms.append(float(trainer.model.item_embedding.weight.detach().norm()))
    assert norms[1] < 0.8 * norms[0]


def test_adam_is_fused_on_the_cpu_and_steps_as_before(tiny):
    """The fused step is RecBole's Adam with the same numbers."""
    weights = []
    for fused in (True, False):
        trainer, loader = trainer_for("BPR", tiny, epochs=2)
        assert trainer.optimizer.param_groups[0]["fused"] is True
        trainer.optimizer.param_groups[0]["fused"] = fused
        trainer.fit(loader, saved=False)
        weights.append(trainer.model.item_embedding.weight.detach())
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("learner", ["sgd", "adagrad", "rmsprop", "adamw"])
def test_recboles_other_optimisers_work(tiny, learner):
    trainer, loader = trainer_for("BPR", tiny, epochs=1, learner=learner)
    before = trainer.model.item_embedding.weight.detach().clone()
    trainer.fit(loader, saved=False)
    assert not torch.equal(before, trainer.model.item_embedding.weight)


@pytest.mark.parametrize("block", [1, 4])
def test_sparse_adam_moves_only_the_rows_that_a_step_touches(tiny, backend, block):
    trainer, loader = trainer_for(
        "BPR",
        tiny,
        learner="sparse_adam",
        hns_backend=backend,
        train_batch_size=4,
        sampler="dns",
        M=2,
        pool_block=block,
    )
    trainer.prepare(loader)
    model, optimizer = trainer.model, trainer.optimizer
    tables = (model.user_embedding.weight, model.item_embedding.weight)
    for batch in itertools.islice(loader, 3):
        before = [table.detach().clone() for table in tables]
        optimizer.zero_grad()
        query = trainer.scorer.encode(batch)
        negatives = trainer.sampler.select(batch["user_id"], query)
        trainer.scorer.loss(batch, query, negatives, None).backward()
        optimizer.step()
        touched = batch["user_id"], torch.cat([batch["item_id"], negatives.ids.flatten()])
        for table, old, rows in zip(tables, before, touched):
            moved = (table != old).any(dim=1).nonzero()[:, 0]
            assert torch.equal(moved, rows.unique())


@pytest.mark.parametrize("sampler", ["uniform", "dns", "softmax_v"])
def test_sparse_adam_steps_as_torchs_does(tiny, sampler):
    """The rows of our pass against torch's gathers and scatters, through two epochs of training."""
    states = []
    for optimizer in (FusedSparseAdam, torch.optim.SparseAdam):
        trainer, loader = trainer_for(
            "BPR", tiny, epochs=2, sampler=sampler, learner="sparse_adam", train_batch_size=64
        )
        assert type(trainer.optimizer) is FusedSparseAdam
        trainer.optimizer = optimizer(trainer.model.parameters(), lr=0.01)
        trainer.fit(loader, saved=False)
        state = trainer.optimizer.state_dict()["state"]
        states.append(
            [*trainer.model.parameters(), *(v for row in state.values() for v in row.values())]
        )
    assert len(states[0]) == 2 + 2 * 3  # step, exp_avg and exp_avg_sq of both tables
    for ours, theirs in zip(*states):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "sampler", [name for name, entry in SAMPLERS.items() if not entry.method.dense_gradient]
)
def test_mf_learns_by_sparse_adam_with_every_sampler_that_draws(tiny, sampler):
    losses = sparse_losses(tiny, sampler=sampler)
    assert losses[-1] < 0.9 * losses[0]


def test_sparse_adam_learns_in_torch_with_shared_candidates_and_mixed_precision(tiny):
    losses = sparse_losses(tiny, hns_backend="torch", pool_block=16, enable_amp=True)
    assert losses[-1] < 0.9 * losses[0]


def sparse_losses(settings, **more):
    """The loss of each of 20 epochs of MF."""
    more = {"epochs": 20, "learning_rate": 0.05, "train_batch_size": 64, **more}
    trainer, loader = trainer_for("BPR", settings, learner="sparse_adam", **more)
    trainer.fit(loader, saved=False)
    return [row["train_loss"] for row in trainer.history]


def test_an_epoch_starts_from_the_same_random_state_when_it_is_run_again(tiny):
    trainer, loader = trainer_for("BPR", tiny, epochs=0)
    trainer.fit(loader, saved=False)
    losses = []
    for _ in range(2):
        torch.manual_seed(torch.randint(100, ()).item())
        with torch.no_grad():
            trainer._start_epoch(loader, 3)
            losses.append([float(trainer.sampled_loss(batch)) for batch in loader])
    assert losses[0] == losses[1]


def test_ranks_draw_their_own_candidates(tiny):
    draws = []
    for rank in (0, 1):
        trainer, loader = trainer_for("BPR", tiny, epochs=0)
        trainer.config["local_rank"] = rank
        trainer.fit(loader, saved=False)
        draws.append(trainer.sampler.pool.draw(torch.tensor([1, 2, 3]), 20).ids)
    assert not torch.equal(*draws)


@pytest.mark.parametrize(
    ("settings", "beta"),
    [
        ({"sampler": "dns", "M": 5, "N": 50}, "β = 0.1)"),
        ({"sampler": "softmax_v", "rho": 2.0, "N": 50}, "β = 0.1353)"),
        ({"sampler": "uniform"}, "β = 1)"),
    ],
)
def test_the_log_says_which_opauc_the_sampler_aims_at(tiny, caplog, settings, beta):
    trainer, loader = trainer_for("BPR", tiny, epochs=0, **settings)
    with caplog.at_level("INFO"):
        trainer.fit(loader, saved=False)
    assert f"OPAUC({beta}" in caplog.text
    n_neg = trainer.sampler.pool.negatives_of(torch.arange(1, 41)).float().mean()
    K = trainer.sampler.method.beta(trainer.sampler.N) * float(n_neg)
    assert f"the top {K:.3g} of" in caplog.text


def test_a_fixed_temperature_aims_at_no_fixed_beta(tiny, caplog):
    trainer, loader = trainer_for("BPR", tiny, epochs=0, sampler="softmax", N=20)
    with caplog.at_level("INFO"):
        trainer.fit(loader, saved=False)
    assert "OPAUC(" not in caplog.text


def test_make_trainer_extends_the_trainer_that_recbole_picks(tiny):
    trainer, _ = trainer_for("BPR", tiny)
    assert isinstance(trainer, Trainer)
    assert isinstance(trainer, HNSTrainerMixin)
    assert type(trainer).__name__ == "HNSTrainer"


def test_knowledge_models_keep_their_second_loss(tmp_path):
    """KGTrainer calls the plain epoch by itself: the sampled loss must still be the one it finds."""
    settings = {
        "show_progress": False,
        "epochs": 1,
        "embedding_size": 8,
        "sampler": "dns",
        "N": 5,
        "M": 1,
    }
    trainer, loader = trainer_for("CKE", settings, dataset="ml-100k")
    assert isinstance(trainer, KGTrainer)
    steps = []
    original = trainer.sampled_loss
    trainer.sampled_loss = lambda batch: (steps.append(1), original(batch))[1]
    trainer.fit(loader, saved=False)
    assert len(steps) == len(loader)


# ----------------------------------------------------------------------------------- numbers


def ready(settings, **more):
    """A trainer with its data, ready to fit."""
    config, train_data, valid_data, _ = prepare(
        **{**settings, "sampler": "dns", "M": 2, "N": 10, **more}
    )
    torch.manual_seed(0)
    loader = positives_only(config, train_data)
    trainer = make_trainer(config, config.model_class(config, loader._dataset))
    return trainer, loader, valid_data


def poison(trainer, at, value, what="loss"):
    """Let the loss of a batch, counted over all epochs, or a parameter after it, be no number."""
    original, count = trainer.sampled_loss, itertools.count()

    def poisoned(batch):
        loss = original(batch)
        if next(count) != at:
            return loss
        if what == "parameter":
            trainer.model.item_embedding.weight.data[3, 1] = value
            return loss
        return loss * value

    trainer.sampled_loss = poisoned


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_with_epoch_batch_and_cause(tiny, value):
    trainer, loader, valid = ready(tiny, train_batch_size=64, epochs=9, learning_rate=0.25)
    poison(trainer, 12, value)
    with pytest.raises(Error, match=rf"loss is {value} in epoch 2, batch 2.*learning_rate below 0.25"):
        trainer.fit(loader, valid)


def test_a_parameter_that_is_no_number_stops_before_anything_is_written(tiny):
    trainer, loader, valid = ready(tiny, train_batch_size=64, epochs=9, enable_amp=True)
    poison(trainer, 14, float("inf"), "parameter")  # the last of epoch 2: no loss will show it
    with pytest.raises(Error, match=r"embedding.weight is no longer finite.*enable_amp") as error:
        trainer.fit(loader, valid)
    assert f"last good checkpoint is kept: {trainer.saved_model_file}" in str(error.value)
    best = torch.load(trainer.saved_model_file, weights_only=True)
    last = torch.load(trainer.last_file, weights_only=True)
    assert best["epoch"] <= 1
    assert last["epoch"] == 2
    for state in (best, last):
        assert all(torch.isfinite(value).all() for value in state["state_dict"].values())


def test_a_score_that_is_no_number_stops_the_evaluation(tiny):
    trainer, loader, valid = ready(tiny, epochs=1)
    predict = trainer.model.full_sort_predict

    def broken(interaction):
        scores = predict(interaction)
        scores[-1] = float("nan")
        return scores

    trainer.model.full_sort_predict = broken
    with pytest.raises(Error, match="a score is nan in the evaluation after epoch 0"):
        trainer.fit(loader, valid)


def test_a_learning_rate_that_is_far_too_high_gets_one_line(tiny, capsys):
    arguments = ["--model=MF", "--dataset=tiny", f"--data_path={tiny['data_path']}"]
    arguments += ["--sampler=dns", "--N=5", "--M=1"]
    arguments += [
        "--learner=sgd",
        "--learning_rate=1000",
        "--train_batch_size=8",
        "--show_progress=False",
        "--state=ERROR",
    ]
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "diverged" in err
    assert "learning_rate below 1000" in err


@pytest.mark.parametrize("backend", ["numba", "torch"])
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("model", ["BPR", "LightGCN"])
def test_every_sampler_trains_in_mixed_precision(tiny, model, sampler, backend):
    more = {"sampler": sampler, "enable_amp": True, "embedding_size": 8, "hns_backend": backend}
    trainer, loader = trainer_for(model, tiny, **more, epochs=1, train_batch_size=128)
    before = trainer.model.item_embedding.weight.detach().clone()
    trainer.fit(loader, saved=False)
    assert not torch.equal(before, trainer.model.item_embedding.weight)
    assert math.isfinite(trainer.history[0]["train_loss"])


def test_a_sequential_model_trains_in_mixed_precision(tiny):
    more = {"load_col": {"inter": ["user_id", "item_id", "timestamp"]}, "MAX_ITEM_LIST_LENGTH": 8}
    more.update(n_layers=1, hidden_size=8, inner_size=8, enable_amp=True, sampler="dns", N=10, M=2)
    trainer, loader = trainer_for("SASRec", tiny, **more, epochs=1)
    trainer.fit(loader, saved=False)
    assert math.isfinite(trainer.history[0]["train_loss"])


def test_trainers_built_before_either_saves_keep_their_own_checkpoints(tiny):
    (first, loader), (second, _) = (trainer_for("BPR", tiny, epochs=1) for _ in range(2))
    second.saved_model_file = first.saved_model_file  # as for runs that begin in the same second
    first.fit(loader, verbose=False)
    second.fit(loader, verbose=False)
    assert second.saved_model_file != first.saved_model_file
    assert first.last_file.is_file()
    assert second.last_file.is_file()
    assert not list(first.last_file.parent.glob("*.claim"))
