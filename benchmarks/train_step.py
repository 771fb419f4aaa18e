# ruff: noqa: E402, I001  (recbole_hns.runs comes before torch: it settles the threads)
"""What a training step costs, side by side with what it replaces. Prints ratios; seconds are noise.

    python benchmarks/train_step.py [--data gowalladata.mat] [--json result.json] [--rounds 5]

All contestants train on the same data in the same process, in turns, and the median counts. A step is
everything: loader, choice of negatives, loss, backward pass and Adam. The references are

* ``plain``: a step in plain PyTorch, the way the paper's authors wrote it: user and item embeddings
  both gathered to (B, N, d), multiplied, summed, then topk or softmax, and autograd for the rest;
* ``RecBole dynamic``: RecBole's own dynamic negative sampling with as many candidates;
* ``RecBole BPR``: RecBole's plain step with one uniform negative.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import recbole_hns.runs  # noqa: F401
import numpy as np
import scipy.io
import torch
import torch.nn.functional as F
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.utils import get_model, get_trainer, init_seed

from recbole_hns.data.loader import positives_only
from recbole_hns.kernels import Vectors
from recbole_hns.runs.config import HNSConfig
from recbole_hns.sampling import Positives, World
from recbole_hns.training.trainer import make_trainer

B = 4096
GOWALLA = (29_858, 40_988, 822_358)  # users, items, training pairs


def interactions(data: str | None, share: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    """(users, items) of Gowalla-sized data: a share of each user's items in the file, or generated."""
    rng = np.random.default_rng(0)
    if data:
        matrix = scipy.io.loadmat(data)["data"].tocsr()
        users, items = [], []
        for user in range(matrix.shape[0]):
            row = rng.permutation(matrix.indices[matrix.indptr[user] : matrix.indptr[user + 1]])
            kept = row[: round(share * len(row))]
            users.append(np.full(len(kept), user))
            items.append(kept)
        return np.concatenate(users), np.concatenate(items)
    n_users, n_items, n_training = GOWALLA
    return generate(n_users, n_items, round(n_training * share / 0.8), rng)


def generate(
    n_users: int, n_items: int, n_pairs: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(users, items) of different pairs, items as popular as Zipf's law has it."""
    zipf = 1 / np.arange(1, n_items + 1) ** 0.8
    activity = rng.lognormal(sigma=0.9, size=n_users)
    pairs = np.empty(0, dtype=np.int64)
    while len(pairs) < n_pairs:  # draw until there are enough different ones
        users = rng.choice(n_users, n_pairs, p=activity / activity.sum())
        items = rng.choice(n_items, n_pairs, p=zipf / zipf.sum())
        pairs = np.unique(np.concatenate([pairs, users * n_items + items]))
    pairs = rng.permutation(pairs)[:n_pairs]
    return pairs // n_items, rng.permutation(n_items)[pairs % n_items]


def write_dataset(folder: Path, users: np.ndarray, items: np.ndarray) -> None:
    """RecBole's atomic file, with the whole of it as training set and a sliver to validate on."""
    target = folder / "bench"
    target.mkdir()
    header = "user_id:token\titem_id:token"
    for part, keep in (("train", slice(None)), ("valid", slice(0, 50)), ("test", slice(0, 50))):
        rows = np.stack([users[keep], items[keep]], axis=1)
        file = target / f"bench.{part}.inter"
        np.savetxt(file, rows, fmt="%d", delimiter="\t", header=header, comments="")


def settings(folder: Path, d: int, **more) -> dict:
    """The configuration that every contestant shares."""
    return {
        "data_path": str(folder),
        "benchmark_filename": ["train", "valid", "test"],
        "checkpoint_dir": str(folder / "saved"),
        "train_batch_size": B,
        "embedding_size": d,
        "learning_rate": 0.001,
        "show_progress": False,
        "state": "ERROR",
        **more,
    }


class FirstBatches:
    """The first batches of a loader, again and again: an epoch of a known length."""

    def __init__(self, loader, n: int):
        self.loader, self.n = loader, n

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def __len__(self):
        return self.n

    def __iter__(self):
        return itertools.islice(iter(self.loader), self.n)


def ready(config: HNSConfig, dataset, loader):
    """Our trainer with its sampler built and nothing trained."""
    init_seed(0, True)
    trainer = make_trainer(config, get_model(config["model"])(config, dataset))
    trainer.epochs = 0  # fit builds the sampler and trains no epoch
    trainer.fit(loader, saved=False)
    return trainer


class Trained:
    """A RecBole trainer, ours or RecBole's, timed per step."""

    def __init__(self, trainer, train_data):
        self.trainer, self.train_data = trainer, train_data
        self.epoch = 0

    def batches(self, steps: int):
        """An epoch of so many steps."""
        return FirstBatches(self.train_data, steps)

    def seconds(self, steps: int) -> float:
        """Of a step, on average."""
        start = time.perf_counter()
        self.trainer._train_epoch(self.batches(steps), self.epoch)
        self.epoch += 1
        return (time.perf_counter() - start) / steps


class Bench:
    """Builds contestants over one data set, prepared once."""

    def __init__(self, folder: Path):
        self.folder = folder
        config = HNSConfig("BPR", "bench", config_dict=settings(folder, 32))
        self.train_data = data_preparation(config, create_dataset(config))[0]
        self.dataset = self.train_data._dataset

    def ours(self, model: str = "BPR", d: int = 32, **sampler) -> Trained:
        """Our trainer with a sampler."""
        config = HNSConfig(model, "bench", config_dict=settings(self.folder, d, **sampler))
        loader = positives_only(config, self.train_data)
        return Trained(ready(config, self.dataset, loader), loader)

    def recbole(self, model: str = "BPR", d: int = 32, dynamic: int = 0) -> Trained:
        """RecBole's trainer with its own negative sampling."""
        more = {
            "train_neg_sample_args": {
                "distribution": "uniform",
                "sample_num": 1,
                "dynamic": bool(dynamic),
                "candidate_num": dynamic,
            }
        }
        if model == "LightGCN":
            more["n_layers"] = 3
        config = Config(model, "bench", config_dict=settings(self.folder, d, **more))
        init_seed(0, True)
        self.train_data.update_config(config)
        network = get_model(model)(config, self.dataset)
        self.train_data.get_model(network)
        loader = type(self.train_data)(config, self.dataset, self.train_data._sampler, shuffle=True)
        loader.get_model(network)
        return Trained(get_trainer(config["MODEL_TYPE"], model)(config, network), loader)

    def plain(self, rule: str, N: int = 200, M: int = 5, rho: float = 1.0, d: int = 32) -> Plain:
        """The step in plain PyTorch."""
        return Plain(self.dataset, rule, N, M, rho, d)


class Plain:
    """DNS(M, N) or Softmax-v(ρ, N) as the paper's authors wrote it, in plain PyTorch."""

    def __init__(self, dataset, rule: str, N: int, M: int, rho: float, d: int):
        self.users = dataset.inter_feat["user_id"]
        self.items = dataset.inter_feat["item_id"]
        self.n_items = dataset.item_num
        self.rule, self.N, self.M, self.rho = rule, N, M, rho
        self.user_embedding = torch.nn.Embedding(dataset.user_num, d)
        self.item_embedding = torch.nn.Embedding(dataset.item_num, d)
        for table in (self.user_embedding, self.item_embedding):
            torch.nn.init.normal_(table.weight, std=0.1)
        tables = [self.user_embedding.weight, self.item_embedding.weight]
        self.optimizer = torch.optim.Adam(tables, lr=0.001)

    def seconds(self, steps: int) -> float:
        order = torch.randperm(len(self.users))
        start = time.perf_counter()
        for step in range(steps):
            index = order[step * B : (step + 1) * B]
            self._step(self.users[index], self.items[index])
        return (time.perf_counter() - start) / steps

    def _step(self, users, positives):
        self.optimizer.zero_grad()
        candidates = torch.randint(1, self.n_items, (len(users), self.N))
        user_vectors = self.user_embedding(users[:, None].expand_as(candidates))  # (B, N, d)
        r_cj = (user_vectors * self.item_embedding(candidates)).sum(dim=-1)
        r_ci = (self.user_embedding(users) * self.item_embedding(positives)).sum(-1, keepdim=True)
        if self.rule == "dns":
            loss = F.softplus(r_cj.topk(self.M, dim=1).values - r_ci).sum()
        else:
            L = F.softplus(r_cj - r_ci)
            with torch.no_grad():
                tau = (L.var(dim=1, keepdim=True) / (2 * self.rho)).sqrt()
                weights = torch.softmax(L / tau, dim=1)
            loss = (weights * L).sum()
        loss.backward()
        self.optimizer.step()


def take_turns(contestants: dict, rounds: int, budget: float = 0.7) -> dict[str, list[float]]:
    """Seconds per step of each contestant, measured in turns of about ``budget`` seconds."""
    for contestant in contestants.values():
        contestant.seconds(2)  # compiles what is to be compiled, and warms up
    steps = {name: int(budget / c.seconds(3)) for name, c in contestants.items()}
    seconds = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            seconds[name].append(contestant.seconds(min(max(steps[name], 1), 100)))
    return seconds


def ratio(seconds: dict[str, list[float]], slow: str, fast: str) -> float:
    """The median over rounds of slow/fast, each round's two measured next to each other."""
    return statistics.median(s / f for s, f in zip(seconds[slow], seconds[fast]))


def selection_against_items(rounds: int) -> dict[int, float]:
    """Seconds to draw, score and keep the top 5 of 200, for more and more items."""
    generator = torch.Generator().manual_seed(0)
    rng = np.random.default_rng(0)
    contestants = {}
    for n_items in (40_000, 200_000, 1_000_000):
        users = rng.integers(1, 30_000, 820_000)
        positives = Positives(users, rng.integers(1, n_items, 820_000), 30_000, n_items)
        world = World(positives, hns_backend="numba")
        context, items = torch.randn(30_000, 32), torch.randn(n_items, 32)
        batch = torch.from_numpy(users[:B])
        contestants[n_items] = (world.backend, world.line, context, items, batch)

    def select(kernels, line, context, items, batch):
        start = time.perf_counter()
        candidates = kernels.draw(line, batch, 200, 1, generator)
        kernels.top(Vectors(context, batch, items), candidates, 5)
        return time.perf_counter() - start

    seconds = {n: [] for n in contestants}
    for _ in range(rounds * 8):
        for n, c in contestants.items():
            seconds[n].append(select(*c))
    return {n: statistics.median(values[1:]) for n, values in seconds.items()}


def peak_memory(folder: Path) -> dict[str, float]:
    """Extra MB of a step at B = 4096, N = 500, d = 64, each measured in a process of its own."""
    extra = {}
    for name, sampler in MEMORY_SAMPLERS.items():
        command = [sys.executable, __file__, "--memory", json.dumps(sampler), "--folder", folder]
        extra[name] = float(subprocess.run(command, check=True, capture_output=True).stdout)
    return extra


MEMORY_SAMPLERS = {
    "DNS(5, 500)": {"sampler": "dns", "M": 5, "N": 500},
    "DNS(5, 500), pool_block 16": {"sampler": "dns", "M": 5, "N": 500, "pool_block": 16},
    "Softmax-v(1, 500)": {"sampler": "softmax_v", "N": 500},
    "Softmax-v(1, 500), pool_block 16": {"sampler": "softmax_v", "N": 500, "pool_block": 16},
}


def peak_of(work) -> float:
    """By how many MB ``work()`` raises the memory of the process at most."""

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    # Fill up what the process has freed so far, so that the peak shows every new byte.
    before = peak()
    ballast, resident = [], Path("/proc/self/statm")
    page = os.sysconf("SC_PAGE_SIZE") / 2**20
    while int(resident.read_text().split()[1]) * page < before - 1:
        ballast.append(np.ones(1 << 17))  # 1 MB
    before = peak()
    work()
    return peak() - before


def measure_memory(folder: Path, sampler: dict) -> None:
    """Print by how many MB the sampler's steps raise the peak over uniform BPR's steps."""
    bench = Bench(folder)
    contestant = bench.ours(d=64, **sampler)
    plain = bench.ours(d=64, sampler="uniform")
    plain.seconds(3)
    del plain
    print(peak_of(lambda: contestant.seconds(3)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="gowalladata.mat; generated data of the same size if absent")
    parser.add_argument("--json", help="also write the results to this file")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.argv[1:] = []  # RecBole's Config reads it by itself
    output = options.json and Path(options.json).absolute()
    if options.memory:
        measure_memory(Path(options.folder), json.loads(options.memory))
        return

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dataset(folder, *interactions(options.data))
        os.chdir(folder)
        show(run(folder, options.rounds), output)


def show(report: dict, output: Path | None) -> None:
    """Print the table, and write it to a file if there is one."""
    for row in report["rows"]:
        print(f"{row['what']:<64} {row['value']:>9} {row['line']:>16} {row['verdict']}")
    print("\nmilliseconds per step (median; noise between machines)")
    for name, value in report["ms"].items():
        print(f"  {name:<40} {value:8.1f}")
    if output:
        output.write_text(json.dumps(report, indent=2, ensure_ascii=False))


def run(folder: Path, rounds: int) -> dict:
    """All measurements, as rows of a table."""
    bench = Bench(folder)
    mf = {  # what is compared stands side by side
        "plain DNS(5, 200)": bench.plain("dns"),
        "DNS(5, 200)": bench.ours(sampler="dns", M=5),
        "RecBole BPR": bench.recbole(),
        "DNS(5, 200), pool_block 16": bench.ours(sampler="dns", M=5, pool_block=16),
        "RecBole dynamic 200": bench.recbole(dynamic=200),
        "plain Softmax-v(1, 200)": bench.plain("softmax_v"),
        "Softmax-v(1, 200)": bench.ours(sampler="softmax_v", rho=1.0),
        "Softmax-v(1, 200), pool_block 16": bench.ours(sampler="softmax_v", rho=1.0, pool_block=16),
        "uniform": bench.ours(sampler="uniform"),
    }
    seconds = take_turns(mf, rounds)
    sizes = {f"DNS(5, {N})": bench.ours(sampler="dns", M=5, N=N) for N in (50, 200, 800, 3200)}
    by_N = take_turns(sizes, rounds)
    gcn = {
        "LightGCN DNS(5, 200)": bench.ours("LightGCN", d=64, sampler="dns", M=5),
        "RecBole LightGCN dynamic 200": bench.recbole("LightGCN", d=64, dynamic=200),
    }
    seconds.update(take_turns(gcn, max(3, rounds // 2)))
    items = selection_against_items(rounds)
    memory = peak_memory(folder)

    rows = []

    def at_least(what: str, value: float, least: float) -> None:
        verdict = "ok" if value >= least else "MISSED"
        rows.append(
            row(what, f"{value:.2f} ×" if value < 2 else f"{value:.1f} ×", f"≥ {least:g} ×", verdict)
        )

    def at_most(what: str, value: float, most: float, unit: str = "×") -> None:
        verdict = "ok" if value <= most else "MISSED"
        rows.append(row(what, f"{value:.1f} {unit}", f"≤ {most:g} {unit}", verdict))

    at_least("DNS(5, 200) against plain PyTorch", ratio(seconds, "plain DNS(5, 200)", "DNS(5, 200)"), 20)
    at_least(
        "DNS(5, 200), pool_block 16, against plain PyTorch",
        ratio(seconds, "plain DNS(5, 200)", "DNS(5, 200), pool_block 16"),
        30,
    )
    at_least(
        "DNS(5, 200) against RecBole dynamic, 200 candidates",
        ratio(seconds, "RecBole dynamic 200", "DNS(5, 200)"),
        15,
    )
    at_least("DNS(5, 200) against RecBole's plain BPR", ratio(seconds, "RecBole BPR", "DNS(5, 200)"), 1)
    at_least(
        "Softmax-v(1, 200) against plain PyTorch",
        ratio(seconds, "plain Softmax-v(1, 200)", "Softmax-v(1, 200)"),
        12,
    )
    at_least(
        "LightGCN + DNS(5, 200), d = 64, against RecBole + dynamic 200",
        ratio(seconds, "RecBole LightGCN dynamic 200", "LightGCN DNS(5, 200)"),
        3,
    )
    for small, large in ((50, 200), (200, 800), (800, 3200)):
        growth = ratio(by_N, f"DNS(5, {large})", f"DNS(5, {small})")
        at_most(f"cost of DNS(5, {large}) against DNS(5, {small})", growth, large / small)
    at_most("selection with 1M items against 40k", items[1_000_000] / items[40_000], 3)
    for name, extra in memory.items():
        at_most(f"extra memory of {name}, d = 64", extra, 150, "MB")
    ms = {name: 1e3 * statistics.median(v) for name, v in {**seconds, **by_N}.items()}
    ms.update({f"selection among {n} items": 1e3 * s for n, s in items.items()})
    return {"rows": rows, "ms": ms, "threads": torch.get_num_threads()}


def row(what: str, value: str, line: str, verdict: str) -> dict[str, str]:
    """One line of the table."""
    return {"what": what, "value": value, "line": line, "verdict": verdict}


if __name__ == "__main__":
    main()
