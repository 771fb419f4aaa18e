"""Importing the package changes nothing in others; one call gives RecBole our metrics."""

import json
import subprocess
import sys

import pytest

from recbole_hns.bridge import install

LOOK = """
import os, sys, json, warnings

def look():
    import scipy.sparse as sp, torch
    import recbole.trainer.trainer as trainer
    from recbole.config import Config
    from recbole.data.dataset import Dataset, dataset
    from recbole.evaluator import Collector, register
    return {
        "scipy": hasattr(sp.dok_matrix, "_update"),
        "warnings": len(warnings.filters),
        "environment": dict(os.environ),
        "torch in the trainer": type(trainer.torch).__name__,
        "anomaly": torch.is_anomaly_enabled(),
        "fit": trainer.Trainer.fit.__module__ + str(hasattr(trainer.Trainer.fit, "__wrapped__")),
        "config": hasattr(Config.compatibility_settings, "__wrapped__"),
        "weights": hasattr(Dataset.get_preload_weight, "__wrapped__"),
        "pandas": type(dataset.pd).__name__,
        "collector": Collector.eval_batch_collect.__module__ + Collector.get_data_struct.__module__,
        "metrics": sorted(register.metrics_dict),
    }
"""


def told_by(code: str):
    """What a new process prints as JSON."""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_importing_loads_none_of_the_large_packages():
    heavy = ("torch", "numpy", "scipy", "pandas", "recbole", "ray", "numba", "msgspec", "yaml")
    code = f"import sys, json, recbole_hns; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    assert told_by(code) == []


def test_importing_changes_nothing_in_scipy_torch_recbole_warnings_or_the_environment():
    """Before, SciPy, the filters of warnings and the environment were changed by the import alone."""
    code = LOOK + "before = look(); import recbole_hns; print(json.dumps([before, look()]))"
    before, after = told_by(code)
    assert before == after


def test_installing_changes_what_the_table_says_and_twice_is_as_once():
    code = LOOK + (
        "before = look()\nfrom recbole_hns.bridge import install\ninstall()\nonce = look()\n"
        "install.__wrapped__()\nprint(json.dumps([before, once, look()]))"
    )
    before, once, twice = told_by(code)
    assert once.pop("warnings") >= before["warnings"]
    twice.pop("warnings")
    assert once == twice
    assert once["scipy"] is True
    assert once["torch in the trainer"] == "TorchForRecBole"
    assert once["anomaly"] is False
    assert set(once["metrics"]) - set(before["metrics"]) == {"opauc", "nopauc", "llpauc"}
    assert once["collector"] == 2 * "recbole_hns.bridge.collector"


@pytest.mark.parametrize("installed", [False, True])
def test_one_call_gives_recboles_own_run_our_metrics(tiny, installed):
    settings = {**tiny, "epochs": 1, "metrics": ["OPAUC", "NDCG"], "valid_metric": "OPAUC@0.1"}
    code = (
        "import json, sys\nfrom recbole.quick_start import run_recbole\n"
        + ("from recbole_hns.bridge import install\ninstall()\n" if installed else "")
        + f"try:\n    found = run_recbole('BPR', 'tiny', config_dict={settings})['test_result']\n"
        "except Exception as error:\n    found = {type(error).__name__: str(error)}\n"
        "print(json.dumps(found, default=float))"
    )
    found = told_by(code)
    if installed:
        assert 0 < found["opauc@1"] < 1
        assert 0 <= found["opauc@0.1"] <= 0.1
    else:
        # An error of RecBole's, which knows no such metric, and on NumPy 2 does not get that far.
        assert len(found) == 1
        assert any(word in next(iter(found.values())) for word in ("OPAUC", "np.float_"))


def test_the_table_of_changes_names_every_place():
    """The docstring is what users read: each class and function that is changed stands in it."""
    table = sys.modules[install.__module__].__doc__
    for place in (
        "recbole.config.Config",
        "dok_matrix._update",
        "recbole.trainer.trainer",
        "Trainer.fit",
    ):
        assert place in table
    for place in ("Dataset.get_preload_weight", "collector", "recbole.data.dataset", "warnings", "GOMP"):
        assert place in table
