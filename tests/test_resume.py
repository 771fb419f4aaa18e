"""A run that is killed goes on where its checkpoint ends, sampler included."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from recbole.data import create_dataset, data_preparation
from recbole.utils import init_seed

from recbole_hns import HNSConfig
from recbole_hns.data.loader import positives_only
from recbole_hns.trainer import make_trainer

SETTINGS = {
    "epochs": 6,
    "learning_rate": 0.005,
    "train_batch_size": 16384,
    "valid_metric": "NDCG@10",
    "show_progress": False,
    "state": "ERROR",
}


def train(sampler, folder, kill_in=None, resume=None):
    """Train MF on ml-100k; ``kill_in`` is the epoch in whose middle the process kills itself."""
    settings = {**SETTINGS, "sampler": sampler, "checkpoint_dir": str(folder)}
    config = HNSConfig("MF", "ml-100k", config_dict=settings)
    init_seed(config["seed"], config["reproducibility"])
    train_data, valid_data, _ = data_preparation(config, create_dataset(config))
    loader = positives_only(config, train_data)
    init_seed(config["seed"], config["reproducibility"])
    trainer = make_trainer(config, config.model_class(config, loader._dataset))
    if resume is not None:
        trainer.resume_checkpoint(resume)
    if kill_in is not None:
        step = trainer.sampled_loss

        def deadly(batch):
            if (
                loader.epoch == kill_in
                and int(trainer.optimizer.state_dict()["state"][0]["step"]) % 5 == 2
            ):
                signal.raise_signal(signal.SIGKILL)
            return step(batch)

        trainer.sampled_loss = deadly
    trainer.fit(loader, valid_data)
    return trainer


@pytest.mark.parametrize("sampler", ["irgan", "adasir_p", "aobpr", "kernel"])
def test_killed_and_resumed_ends_as_if_never_killed(tmp_path, sampler):
    whole = train(sampler, tmp_path / "whole")
    command = [sys.executable, __file__, sampler, str(tmp_path / "killed")]
    run = subprocess.run(command, timeout=300, capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    (checkpoint,) = (tmp_path / "killed").glob("*.pth")
    saved_epoch = torch.load(checkpoint, weights_only=False)["epoch"]
    assert saved_epoch == 3

    resumed = train(sampler, tmp_path / "resumed", resume=checkpoint)
    assert resumed.start_epoch == saved_epoch + 1
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name]), name
    mine, other = whole.sampler.state_dict(), resumed.sampler.state_dict()
    assert bool(mine) == (sampler in ("irgan", "adasir_p"))
    for key in mine:
        assert_same(mine[key], other[key])


def assert_same(a, b):
    """Equal, tensors and all."""
    if isinstance(a, torch.Tensor):
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_same(x, y)
    else:
        assert a == b


def test_another_sampler_begins_anew_and_says_so(tmp_path, caplog):
    (tmp_path / "first").mkdir()
    first = train("irgan", tmp_path / "first")
    caplog.clear()
    with caplog.at_level("WARNING"):
        second = train("adasir_p", tmp_path / "second", resume=first.saved_model_file)
    assert "nothing of sampler=adasir_p" in caplog.text
    assert second.sampler.pools.shape[1] == 50


if __name__ == "__main__":
    train(sys.argv[1], Path(sys.argv[2]), kill_in=4)
    sys.exit("not killed")
