# ruff: noqa: E402, I001  (recbole_hns.runs comes before torch: it settles the threads)
"""Seconds of training until the test set's Recall@50 passes a mark, side by side. Plots and prints.

    recbole-hns convert gowalladata.mat --name=gowalla
    pip install -e ".[bench]"
    python benchmarks/time_to_quality.py [--limit 600] [--json FILE] [--figure FILE] [--only NAME ...]

Everyone trains matrix factorisation with d = 32 on the whole 80 % of Gowalla, one after the other,
on all cores, and is tested after every epoch by the same evaluation. The clock runs while an epoch
trains: to read the data, to compile and to test costs nobody anything. Our settings were chosen on the
validation part (results/). RecBole's and LightFM's were not searched: learning rate and weight decay of
the former are like our uniform's, LightFM has its defaults but for max_sampled. A contestant stops after
its last epoch, or the one in which ``--limit`` seconds have passed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

warnings.filterwarnings("ignore")

import recbole_hns.runs  # noqa: F401
import torch
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.utils import get_model, get_trainer, init_seed
from tqdm import tqdm

from recbole_hns.data.loader import positives_only
from recbole_hns.data.refit import join_validation
from recbole_hns.runs.config import HNSConfig
from recbole_hns.training.trainer import make_trainer
from recbole_hns.training.versions import versions
from train_step import FirstBatches

PAPER = 0.2993  # Softmax-v(ρ, N), table 2
MARKS = (0.20, 0.25, 0.27, 0.29, 0.30)
SHARED = {
    "metrics": ["Recall", "NDCG"],
    "topk": [50],
    "valid_metric": "NDCG@50",
    "show_progress": False,
    "state": "ERROR",
    "seed": 2023,
}
MF = {"embedding_size": 32, "train_batch_size": 4096, "eval_batch_size": 1_048_576}
# Of ours, the winners of the searches in results/gowalla-mf-reg, for uniform of that in gowalla-mf.
OURS = {"learning_rate": 0.01, "lr_step_size": 3, "lr_gamma": 0.6}
DNS = {"M": 10, "N": 600, "reg_weight": 0.02, "pool_block": 64, "epochs": 16}
SOFTMAX_V = {"rho": 1, "N": 200, "reg_weight": 0.055, "pool_block": 16, "epochs": 20}
UNIFORM = {"reg_weight": 0, "weight_decay": 2.5e-7, "epochs": 42, "lr_step_size": 7}
CONTESTANTS = {
    "dns": {"sampler": "dns", **OURS, **DNS},
    "softmax_v": {"sampler": "softmax_v", **OURS, **SOFTMAX_V},
    "uniform": {"sampler": "uniform", **OURS, **UNIFORM},
    "RecBole dynamic": {"candidates": 200, "learning_rate": 0.005, "weight_decay": 5e-7, "epochs": 30},
    "LightFM WARP": {"max_sampled": 200, "learning_rate": 0.05, "epochs": 40},
}


class Bench:
    """One data set, prepared once, and one evaluation for everyone."""

    def __init__(self, dataset: str):
        self.name = dataset
        config = HNSConfig("BPR", dataset, None, SHARED | MF)
        data = create_dataset(config)
        join_validation(data)
        init_seed(config["seed"], True)
        self.train_data, _, self.test_data = data_preparation(config, data)
        self.train_set = self.train_data._dataset

    def quality(self, model: torch.nn.Module) -> tuple[float, float]:
        """Recall@50 and NDCG@50 on the test set."""
        config = HNSConfig("BPR", self.name, None, SHARED | MF)
        trainer = make_trainer(config, model)
        trainer.eval_collector.data_collect(self.train_data)
        result = trainer.evaluate(self.test_data, load_best_model=False)
        return result["recall@50"], result["ndcg@50"]

    def ours(self, **settings) -> Iterator[torch.nn.Module]:
        """A model of our trainer, after every epoch."""
        config = HNSConfig("BPR", self.name, None, SHARED | MF | settings)
        loader = positives_only(config, self.train_data)
        self._trainer(config, loader)._train_epoch(FirstBatches(loader, 1), 0)  # compiles the kernels
        trainer = self._trainer(config, loader)
        yield None
        for epoch in range(config["epochs"]):
            trainer._train_epoch(loader, epoch)
            yield trainer.model

    def _trainer(self, config: HNSConfig, loader):
        init_seed(config["seed"], True)
        trainer = make_trainer(config, config.model_class(config, self.train_set))
        trainer.prepare(loader)
        return trainer

    def recbole(self, candidates: int, **settings) -> Iterator[torch.nn.Module]:
        """A model of RecBole's own trainer with its dynamic negative sampling."""
        drawn = {
            "distribution": "uniform",
            "sample_num": 1,
            "dynamic": True,
            "candidate_num": candidates,
        }
        more = {"train_neg_sample_args": drawn}
        config = Config("BPR", self.name, config_dict=SHARED | MF | settings | more)
        init_seed(config["seed"], True)
        model = get_model("BPR")(config, self.train_set)
        trainer = get_trainer(config["MODEL_TYPE"], "BPR")(config, model)
        loader = type(self.train_data)(config, self.train_set, self.train_data._sampler, shuffle=True)
        loader.get_model(model)
        yield None
        for epoch in range(config["epochs"]):
            trainer._train_epoch(loader, epoch)
            yield model

    def lightfm(self, epochs: int, **settings) -> Iterator[torch.nn.Module]:
        """LightFM's vectors and item biases in a model with one more dimension."""
        from lightfm import LightFM

        matrix = self.train_set.inter_matrix(form="coo")
        theirs = LightFM(32, loss="warp", random_state=SHARED["seed"], **settings)
        config = HNSConfig("BPR", self.name, None, SHARED | MF | {"embedding_size": 33})
        model = config.model_class(config, self.train_set)
        yield None
        for _ in range(epochs):
            theirs.fit_partial(matrix, num_threads=os.cpu_count() or 1)
            with torch.no_grad():
                model.user_embedding.weight[:, :32] = torch.from_numpy(theirs.user_embeddings)
                model.user_embedding.weight[:, 32] = 1
                model.item_embedding.weight[:, :32] = torch.from_numpy(theirs.item_embeddings)
                model.item_embedding.weight[:, 32] = torch.from_numpy(theirs.item_biases)
            yield model

    def contestant(self, name: str) -> Iterator[torch.nn.Module]:
        """The training of a contestant: first nothing, then its model after every epoch."""
        makers = {"RecBole dynamic": self.recbole, "LightFM WARP": self.lightfm}
        return makers.get(name, self.ours)(**CONTESTANTS[name])


def curve(bench: Bench, name: str, limit: float) -> list[dict[str, float]]:
    """Quality against the seconds that training has taken, one point an epoch."""
    training, seconds, points = bench.contestant(name), 0.0, []
    next(training)
    with tqdm(total=CONTESTANTS[name]["epochs"], desc=name) as bar:
        while seconds < limit:
            start = time.perf_counter()
            model = next(training, None)
            if model is None:
                break
            seconds += time.perf_counter() - start
            recall, ndcg = bench.quality(model)
            points.append({"seconds": round(seconds, 2), "recall@50": recall, "ndcg@50": ndcg})
            bar.set_postfix(seconds=f"{seconds:.0f}", recall=f"{recall:.4f}")
            bar.update()
    return points


def passed(points: list[dict[str, float]], mark: float) -> float | None:
    """Seconds until the mark was first passed."""
    return next((point["seconds"] for point in points if point["recall@50"] > mark), None)


def table(curves: dict[str, list[dict[str, float]]]) -> str:
    """Seconds to every mark, and the best that was seen."""
    lines = ["| seconds to Recall@50 of | " + " | ".join(f"{m:.2f}" for m in MARKS) + " | best seen |"]
    lines.append("| --- |" + " ---: |" * (len(MARKS) + 1))
    for name, points in curves.items():
        times = [passed(points, mark) for mark in MARKS]
        best = max(points, key=lambda point: point["recall@50"])
        cells = ["never" if t is None else f"{t:.1f}" for t in times]
        cells.append(f"{best['recall@50']:.4f} after {best['seconds']:.0f} s")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(curves: dict[str, list[dict[str, float]]], file: Path) -> None:
    """Quality against time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for n, (name, points) in enumerate(curves.items()):
        x, y = [p["seconds"] for p in points], [p["recall@50"] for p in points]
        axes.plot(x, y, marker="osD^v"[n % 5], markersize=4, label=name)
    axes.axhline(PAPER, color="0.6", linestyle=":", linewidth=1)
    axes.text(
        0.01, PAPER, f"the paper's best, {PAPER}", transform=axes.get_yaxis_transform(), va="bottom"
    )
    axes.set(xscale="log", xlabel="seconds of training", ylabel="Recall@50 (test)")
    axes.set_title("MF, d = 32, on Gowalla")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower center")
    figure.savefig(file, dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="gowalla", help="as recbole-hns convert made it (gowalla)")
    parser.add_argument("--limit", type=float, default=600, help="seconds of training for each (600)")
    parser.add_argument("--json", type=Path, help="also write the curves to this file")
    parser.add_argument("--figure", type=Path, help="also plot the curves")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, help="these contestants alone")
    options = parser.parse_args()
    sys.argv[1:] = []
    bench = Bench(options.dataset)
    curves = {name: curve(bench, name, options.limit) for name in options.only or CONTESTANTS}
    print(table(curves))
    record = {"settings": CONTESTANTS, "curves": curves, "versions": versions()}
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    if options.figure:
        plot(curves, options.figure)


if __name__ == "__main__":
    main()
