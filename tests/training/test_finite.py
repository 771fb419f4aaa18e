"""A loss, a parameter or a score that is no number ends the run with a sentence."""

import itertools

import pytest
import torch
from conftest import prepare

from recbole_hns import Error
from recbole_hns.cli.main import main
from recbole_hns.data.loader import positives_only
from recbole_hns.training.finite import broken_parameter, broken_score
from recbole_hns.training.trainer import make_trainer

INF = float("inf")


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


@pytest.mark.parametrize(
    ("scores", "broken"),
    [
        ([1.0, -INF, 2.0], None),
        ([-INF, -INF], None),
        ([1.0, INF, -INF], INF),
        ([1.0, float("nan"), INF], float("nan")),
    ],
)
def test_a_score_may_be_minus_infinity_and_nothing_else_that_is_no_number(scores, broken):
    found = broken_score(torch.tensor(scores))
    assert found is None if broken is None else found == pytest.approx(broken, nan_ok=True)


def test_parameters_whose_sum_overflows_are_finite():
    model = torch.nn.Linear(2, 1)
    model.weight.data.fill_(3e38)
    assert broken_parameter(model) is None
    model.bias.data.fill_(-INF)
    assert broken_parameter(model) == "bias"
