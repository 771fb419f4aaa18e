# ruff: noqa: I001  (recbole_hns.runs comes before torch: it settles the threads)
"""What a search costs beyond the training in it.

    python benchmarks/tune.py [--epochs 15]

Twelve trials of MF with DNS on ml-100k, two at a time on two cores. The bare time is that of the same
twelve trainings, two at a time in two processes without Ray, with one thread each and nothing written.
The search is timed from when Ray's workers have loaded the libraries until the last trial is done.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import recbole_hns.runs  # noqa: F401
import ray
import torch

from recbole_hns.runs.pipeline import make_ready
from recbole_hns.runs.run import finish
from recbole_hns.tuning.plan import SearchPlan, make_plan
from recbole_hns.tuning.search import run_search, search_parts

MOST = 1.25
GRID = {"M": [1, 2, 5, 20], "learning_rate": [0.0005, 0.001, 0.002]}
QUIET = {"result_dir": None, "show_progress": False, "state": "ERROR"}


def bare_training(part: int, settings: dict, start, times) -> None:
    """Every second training of the grid, one by one; data and models are made outside the clock."""
    torch.set_num_threads(1)
    os.chdir(tempfile.mkdtemp())
    plan = make_grid(settings)
    parts = search_parts(plan.config())
    points = [{**point, **QUIET} for point in plan.points()[part::2]]
    first = plan.config({**points[0], "epochs": 1})
    finish(first, make_ready(first, parts), saved=False)  # compiles and warms up
    configs = [plan.config(point) for point in points]
    trainings = [(config, make_ready(config, parts)) for config in configs]
    start.wait()
    begin = time.perf_counter()
    for config, ready in trainings:
        finish(config, ready, saved=False)
    times.put(time.perf_counter() - begin)


def bare_seconds(settings: dict) -> float:
    """Two processes at once, as the search has them: the mean of their times."""
    context = torch.multiprocessing.get_context("spawn")
    start, times = context.Barrier(2), context.SimpleQueue()
    workers = [context.Process(target=bare_training, args=(n, settings, start, times)) for n in (0, 1)]
    for worker in workers:
        worker.start()
    seconds = [times.get(), times.get()]
    for worker in workers:
        worker.join()
    return sum(seconds) / 2


def make_grid(settings: dict) -> SearchPlan:
    """The plan of the search."""
    return make_plan("MF", "ml-100k", settings, GRID, seeds=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    options = parser.parse_args()
    sys.argv[1:] = []
    settings = {"sampler": "dns", "epochs": options.epochs, "valid_metric": "NDCG@10"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        before = bare_seconds(settings)
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        summary = run_search(make_grid(settings), Path("search"), progress=False)
        ray.shutdown()
        bare = (before + bare_seconds(settings)) / 2
        os.chdir("/")
    ratio = summary["search_seconds"] / bare
    print(f"bare training, two at a time    {bare:6.1f} s")
    print(f"search, two at a time           {summary['search_seconds']:6.1f} s")
    print(f"before that, workers start      {summary['startup_seconds']:6.1f} s")
    verdict = "ok" if ratio <= MOST else "MISSED"
    print(f"search / bare                   {ratio:6.2f} ×   ≤ {MOST} ×  {verdict}")


if __name__ == "__main__":
    main()
