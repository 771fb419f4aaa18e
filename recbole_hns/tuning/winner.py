"""The winner of a search, tested."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from recbole_hns.bridge.config import split_seed
from recbole_hns.runs.result import read_result
from recbole_hns.runs.run import train_and_test
from recbole_hns.tuning.study import Study

Record = dict[str, Any]


def run_winner(study: Study, searched: Mapping[str, Any], seed: int, kind: str) -> Record:
    """A whole run with one seed; the result of an earlier, finished one is taken as it is."""
    own = Path(study.folder) / kind / f"seed-{seed}"
    done = sorted(own.glob("*/result.json"))
    if not done:
        study.enter()
        # RecBole splits the data by the run's seed: the split stays that of the search. A result names
        # no place of this machine, so that a folder of results can be given away.
        settings = {
            **searched,
            "seed": seed,
            "split_seed": split_seed(study.plan.config(model=study.model)),
            "result_dir": os.path.relpath(own, study.start),
            "checkpoint_dir": os.path.relpath(own / "saved", study.start),
            "show_progress": False,
            "state": "ERROR",
        }
        own.mkdir(parents=True, exist_ok=True)
        train_and_test(study.plan.config(settings, study.model))
        done = sorted(own.glob("*/result.json"))
    return read_result(done[0])


def test_winner(
    study: Study,
    searched: Mapping[str, Any],
    kinds: Mapping[str, Mapping[str, Any]],
    cpus: float,
    gpus: float,
    progress: bool,
) -> dict[str, list[Record]]:
    """Train the winner anew with several seeds, and look at the test set for the first time.

    ``kinds`` maps names to settings beside those of the search; the runs of a kind go to its folder.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    first = study.plan.config(model=study.model)["seed"]
    # A run reads the data set itself, which is surely here.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    needs: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus, "scheduling_strategy": here}
    task = ray.remote(max_retries=3, **needs)(run_winner)
    handed = ray.put(study)
    kind_of = {
        task.remote(handed, {**searched, **more}, first + n, kind): kind
        for kind, more in kinds.items()
        for n in range(study.plan.seeds)
    }
    tests: dict[str, list[Record]] = {kind: [] for kind in kinds}
    waiting = list(kind_of)
    with tqdm(total=len(waiting), desc="testing the winner", disable=not progress) as bar:
        while waiting:
            done, waiting = ray.wait(waiting)
            for one in done:
                tests[kind_of[one]].append(ray.get(one))
            bar.update(len(done))
    return {kind: sorted(found, key=lambda test: test["seed"]) for kind, found in tests.items()}


def summarise(tests: list[Record]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation of every metric over the seeds."""
    names = tests[0]["test"] if tests else ()
    values = {name: [test["test"][name] for test in tests] for name in names}
    return {
        name: {
            "mean": statistics.fmean(column),
            "std": statistics.stdev(column) if len(column) > 1 else 0.0,
        }
        for name, column in values.items()
    }
