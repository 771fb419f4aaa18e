import importlib.util
import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from recbole.trainer import trainer as recbole_trainer

from recbole_hns import compat, compat_knowledge


def test_torch_load_is_unchanged_for_everyone_else(tmp_path):
    file = tmp_path / "pickled.pth"
    torch.save({"config": np.random.default_rng(0)}, file)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(file)
    assert torch.load.__module__ == "torch.serialization"


def test_recboles_trainer_reads_what_it_wrote(tmp_path):
    file = tmp_path / "pickled.pth"
    torch.save({"config": np.random.default_rng(0), "epoch": 3}, file)
    assert recbole_trainer.torch.load(file)["epoch"] == 3
    assert recbole_trainer.torch.nn is torch.nn


def test_dok_update_fills_the_matrix():
    matrix = sp.dok_matrix((3, 3), dtype=np.float32)
    matrix._update({(0, 1): 1.0, (2, 2): 5.0})
    assert matrix.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 5]]


def test_shims_leave_alone_what_is_not_broken(monkeypatch):
    monkeypatch.setattr(sp.dok_matrix, "_update", "SciPy's own", raising=False)
    compat.restore_dok_update()
    assert sp.dok_matrix._update == "SciPy's own"

    def load_with_the_old_default(file, weights_only=False):
        raise AssertionError

    monkeypatch.setattr(torch, "load", load_with_the_old_default)
    monkeypatch.setattr(recbole_trainer, "torch", torch)
    compat.load_own_checkpoints()
    assert recbole_trainer.torch is torch


def test_applying_twice_changes_nothing(tmp_path):
    compat.apply()
    compat.apply()
    file = tmp_path / "pickled.pth"
    torch.save({"config": np.random.default_rng(0), "epoch": 3}, file)
    assert recbole_trainer.torch.load(file)["epoch"] == 3


def test_scatter_mean_and_softmax_are_those_of_a_loop(generator):
    src = torch.randn(9, 3, generator=generator)
    index = torch.tensor([0, 2, 2, 5, 0, 2, 5, 5, 0])
    means, shares = (
        compat_knowledge.scatter_mean(src, index, 7),
        compat_knowledge.scatter_softmax(src, index),
    )
    for place in range(7):
        rows = src[index == place]
        expected = rows.mean(dim=0) if len(rows) else torch.zeros(3)
        torch.testing.assert_close(means[place], expected)
        torch.testing.assert_close(shares[index == place], rows.softmax(dim=0))


def test_the_stand_in_for_torch_scatter_leaves_no_trace():
    if importlib.util.find_spec("torch_scatter") is not None:
        pytest.skip("torch_scatter is installed")
    with compat_knowledge.scatter_at_hand():
        import torch_scatter

        assert torch_scatter.scatter_mean is compat_knowledge.scatter_mean
    assert "torch_scatter" not in sys.modules
