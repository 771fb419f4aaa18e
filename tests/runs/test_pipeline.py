"""Every command loads, splits, batches and validates alike: there is one pipeline."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from killable import at_moment
from recbole.trainer import Trainer

from recbole_hns import Error, HNSConfig, RunStopped, load, quick_start, run_recbole_hns
from recbole_hns.cli.main import main
from recbole_hns.runs import evaluate as evaluation
from recbole_hns.runs import pipeline
from recbole_hns.runs.recommend import recommend
from recbole_hns.runs.run import finish

COMMON = """
sampler: dns
N: 10
M: 2
epochs: 3
learning_rate: 1e-2
train_batch_size: 64
metric_decimal_place: 8
show_progress: false
state: ERROR
"""
TIMES = "load_col: {inter: [user_id, item_id, timestamp]}\n"
SEQUENTIAL = TIMES + "MAX_ITEM_LIST_LENGTH: 8\nhidden_size: 8\n"
KINDS = {  # what is in the property file, and the model
    "random split": ("BPR", "embedding_size: 8\n"),
    "sampled": ("BPR", "eval_args: {mode: pop5}\nembedding_size: 8\n"),
    "refit": ("BPR", "refit: true\nembedding_size: 8\n"),
    "split by time": ("BPR", "eval_args: {order: TO, split: {RS: [0.7, 0.1, 0.2]}}\n" + TIMES),
    "sequences": ("SASRec", SEQUENTIAL + "inner_size: 8\nn_layers: 1\n"),
}


class Seen:
    """What passes through the pipeline."""

    def __init__(self, monkeypatch):
        self.parts, self.loaders = [], []
        split, make = pipeline.split, pipeline.make_loaders

        def split_seen(config, data):
            parts = split(config, data)
            self.parts.append([pairs_of(part) for part in (parts.train, parts.valid, parts.test)])
            return parts

        def make_seen(config, parts):
            loaders = make(config, parts)
            self.loaders.append((batches_of(loaders.train), asked_of(loaders.valid)))
            return loaders

        monkeypatch.setattr(pipeline, "split", split_seen)
        for module in (pipeline, evaluation):
            monkeypatch.setattr(module, "make_loaders", make_seen)

    def last(self, loaders=True):
        """What the last command split and loaded; the lists begin anew."""
        found = self.parts[-1], self.loaders[-1] if loaders else None
        self.parts, self.loaders = [], []
        return found


def pairs_of(dataset):
    """The interactions of a part, in their order."""
    frame = dataset.inter_feat
    return np.stack([np.asarray(frame[f]) for f in (dataset.uid_field, dataset.iid_field)], 1).tolist()


def batches_of(loader):
    """The batches of two epochs, in their order."""
    found = []
    for epoch in (0, 2):
        loader.set_epoch(epoch)
        found += [(b["user_id"].tolist(), b["item_id"].tolist()) for b in loader]
    return found


def asked_of(loader):
    """Which users are validated on which items, what they are known for, and how negatives are drawn."""
    drawn = getattr(loader._sampler, "distribution", None)
    own = {"kind": type(loader).__name__, "pairs": pairs_of(loader._dataset), "drawn": drawn}
    for name in ("uid2positive_item", "uid2history_item"):
        rows = getattr(loader, name, None)
        own[name] = None if rows is None else [None if row is None else row.tolist() for row in rows]
    return own


@pytest.fixture(params=KINDS)
def case(request, tiny):
    """The kind of run, its model, and where its settings are: in two property files."""
    model, text = KINDS[request.param]
    Path("own.yaml").write_text(text + f"data_path: {tiny['data_path']}\n")
    (Path(tiny["data_path"]) / "tiny" / "tiny.yaml").write_text(COMMON)
    return request.param, model


def step_by_step(model):
    """RecBole's way, as the docstring of quick_start has it; the trainer and its result."""
    config = quick_start.Config(model, "tiny", ["own.yaml"])
    dataset = quick_start.create_dataset(config)
    train_data, valid_data, _ = quick_start.data_preparation(config, dataset)
    quick_start.init_seed(config["seed"], config["reproducibility"])
    network = quick_start.get_model(config["model"])(config, train_data.dataset).to(config["device"])
    trainer = quick_start.get_trainer(config)(config, network)
    return trainer.fit(train_data, valid_data)


def trial(model):
    """What a search does: its parts hold no test set."""
    config = HNSConfig(model, "tiny", ["own.yaml"])
    parts = pipeline.split(config, pipeline.load(config)).without_test()
    assert parts.test is None
    outcome = finish(config, pipeline.make_ready(config, parts), saved=False)
    assert outcome.test_result is None
    return outcome.best_valid_score, outcome.best_valid_result


def test_every_command_sees_the_same_data_batches_and_validation(case, monkeypatch, capsys):
    """Before, a trial of a search validated otherwise than a run, and layers had another order there."""
    kind, model = case
    seen = Seen(monkeypatch)
    result = run_recbole_hns(model, "tiny", config_file_list=["own.yaml"])
    expected, score, valid = seen.last(), result["best_valid_score"], result["best_valid_result"]
    (best,) = (f for f in Path("saved").glob("*.pth") if ".last" not in f.name)

    assert (
        main([f"--model={model}", "--dataset=tiny", "--config_files=own.yaml", "--result_dir=cli"]) == 0
    )
    assert seen.last() == expected
    (record,) = Path("cli").glob("*/result.json")
    assert json.loads(record.read_text())["best"]["valid"] == valid

    assert step_by_step(model) == (score, valid)
    assert seen.last() == expected

    assert trial(model) == (score, valid)
    parts, loaders = seen.last()
    assert parts == expected[0]
    assert loaders == expected[1]

    stop = at_moment("batch", 8, lambda: signal.raise_signal(signal.SIGINT))
    with stop, pytest.raises(RunStopped) as stopped:
        run_recbole_hns(model, "tiny", config_file_list=["own.yaml"])
    seen.last()
    line = [f"--resume={stopped.value.checkpoint}", "--config_files=own.yaml", "--result_dir=again"]
    assert main(line) == 0
    assert seen.last() == expected
    (record,) = Path("again").glob("*/result.json")
    assert json.loads(record.read_text())["best"]["valid"] == valid

    again = evaluation.evaluate(best)
    assert seen.last() == expected
    if kind != "sampled":  # whose negatives are drawn anew
        assert again["best_valid_result"] == valid
        assert again["test_result"] == result["test_result"]

    rows = list(recommend(best, ["u1"], k=3))
    assert seen.last(loaders=False)[0] == expected[0]
    assert [row.item for row in rows] == load(best).recommend(["u1"], 3)["item"].tolist()


def test_with_mode_pop5_negatives_of_validation_are_popular_in_a_trial_too(tiny):
    """Before, a run validated on popular negatives and a trial on uniform ones."""
    settings = {**tiny, "eval_args": {"mode": "pop5"}, "N": 5}
    config = HNSConfig("BPR", "tiny", config_dict=settings)
    parts = pipeline.split(config, pipeline.load(config))
    for given in (parts, parts.without_test()):
        loader = pipeline.make_loaders(config, given).valid
        assert loader._sampler.distribution == "popularity"
        assert loader.neg_sample_args["sample_num"] == 5


def test_what_a_trial_trains_is_rehearsed_and_checked(tiny):
    """Before, a trial went on to a traceback where a run was refused in a sentence."""
    parts = None
    for settings, words in (({"class_num": 1}, "GCMC cannot score"), ({}, None)):
        config = HNSConfig("GCMC", "tiny", config_dict={**tiny, **settings})
        parts = parts or pipeline.split(config, pipeline.load(config)).without_test()
        if words:
            with pytest.raises(Error, match=words):
                pipeline.make_ready(config, parts)
    config = HNSConfig("DGCF", "tiny", config_dict=tiny)
    with pytest.raises(Error, match="train_batch_size=2048 is too large for DGCF"):
        pipeline.make_ready(config, parts)


def test_nothing_of_the_test_set_is_in_a_trials_loaders(tiny):
    """What is left out of a validation's ranking is what was taken in training, and no more."""
    config = HNSConfig("BPR", "tiny", config_dict=tiny)
    parts = pipeline.split(config, pipeline.load(config))
    loaders = pipeline.make_loaders(config, parts.without_test())
    assert loaders.test is None
    trained = {tuple(pair) for pair in pairs_of(parts.train)}
    known = {
        (user, item)
        for user, items in enumerate(loaders.valid.uid2history_item)
        for item in ([] if items is None else items.tolist())
    }
    assert known == {pair for pair in trained if pair[0] in {user for user, _ in pairs_of(parts.valid)}}


# ----------------------------------------------------------------------------------- RecBole's way


def test_recboles_own_preparation_gives_the_same_parts_and_the_same_training(tiny):
    """RecBole's functions take our configuration, and its loader's uniform negatives are left out."""
    from recbole.data import create_dataset, data_preparation
    from recbole.utils import init_seed

    settings = {**tiny, "sampler": "dns", "N": 10, "M": 2, "epochs": 2, "state": "ERROR"}
    scores = []
    for prepare, create in (
        (data_preparation, create_dataset),
        (quick_start.data_preparation, quick_start.create_dataset),
    ):
        config = quick_start.Config("BPR", "tiny", config_dict=settings)
        init_seed(config["seed"], config["reproducibility"])
        train_data, valid_data, _ = prepare(config, create(config))
        init_seed(config["seed"], config["reproducibility"])
        network = quick_start.get_model("BPR")(config, train_data.dataset)
        scores.append(quick_start.get_trainer(config)(config, network).fit(train_data, valid_data))
    assert scores[0] == scores[1]


def test_recboles_own_trainer_is_refused_and_not_trained_through(tiny):
    """Before, it trained plain BPR with uniform negatives and said nothing of the sampler."""
    config = quick_start.Config("BPR", "tiny", config_dict={**tiny, "sampler": "dns"})
    train_data, valid_data, _ = quick_start.data_preparation(config, quick_start.create_dataset(config))
    network = quick_start.get_model("BPR")(config, train_data.dataset)
    before = network.item_embedding.weight.detach().clone()
    with pytest.raises(
        Error, match=r"without sampler=dns: make the trainer by get_trainer of recbole_hns"
    ):
        Trainer(config, network).fit(train_data, valid_data)
    assert torch.equal(network.item_embedding.weight, before)


def test_our_trainer_refuses_recboles_configuration(tiny, monkeypatch):
    """It knows no sampler; RecBole's own data and model would go with it."""
    from recbole.config import Config

    monkeypatch.setattr("sys.argv", ["run"])
    config = Config("BPR", "tiny", config_dict=tiny)
    train_data, *_ = quick_start.data_preparation(
        HNSConfig("BPR", "tiny", config_dict=tiny),
        quick_start.create_dataset(HNSConfig("BPR", "tiny", config_dict=tiny)),
    )
    network = quick_start.get_model("BPR")(config, train_data.dataset)
    with pytest.raises(Error, match=r"takes recbole_hns\.HNSConfig and not Config"):
        quick_start.get_trainer(config)(config, network)
