"""The winner of a search, tested."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import torch


def run_winner(
    plan, searched: dict[str, Any], seed: int, folder: str, start: str, threads: int
) -> dict[str, Any]:
    """A whole run with one seed; the result of an earlier, finished one is taken as it is."""
    from recbole_hns.bridge.config import split_seed
    from recbole_hns.runs.run import run_recbole_hns

    own = Path(folder) / f"seed-{seed}"
    done = sorted(own.glob("*/result.json"))
    if not done:
        os.chdir(start)
        torch.set_num_threads(threads)
        logging.getLogger().setLevel(logging.ERROR)
        # RecBole splits the data by the run's seed: the split stays that of the search. A result names
        # no place of this machine, so that a folder of results can be given away.
        settings = {
            **plan.settings,
            **searched,
            "seed": seed,
            "split_seed": split_seed(plan.config()),
            "result_dir": os.path.relpath(own, start),
            "checkpoint_dir": os.path.relpath(own / "saved", start),
            "show_progress": False,
            "state": "ERROR",
        }
        own.mkdir(parents=True, exist_ok=True)
        run_recbole_hns(plan.model, plan.dataset, config_dict=settings)
        done = sorted(own.glob("*/result.json"))
    return json.loads(done[0].read_text("utf-8"))
