# ruff: noqa: I001  (train_step comes first: it settles the threads)
"""What a step costs, and what memory, with a million users, a million items, 20 million interactions.

    python benchmarks/scale.py [--json result.json] [--rounds 7]

MF, batches of 4096, d = 32; generated arrays, popularity after Zipf's law. Steps are taken in turns in
one process, and given as multiples of the same sampler's step with Adam on data of Gowalla's size. A
step is everything, as in ``train_step.py``, with its share of the epoch's permutation.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import train_step
from train_step import GOWALLA, FirstBatches, Trained, generate, peak_of, ratio, ready, show, take_turns

import numpy as np
import torch
from recbole.data.dataset import Dataset
from recbole.data.interaction import Interaction
from recbole.utils import FeatureSource, FeatureType

from recbole_hns.bridge.world import world_of
from recbole_hns.data.loader import PositiveLoader
from recbole_hns.runs.config import HNSConfig
from recbole_hns.sampling.pools.line import LineSource

MILLION = (1_000_000, 1_000_000, 20_000_000)  # users, items, pairs
DNS = {"sampler": "dns", "M": 5, "N": 200}
SAMPLERS = {
    "DNS(5, 200)": DNS,
    "DNS(5, 200), pool_block 16": {**DNS, "pool_block": 16},
    "Softmax-v(1, 200)": {"sampler": "softmax_v", "rho": 1.0},
    "uniform": {"sampler": "uniform"},
}


class Generated(Dataset):
    """RecBole's data set over arrays: no files, no tokens to number."""

    def __init__(self, config, users: np.ndarray, items: np.ndarray, n_users: int, n_items: int):
        self.arrays, self.sizes = (users, items), (n_users, n_items)
        super().__init__(config)

    def _from_scratch(self):
        self._get_preset()
        self._get_field_from_config()
        self.user_feat = self.item_feat = None
        columns = {}
        for field, values, n in zip((self.uid_field, self.iid_field), self.arrays, self.sizes):
            columns[field] = torch.from_numpy(values + 1)  # 0 is RecBole's padding
            self.field2type[field] = FeatureType.TOKEN
            self.field2source[field] = FeatureSource.INTERACTION
            self.field2id_token[field] = range(n + 1)
        del self.arrays
        self.inter_feat = Interaction(columns)


class Steps(Trained):
    """Steps that go on through an epoch from turn to turn.

    The permutation of 20 million pairs belongs to some 5000 steps and not to the few of one turn.
    """

    def __init__(self, trainer, train_data):
        super().__init__(trainer, train_data)
        start = time.perf_counter()
        self.left = iter(train_data)
        next(self.left)
        self.permutation = (time.perf_counter() - start) / len(train_data)

    def batches(self, steps: int) -> FirstBatches:
        """The next batches of the epoch."""
        return FirstBatches(self, steps)

    def __getattr__(self, name):
        return getattr(self.train_data, name)

    def __iter__(self):
        return itertools.chain(self.left, self.train_data)

    def seconds(self, steps: int) -> float:
        """Of a step, on average, with its share of the permutation."""
        return super().seconds(steps) + self.permutation


class Bench:
    """Builds contestants over one generated data set."""

    def __init__(self, folder: Path, n_users: int, n_items: int, n_pairs: int):
        self.folder = folder
        users, items = generate(n_users, n_items, n_pairs, np.random.default_rng(0))
        self.dataset = Generated(self.config(), users, items, n_users, n_items)

    def config(self, **more) -> HNSConfig:
        return HNSConfig("BPR", "bench", config_dict=train_step.settings(self.folder, 32, **more))

    def ours(self, **settings) -> Steps:
        """Our trainer."""
        config = self.config(**settings)
        loader = PositiveLoader(config, self.dataset, shuffle=True)
        return Steps(ready(config, self.dataset, loader), loader)

    def structures(self, pool: str) -> tuple[float, float]:
        """MB that the loader and the sampler with its pool hold, and their peak while being built."""
        built = []

        def build():
            config = self.config(**DNS, pool=pool)
            sampler = config.method.open(world_of(self.dataset, config))
            batches = iter(PositiveLoader(config, self.dataset, shuffle=True))
            users = next(batches)["user_id"]  # makes the permutation
            sampler.source.draw(users, 200)  # makes the guide into a weighted line
            built.extend((sampler, batches))

        peak = peak_of(build)
        return held(built[0].source) + 8 * len(self.dataset) / 2**20, peak


def held(source: LineSource) -> float:
    """MB of a pool's positives, line and weights."""
    line, positives = source.line, source.world.positives
    arrays = [positives.items, positives.indptr, *line.guide, *vars(line).values()]
    arrays.append(source.log_weights)
    return sum(a.nbytes for a in arrays if isinstance(a, (np.ndarray, torch.Tensor))) / 2**20


def run(folder: Path, rounds: int) -> dict:
    """All measurements, as rows of a table."""
    big, small = Bench(folder, *MILLION), Bench(folder, *GOWALLA)
    rows, ms = [], {}
    for pool in ("uniform", "popularity"):
        held_mb, peak_mb = big.structures(pool)
        rows.append(at_most(f"loader and {pool} pool", held_mb / 1024, 4, "GB"))
        rows.append(at_most(f"loader and {pool} pool, peak while built", peak_mb / 1024, 4, "GB"))
        gc.collect()
    for name, settings in SAMPLERS.items():
        contestants = {
            "Gowalla's size, adam": small.ours(**settings),
            "a million, sparse_adam": big.ours(**settings, learner="sparse_adam"),
            "a million, adam": big.ours(**settings),
            "Gowalla's size, sparse_adam": small.ours(**settings, learner="sparse_adam"),
        }
        seconds = take_turns(contestants, rounds)
        reference, *others = contestants
        for other in others:
            most = 4 if (name, other) == ("DNS(5, 200)", "a million, sparse_adam") else None
            rows.append(at_most(f"{name}: {other}", ratio(seconds, other, reference), most))
        ms.update({f"{name}: {key}": 1e3 * statistics.median(seconds[key]) for key in contestants})
        del contestants
        gc.collect()
    return {"rows": rows, "ms": ms, "threads": torch.get_num_threads()}


def at_most(what: str, value: float, most: float | None, unit: str = "×") -> dict[str, str]:
    """A row of the table, with its line and verdict if it has one."""
    if most is None:
        return train_step.row(what, f"{value:.2f} {unit}", "", "")
    verdict = "ok" if value <= most else "MISSED"
    return train_step.row(what, f"{value:.2f} {unit}", f"≤ {most:g} {unit}", verdict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="also write the results to this file")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    sys.argv[1:] = []  # RecBole's Config reads it by itself
    output = options.json and Path(options.json).absolute()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        show(run(Path(name), options.rounds), output)


if __name__ == "__main__":
    main()
