"""The trainer that is made for a model, and its step."""

import errno
import json
import os
import threading
from pathlib import Path

import pytest
import torch
from conftest import prepare
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.trainer import KGTrainer, Trainer
from trained import losses_of, trainer_for

from recbole_hns import Error, HNSConfig, run_recbole_hns
from recbole_hns.sampling.methods import all_methods
from recbole_hns.training.trainer import HNSTrainerMixin, make_trainer


def test_mf_is_regularised_as_its_trainer_says_and_not_as_its_data(tiny):
    """The trials of a search share a data set, whose configuration is that of the search."""
    _, loader = trainer_for("BPR", tiny, reg_weight=0.0)
    norms = []
    for reg_weight in (0.0, 100.0):
        trainer, _ = trainer_for("BPR", tiny, epochs=20, reg_weight=reg_weight, weight_decay=0)
        trainer.fit(loader, saved=False)
        norms.append(float(trainer.model.item_embedding.weight.detach().norm()))
    assert norms[1] < 0.8 * norms[0]


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
        draws.append(trainer.sampler.source.draw(torch.tensor([1, 2, 3]), 20).ids)
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
    taken = trainer.sampler.world.positives.counts[1:41]
    K = trainer.sampler.method.beta() * float((59 - taken).mean())
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


def test_trainers_built_before_either_saves_keep_their_own_checkpoints(tiny):
    (first, loader), (second, _) = (trainer_for("BPR", tiny, epochs=1) for _ in range(2))
    second.saved_model_file = first.saved_model_file  # as for runs that begin in the same second
    first.fit(loader, verbose=False)
    second.fit(loader, verbose=False)
    assert second.saved_model_file != first.saved_model_file
    assert first.last_file.is_file()
    assert second.last_file.is_file()
    assert not list(first.last_file.parent.glob(".*"))


# ----------------------------------------------------------------------------------- RecBole's way


def recboles_way(model, dataset="tiny", **settings):
    """A trainer and the loaders of RecBole's own preparation, step by step as its users write it."""
    config = HNSConfig(model, dataset, config_dict=settings)
    torch.manual_seed(0)
    train_data, valid_data, _ = data_preparation(config, create_dataset(config))
    torch.manual_seed(0)
    model = config.model_class(config, train_data._dataset)
    return make_trainer(config, model), train_data, valid_data


def test_fit_takes_recboles_own_loader_and_trains_the_same(tiny):
    settings = {**tiny, "sampler": "dns", "N": 10, "M": 2, "epochs": 3, "train_batch_size": 64}
    trainer, train_data, valid_data = recboles_way("BPR", **settings)
    score, _ = trainer.fit(train_data, valid_data, saved=False)
    assert score == max(row["score"] for row in trainer.history)
    ours, loader = trainer_for("BPR", settings)
    ours.fit(loader, saved=False)
    assert losses_of(trainer) == losses_of(ours)


def test_knowledge_models_keep_their_second_loss():
    """KGTrainer calls the plain epoch by itself: the sampled loss must still be the one it finds."""
    settings = {"show_progress": False, "epochs": 1, "embedding_size": 8, "train_batch_size": 16384}
    trainer, train_data, _ = recboles_way("CKE", "ml-100k", **settings, sampler="dns", N=5, M=1)
    assert isinstance(trainer, KGTrainer)
    losses, sampled = [], trainer.sampled_loss

    def kept(batch):
        losses.append(sampled(batch))
        return losses[-1]

    trainer.sampled_loss = kept
    trainer.fit(train_data, saved=False)
    assert len(losses) == -(-len(train_data._dataset) // 16384)
    sums = [sum(float(part.detach()) for part in parts) for parts in zip(*losses)]
    of_pairs, of_graph = sums[:2]
    assert of_pairs > 0
    assert of_graph > 0
    assert trainer.history[0]["train_loss"] == pytest.approx(sum(sums), rel=1e-6)


def test_recboles_own_configuration_is_refused_in_a_sentence(tiny, monkeypatch):
    monkeypatch.setattr("sys.argv", ["run"])
    config = Config("BPR", "tiny", config_dict=tiny)
    train_data, *_ = data_preparation(config, create_dataset(config))
    from recbole.model.general_recommender import BPR

    with pytest.raises(Error, match=r"takes recbole_hns\.HNSConfig and not Config"):
        make_trainer(config, BPR(config, train_data._dataset))


def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(tiny, monkeypatch):
    def full(folder):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder)

    monkeypatch.setattr("recbole.trainer.trainer.ensure_dir", full)
    with pytest.raises(Error, match=r"^saved cannot be written: No space left on device\.$"):
        recboles_way("BPR", **tiny, checkpoint_dir="saved")


def test_curves_that_cannot_be_written_are_told_of_once(tiny, caplog):
    Path("log_tensorboard").write_text("a file")
    trainer, train_data, valid_data = recboles_way("BPR", **tiny, epochs=2)
    trainer.fit(train_data, valid_data, saved=False)
    (said,) = (record.getMessage() for record in caplog.records if "curves" in record.getMessage())
    assert said.startswith("log_tensorboard/")
    assert "cannot be written: " in said
    assert len(trainer.history) == 2


def test_a_run_leaves_no_thread_behind(tiny):
    threads = []
    for _ in range(3):  # the first may start those that the kernels keep
        trainer, train_data, valid_data = recboles_way("BPR", **tiny, epochs=2)
        trainer.fit(train_data, valid_data, saved=False)
        threads.append(set(threading.enumerate()))
    assert threads[0] == threads[2]


# ----------------------------------------------------------------------------------- validation


@pytest.mark.parametrize(
    ("epochs", "eval_step", "validated"),
    [(8, 5, [4, 7]), (6, 3, [2, 5]), (2, 5, [1]), (4, 1, [0, 1, 2, 3]), (3, 0, [])],
)
def test_every_eval_step_and_the_last_epoch_are_validated(tiny, epochs, eval_step, validated):
    config, train_data, valid_data, _ = prepare(
        **tiny, sampler="dns", N=10, M=2, epochs=epochs, eval_step=eval_step
    )
    trainer = make_trainer(config, config.model_class(config, train_data._dataset))
    every = trainer.eval_step
    trainer.fit(train_data, valid_data, saved=False)
    assert [row["epoch"] for row in trainer.history if "valid" in row] == validated
    assert trainer.eval_step == every


@pytest.mark.parametrize(("rate", "winner"), [(0.02, 7), (0.1, 4)])
def test_the_best_validated_epoch_is_the_one_that_is_tested(tiny, rate, winner):
    """Its test is that of a run that ends with it."""
    settings = {**tiny, "N": 10, "M": 2, "epochs": 8, "eval_step": 5, "learning_rate": rate}
    settings.update(metric_decimal_place=10, embedding_size=8, train_batch_size=64, state="ERROR")
    result = run_recbole_hns("MF", "tiny", "dns", config_dict=settings)
    record = json.loads(Path(result["result_file"]).read_text())
    scores = {row["epoch"]: row["score"] for row in record["epochs"] if "score" in row}
    assert sorted(scores) == [4, 7]
    assert max(scores, key=scores.get) == record["best"]["epoch"] == winner
    assert torch.load(record["checkpoint"], weights_only=True)["epoch"] == winner
    settings.update(epochs=winner + 1, eval_step=winner + 1)
    ends_with_it = run_recbole_hns("MF", "tiny", "dns", config_dict=settings)
    assert result["test_result"] == ends_with_it["test_result"]


# ----------------------------------------------------------------------------------- mixed precision


@pytest.mark.parametrize("sampler", all_methods())
@pytest.mark.parametrize("model", ["BPR", "LightGCN"])
def test_what_is_scored_by_dot_products_is_trained_in_full_precision(tiny, model, sampler):
    losses = []
    for enable_amp in (True, False):
        more = {"sampler": sampler, "enable_amp": enable_amp, "embedding_size": 8}
        trainer, loader = trainer_for(model, tiny, **more, epochs=1, train_batch_size=128)
        trainer.fit(loader, saved=False)
        losses += losses_of(trainer)
    assert losses[0] == losses[1]


def test_the_layers_of_a_model_are_trained_in_mixed_precision(tiny):
    more = {"load_col": {"inter": ["user_id", "item_id", "timestamp"]}, "MAX_ITEM_LIST_LENGTH": 8}
    more.update(n_layers=1, hidden_size=8, inner_size=8, sampler="dns", N=10, M=2, epochs=1)
    losses = []
    for enable_amp in (True, False):
        trainer, loader = trainer_for("SASRec", tiny, **more, enable_amp=enable_amp)
        trainer.fit(loader, saved=False)
        losses += losses_of(trainer)
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
