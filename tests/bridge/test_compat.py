import importlib.util
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from recbole.config import Config
from recbole.data import create_dataset
from recbole.data.dataset import dataset as recbole_dataset
from recbole.trainer import trainer as recbole_trainer

from recbole_hns import HNSConfig
from recbole_hns.bridge import compat, compat_knowledge, compat_pandas

NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
PANDAS_3 = int(pd.__version__.partition(".")[0]) >= 3


def test_recbole_finds_numpys_old_names_and_numpy_does_not_keep_them():
    HNSConfig("BPR", "ml-100k")
    assert (np.float, np.complex, np.unicode) == (np.float64, np.complex128, np.str_)
    for name in compat.NUMPY_1_NAMES:
        assert hasattr(np, name) == (not NUMPY_2)


def write_features(tiny) -> dict:
    """Item features with missing values of every type."""
    folder = f"{tiny['data_path']}/tiny/tiny"
    with open(f"{folder}.item", "w") as file:
        file.write("item_id:token\tprice:float\tbrand:token\ttags:token_seq\tsizes:float_seq\n")
        file.write("i0\t2.0\tb\tx y z\t1 2\n")
        file.write("i1\t\t\t\t\n")
        file.write("i2\t4.0\tc\tx\t3\n")
    columns = {
        "inter": ["user_id", "item_id"],
        "item": ["item_id", "price", "brand", "tags", "sizes"],
    }
    return {**tiny, "load_col": columns}


def item_features(settings) -> dict:
    """i0, i1, i2 and the padding, which has no line, of every column, as RecBole's models get them."""
    dataset = create_dataset(HNSConfig("BPR", "tiny", config_dict=settings))
    dataset._change_feat_format()
    rows = dataset.token2id("item_id", ["i0", "i1", "i2", "[PAD]"])
    return {name: dataset.item_feat[name][rows].tolist() for name in dataset.item_feat.columns}


def test_features_with_missing_values_and_sequences_are_loaded(tiny):
    features = item_features(write_features(tiny))
    assert features["price"] == [2, 3, 4, 3]  # the mean where there is none
    assert features["brand"] == [1, 0, 2, 0]
    assert features["tags"] == [[1, 2, 3], [0, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert features["sizes"] == [[1, 2], [0, 0], [3, 0], [0, 0]]


def test_sequences_are_normalised_element_by_element(tiny):
    features = item_features({**write_features(tiny), "normalize_all": True})
    assert features["price"] == [0, 0.5, 1, 0.5]
    assert features["sizes"] == [[0, 0.5], [0, 0], [1, 0], [0, 0]]


@pytest.mark.skipif(not PANDAS_3, reason="before pandas 3 there is nothing to mend")
def test_a_column_of_recboles_table_writes_through_and_no_other_does():
    table = recbole_dataset.pd.DataFrame({"a": [1.0, None], "b": [[1, 2], []]})
    table["a"].fillna(0, inplace=True)
    assert table["a"].tolist() == [1, 0]
    assert table["b"].agg(len).tolist() == [2, 0]
    assert table["a"].agg("sum") == 1
    halves = table["a"].where(table["a"] > 0) / 2
    halves.fillna(7, inplace=True)
    assert halves.tolist() == [0.5, 7]
    assert table["a"].tolist() == [1, 0]
    assert pd.DataFrame({"b": [[1, 2], []]})["b"].agg(len) == 2


def test_torch_load_is_unchanged_for_everyone_else(tmp_path):
    file = tmp_path / "pickled.pth"
    torch.save({"config": np.random.default_rng(0)}, file)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(file)
    assert torch.load.__module__ == "torch.serialization"


def test_recboles_trainer_reads_what_it_wrote(tmp_path):
    file = tmp_path / "pickled.pth"
    recbole_trainer.torch.save({"config": np.random.default_rng(0), "epoch": 3}, file)
    assert recbole_trainer.torch.load(file)["epoch"] == 3
    assert recbole_trainer.torch.nn is torch.nn


def test_recboles_trainer_does_not_read_a_pickle_of_somebody_else(tmp_path):
    file = tmp_path / "pickled.pth"
    torch.save({"config": np.random.default_rng(0), "epoch": 3}, file)
    with pytest.raises(pickle.UnpicklingError):
        recbole_trainer.torch.load(file)
    with pytest.raises(FileNotFoundError):
        recbole_trainer.torch.load(tmp_path / "missing.pth")


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

    own = Config.compatibility_settings
    for name in compat.NUMPY_1_NAMES:
        monkeypatch.setattr(np, name, "NumPy's own", raising=False)
    compat.lend_numpy_names()
    assert Config.compatibility_settings is own

    monkeypatch.setattr(pd, "__version__", "2.3.3")
    monkeypatch.setattr(recbole_dataset, "pd", pd)
    compat_pandas.apply()
    assert recbole_dataset.pd is pd


def test_applying_twice_changes_nothing(tmp_path):
    compat.apply()
    file = tmp_path / "pickled.pth"
    recbole_trainer.torch.save({"config": np.random.default_rng(0), "epoch": 3}, file)
    view = recbole_trainer.torch
    compat.apply()
    assert recbole_trainer.torch is view
    assert recbole_trainer.torch.load(file)["epoch"] == 3
    HNSConfig("BPR", "ml-100k")
    assert hasattr(np, "float_") == (not NUMPY_2)


@pytest.mark.parametrize(
    ("before", "anomaly"),
    [
        ("", False),
        ("import recbole.model.sequential_recommender", False),
        ("torch.autograd.set_detect_anomaly(True)", True),
    ],
    ids=["alone", "after RecBole's models", "wanted"],
)
def test_recbole_does_not_turn_anomaly_detection_on(before, anomaly):
    code = f"import torch\n{before}\nfrom recbole_hns.bridge import install\ninstall()\n"
    code += "from recbole.model.sequential_recommender import SINE\n"
    code += f"assert torch.is_anomaly_enabled() is {anomaly}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr


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


def test_neither_a_run_nor_ray_warns_of_what_a_user_cannot_change(tiny):
    settings = {**write_features(tiny), "filter_inter_by_user_or_item": False, "epochs": 1}
    code = "import recbole_hns\n"
    code += f"recbole_hns.run_recbole_hns('LightGCN', 'tiny', 'dns', config_dict={settings})\n"
    code += "import ray.tune"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "Warning" not in run.stderr
    assert "np.float64" not in run.stderr
