"""Layers: later ones win, and every value knows where it is from."""

import pytest

from recbole_hns import Error, HNSConfig
from recbole_hns.settings.layers import COMMAND_LINE, Layer, resolve


def test_later_layers_win_and_are_named():
    resolved = resolve(
        [
            Layer("defaults", {"a": 1, "b": 1, "c": 1, "d": None}),
            Layer("own.yaml", {"b": 2, "c": 2}),
            Layer("config_dict", {"e": 3}),
            Layer(COMMAND_LINE, {"c": None}),
        ]
    )
    assert resolved.values == {"a": 1, "b": 2, "c": None, "d": None, "e": 3}
    assert {key: resolved.origin(key) for key in "abcdx"} == {
        **{"a": "defaults", "b": "own.yaml", "d": "defaults"},
        **{"c": "", "x": ""},  # just typed, or not there
    }
    assert resolved.typed() == ["c", "e"]


def test_layers_are_left_as_they_are():
    first, second = {"a": 1}, {"a": 2}
    resolve([Layer("one", first), Layer("two", second)]).values["a"] = 3
    assert (first, second) == ({"a": 1}, {"a": 2})


@pytest.fixture
def layered(tmp_path):
    """A data set with a file beside it, and a file of the user's; each sets N and one setting more."""
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    (folder / "tiny.yaml").write_text("sampler: dns\nN: 30\nM: 3\nepochs: 3\nlearning_rate: 3e-3\n")
    own = tmp_path / "own.yaml"
    own.write_text("N: 40\nepochs: 4\nlearning_rate: 4e-3\n")

    def make(files=(), command_line=(), **settings):
        given = {"data_path": str(tmp_path / "data"), **settings}
        return HNSConfig("BPR", "tiny", [str(file) for file in files], given, command_line)

    return make, own, folder / "tiny.yaml"


def test_a_run_goes_from_the_general_to_the_specific(layered):
    """Method < data set's file < the user's file < config_dict < the command line."""
    make, own, _ = layered
    assert make(sampler="softmax").method.N == 30
    assert make().method.rule.M == 3
    config = make([own], epochs=5, learning_rate=5e-3, command_line=["--learning_rate=6e-3"])
    assert (config["N"], config["epochs"], config["learning_rate"]) == (40, 5, 6e-3)


def test_a_refusal_names_the_layer_of_the_value(layered):
    make, own, beside = layered
    own.write_text("N: 0\n")
    beside.write_text("sampler: dns\nM: 0\n")
    kept = "it must be a whole number from 1 to 1000000"
    for settings, start in (
        ({}, f"M=0 (from {beside}) is not allowed: {kept}"),
        ({"files": [own], "M": 1}, f"N=0 (from {own}) is not allowed: {kept}"),
        ({"M": -1}, f"M=-1 is not allowed: {kept}"),
        ({"command_line": ["--M=-2"]}, f"M=-2 is not allowed: {kept}"),
    ):
        with pytest.raises(Error) as error:
            make(**settings)
        assert str(error.value).startswith(start)
