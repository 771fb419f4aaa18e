"""Records of runs that never ran, cut down to what a report reads."""

import json
from pathlib import Path


def record(
    sampler, seed, test, score=0.1, dataset="d", model="BPR", config=None, valid="NDCG@10", **settings
):
    """A run's record; ``test`` is None for a trial of a search, which has validation only."""
    validated = {name: value / 2 for name, value in (test or {valid.lower(): score}).items()}
    return {
        "format": 1,
        "model": model,
        "dataset": dataset,
        "sampler": {"sampler": sampler, **settings, "hns_backend": "auto"},
        "seed": seed,
        "valid_metric": valid,
        "valid_metric_bigger": True,
        "best": {"epoch": 3, "score": score, "valid": validated},
        "test": test,
        "epochs": [],
        "seconds": 1.0,
        "config": {"learning_rate": 0.001, "weight_decay": 0.0, **(config or {})},
    }


def write_run(folder, *arguments, **settings):
    """The record in a folder of its own below ``folder``."""
    folder = Path(folder)
    folder = folder / f"run-{len(list(folder.glob('run-*'))):03}"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(record(*arguments, **settings)))


def write_seeds(folder, sampler, values, metric="ndcg@10", first_seed=0, **settings):
    """A run for every value, with seeds that count up."""
    for seed, value in enumerate(values, first_seed):
        write_run(folder, sampler, seed, {metric: value}, valid=metric, **settings)


def table_rows(folder="out"):
    """The rows of the table that was written, by method, and the text below them."""
    lines = (Path(folder) / "table.md").read_text("utf-8").splitlines()
    rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if line[:1] == "|"
    ]
    return {row[0]: row[1:] for row in rows}, "\n".join(line for line in lines if line[:1] != "|")
