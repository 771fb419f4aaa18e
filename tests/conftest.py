"""Shared fixtures: tiny data sets, written as RecBole's atomic files into a temporary folder."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from recbole.data import create_dataset, data_preparation
from recbole.utils import init_seed
from scipy.stats import chisquare

from recbole_hns.bridge.world import world_of
from recbole_hns.kernels import get_kernels
from recbole_hns.runs.config import HNSConfig
from recbole_hns.sampling import DotQuery
from recbole_hns.sampling.positives import Positives
from recbole_hns.settings import registry

BACKENDS = ("numba", "torch")

# Where the tests run in the background these are ignored, by all processes that they start too.
for _signal, _default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, _default)


@pytest.fixture(autouse=True)
def in_temporary_folder(tmp_path, monkeypatch):
    """RecBole writes log/, saved/ and log_tensorboard/ into the working folder."""
    monkeypatch.chdir(tmp_path)
    # For the table of the environment at the end of a run it watches the CPU for a second.
    monkeypatch.setattr("psutil.cpu_percent", lambda interval=None: 0.0)


@pytest.fixture
def clean_registry(monkeypatch):
    """What is registered, or imported for its parts, is forgotten again."""
    tables = {kind: dict(table) for kind, table in registry._TABLES.items()}
    monkeypatch.setattr(registry, "_TABLES", tables)
    monkeypatch.setattr(registry, "_IMPORTED", list(registry._IMPORTED))
    monkeypatch.setattr(registry, "_OWNERS", dict(registry._OWNERS))
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if "." not in name and name.startswith("my_"):
            del sys.modules[name]


@pytest.fixture(params=BACKENDS)
def backend(request):
    """Both values of hns_backend that a CPU has."""
    return request.param


@pytest.fixture(params=BACKENDS)
def kernels(request):
    """Both implementations of the kernels' contract."""
    return get_kernels(request.param, torch.device("cpu"))


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(20)


def write_inter(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    """An .inter file with ascending time stamps."""
    target = folder / name
    target.mkdir(parents=True)
    lines = ["user_id:token\titem_id:token\ttimestamp:float"]
    lines += [f"{user}\t{item}\t{time}" for time, (user, item) in enumerate(pairs)]
    (target / f"{name}.inter").write_text("\n".join(lines) + "\n")


def random_pairs(n_users=40, n_items=60, per_user=10, seed=0) -> list[tuple[str, str]]:
    """Different items for each user, popular ones more often."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, n_items + 1)
    return [
        (f"u{user}", f"i{item}")
        for user in range(n_users)
        for item in rng.choice(n_items, per_user, replace=False, p=popularity / popularity.sum())
    ]


@pytest.fixture
def tiny(tmp_path):
    """The folder of a data set called ``tiny``: 40 users, 60 items, 400 interactions."""
    write_inter(tmp_path / "data", "tiny", random_pairs())
    return {"data_path": str(tmp_path / "data"), "show_progress": False}


def prepare(model="BPR", dataset="tiny", **settings):
    """(config, train_data, valid_data, test_data) of RecBole's own data preparation."""
    config = HNSConfig(model, dataset, config_dict=settings)
    return (config, *data_preparation(config, create_dataset(config)))


def sampler_for(settings, backend="numba", seed=3, **more):
    """The sampler of a run over the training set, made as a run makes it."""
    init_seed(7, True)  # RecBole splits the data by torch's global generator
    config, train_data, *_ = prepare(**settings, **more, hns_backend=backend, seed=seed)
    return config.method.open(world_of(train_data._dataset, config))


def query_for(sampler, users, d=4, seed=5, scale=1.0):
    """A batch of the users with random vectors; the positive is the user's first."""
    world, generator = sampler.world, torch.Generator().manual_seed(seed)
    context = scale * torch.randn(world.n_users, d, generator=generator)
    items = scale * torch.randn(world.n_items, d, generator=generator)
    positives = torch.tensor([int(world.positives.row(int(u))[0]) for u in users])
    return DotQuery(context, items, positives, users, world.backend)


def negatives_of(sampler, user):
    """The items that a user did not take, by a set."""
    taken = set(sampler.world.positives.row(user).tolist())
    return [j for j in range(1, sampler.world.n_items) if j not in taken]


def fits(observed, expected) -> bool:
    """χ² at α = 10⁻⁴; cells that expect fewer than 5 are counted together."""
    observed, expected = np.asarray(observed, float), np.asarray(expected, float)
    few = expected < 5
    observed, expected = (
        np.append(cells[~few], cells[few].sum()) if cells[few].sum() else cells[~few]
        for cells in (observed, expected)
    )
    if len(observed) != len(expected):  # nothing expected and nothing seen, or the other way round
        return False
    return chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-4


def random_positives(n_users=12, n_items=30, seed=1) -> Positives:
    """Users from no positives at all to all items but one; item 0 is the padding."""
    rng = np.random.default_rng(seed)
    sizes = np.linspace(0, n_items - 2, n_users).astype(int)
    users = np.repeat(np.arange(n_users), sizes)
    items = np.concatenate([rng.permutation(np.arange(1, n_items))[:size] for size in sizes])
    return Positives(users, items, n_users, n_items)
