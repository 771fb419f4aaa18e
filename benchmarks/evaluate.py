# ruff: noqa: E402, I001  (recbole_hns.runs comes before torch: it settles the threads)
"""What OPAUC costs in an evaluation, side by side with RecBole's own metrics. Prints ratios.

    python benchmarks/evaluate.py [--data gowalladata.mat] [--json result.json] [--rounds 3]

A trained-like MF model ranks all items for every user of a Gowalla-sized test set (205,106 positives),
by RecBole's own full-sort evaluation, with different metrics asked for, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import recbole_hns.runs  # noqa: F401
import numpy as np
import torch
from recbole.data import create_dataset, data_preparation
from recbole.utils import init_seed

from recbole_hns.runs.config import HNSConfig
from recbole_hns.training.trainer import make_trainer
from train_step import interactions, row

METRICS = {
    "Recall, NDCG": ["Recall", "NDCG"],
    "Recall, NDCG, OPAUC at four β": ["Recall", "NDCG", "OPAUC"],
    "GAUC": ["GAUC"],
}


def write_dataset(folder: Path, users: np.ndarray, items: np.ndarray) -> None:
    """All interactions as training and test parts, a fifth of each user's for the test."""
    rng = np.random.default_rng(1)
    in_test = rng.random(len(users)) < 0.2
    target = folder / "bench"
    target.mkdir()
    for part, kept in (("train", ~in_test), ("valid", in_test), ("test", in_test)):
        rows = np.stack([users[kept], items[kept]], axis=1)
        header = "user_id:token\titem_id:token"
        np.savetxt(target / f"bench.{part}.inter", rows, "%d", "\t", header=header, comments="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="gowalladata.mat; generated data of the same size if absent")
    parser.add_argument("--json", help="also write the results to this file")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    sys.argv[1:] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = options.data and os.path.abspath(options.data)
        os.chdir(folder)
        write_dataset(folder, *interactions(data, share=1.0))
        report = run(folder, options.rounds)
    for line in report["rows"]:
        print(f"{line['what']:<64} {line['value']:>9} {line['line']:>10} {line['verdict']}")
    for what, seconds in report["seconds"].items():
        print(f"  {what:<40} {seconds:6.2f} s")
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2, ensure_ascii=False))


def run(folder: Path, rounds: int) -> dict:
    """Evaluate in turns and compare medians of paired ratios."""
    trainers, test_data = {}, None
    for name, metrics in METRICS.items():
        settings = {
            "data_path": str(folder),
            "benchmark_filename": ["train", "valid", "test"],
            "checkpoint_dir": str(folder / "saved"),
            "metrics": metrics,
            "valid_metric": {"GAUC": "GAUC"}.get(name, "NDCG@10"),
            "topk": [10, 50],
            "show_progress": False,
            "state": "ERROR",
        }
        config = HNSConfig("BPR", "bench", config_dict=settings)
        if test_data is None:
            train_data, _, test_data = data_preparation(config, create_dataset(config))
        init_seed(0, True)
        model = config.model_class(config, train_data._dataset)
        for table in (model.user_embedding, model.item_embedding):
            torch.nn.init.normal_(table.weight, std=0.3)
        trainers[name] = make_trainer(config, model)
    seconds = {name: [] for name in trainers}
    for turn in range(rounds + 1):
        for name, trainer in trainers.items():
            if name == "GAUC" and turn != 1:
                continue  # it takes more than a minute: once is enough
            start = time.perf_counter()
            trainer.evaluate(test_data, load_best_model=False)
            if turn:  # the first warms up
                seconds[name].append(time.perf_counter() - start)
    plain, ours, gauc = seconds.values()
    cost = statistics.median(o / p for o, p in zip(ours, plain))
    faster = gauc[0] / statistics.median(ours)
    rows = [
        row(
            "with OPAUC against RecBole's Recall and NDCG alone",
            f"{cost:.2f} ×",
            "≤ 1.2 ×",
            _ok(cost <= 1.2),
        ),
        row(
            "RecBole's GAUC alone against Recall, NDCG and OPAUC",
            f"{faster:.1f} ×",
            "≥ 5 ×",
            _ok(faster >= 5),
        ),
    ]
    return {"rows": rows, "seconds": {name: statistics.median(s) for name, s in seconds.items()}}


def _ok(holds: bool) -> str:
    return "ok" if holds else "MISSED"


if __name__ == "__main__":
    main()
