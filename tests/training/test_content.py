"""The parts of a checkpoint are what their names say, or a sentence tells which is not."""

from pathlib import Path

import pytest
import torch

from recbole_hns import run_recbole_hns
from recbole_hns.errors import Error
from recbole_hns.training.checkpoint import read_checkpoint

SMALL = {
    "sampler": "dns",
    "N": 5,
    "epochs": 1,
    "embedding_size": 4,
    "state": "ERROR",
    "result_dir": None,
}


@pytest.fixture
def last(tiny):
    run_recbole_hns("MF", "tiny", config_dict={**tiny, **SMALL})
    (file,) = Path("saved").glob("*.last.pth")
    return file


def changed(file, **parts):
    torch.save({**torch.load(file, weights_only=True), **parts}, file)
    Path(f"{file}.previous").unlink()


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("model", 5, "its model is a int"),
        ("settings", [], "its settings is a list"),
        ("settings", {"N": torch.zeros(2)}, "its settings holds more than plain data"),
        ("final", {1: 2}, "its final holds more than plain data"),
        ("epoch", -2, "it counts from below 0"),
        ("epoch", True, "its epoch is a bool"),
        ("history", [{"loss": 1.0}], "a row of its history is none"),
        ("state_dict", {"user_embedding.weight": 1.0}, "its state_dict holds more than tensors"),
        ("moment", {}, "the random of its moment is a NoneType"),
        ("best_valid_score", "1", "its best_valid_score is a str"),
        ("other_parameter", torch.zeros(1), "its other_parameter is a Tensor"),
    ],
)
def test_a_wrong_part_is_named(last, part, value, words):
    changed(last, **{part: value})
    with pytest.raises(Error, match=f"malformed: {words}"):
        read_checkpoint(last)


def test_settings_that_repeat_themselves_to_more_than_there_is_room_for_are_refused(last):
    many = [1]
    for _ in range(60):
        many = [many, many]
    changed(last, settings={"topk": many})
    with pytest.raises(Error, match="malformed: its settings holds more than plain data"):
        read_checkpoint(last)


def without(state, name):
    return {number: {k: v for k, v in own.items() if k != name} for number, own in state.items()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda o: {**o, "state": without(o["state"], "exp_avg")}, "exp_avg of a parameter is missing"),
        (lambda o: {**o, "param_groups": [{"params": [0, 1]}]}, "optimiser cannot be taken over"),
        (lambda o: {**o, "param_groups": []}, "optimiser cannot be taken over"),
        (
            lambda o: {**o, "state": {0: {**o["state"][0], "exp_avg": torch.zeros(3)}}},
            "exp_avg is not of the parameter's shape",
        ),
        (
            lambda o: {**o, "state": {0: {**o["state"][0], "step": torch.tensor(-1.0)}}},
            "step is no number of steps",
        ),
    ],
)
def test_an_optimisers_state_that_is_of_another_is_refused_before_a_step(last, change, words):
    """torch itself compares nothing but the number of parameters."""
    changed(last, optimizer=change(torch.load(last, weights_only=True)["optimizer"]))
    with pytest.raises(Error, match=words):
        run_recbole_hns(resume=last, config_dict={"epochs": 2})


def test_a_model_takes_over_what_it_names_and_nothing_else(last):
    changed(last, other_parameter={"forward": 1})
    with pytest.raises(Error, match="of another model, which has forward"):
        run_recbole_hns(resume=last, config_dict={"epochs": 2})


def test_a_method_is_nothing_that_a_model_remembers(last):
    moment = torch.load(last, weights_only=True)["moment"]
    changed(last, moment={**moment, "memory": {"calculate_loss": torch.zeros(1)}})
    with pytest.raises(Error, match="calculate_loss is no tensor that a model remembers"):
        run_recbole_hns(resume=last, config_dict={"epochs": 2})
