# ruff: noqa: I001  (train_step comes first: it settles the threads)
"""What a step of each sampler costs, as a multiple of a step with uniform negatives.

    python benchmarks/samplers.py [--data gowalladata.mat] [--json result.json] [--rounds 7]

MF on Gowalla-sized data, batches of 4096 positives, d = 32, N = 200 where a method draws candidates
(AdaSIR: pools of 200 resampled from 400 proposals; kernel: its own N = 5). All samplers train in the
same process, in turns; each round is compared with the uniform steps next to it, and the median counts.
A step is everything, as in ``train_step.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import train_step
from train_step import B, Bench, interactions, write_dataset

import torch
import torch.nn.functional as F

# sampler: (settings, the line not to cross)
SAMPLERS = {
    "popularity": ({"sampler": "popularity"}, None),
    "aobpr": ({"sampler": "aobpr"}, 3),
    "warp": ({"sampler": "warp"}, 3),
    "dns": ({"sampler": "dns", "M": 5}, 2.5),
    "pris_u": ({"sampler": "pris_u"}, 2.5),
    "pris_p": ({"sampler": "pris_p"}, 2.5),
    "adasir_u": ({"sampler": "adasir_u", "pool_size": 200, "proposals": 400}, 2.5),
    "adasir_p": ({"sampler": "adasir_p", "pool_size": 200, "proposals": 400}, 2.5),
    "softmax": ({"sampler": "softmax"}, 4),
    "softmax_v": ({"sampler": "softmax_v"}, 4),
    "irgan": ({"sampler": "irgan"}, 8),
    "kernel": ({"sampler": "kernel"}, 15),  # at its own N = 5
}
WITH_BLOCKS = ("dns", "pris_u", "pris_p", "softmax", "softmax_v", "irgan")
for _name in WITH_BLOCKS:
    _settings, _line = SAMPLERS[_name]
    for _block in (16, 64):
        SAMPLERS[f"{_name}, pool_block {_block}"] = ({**_settings, "pool_block": _block}, _line)
# These renew their pools in the first steps of an epoch: only whole epochs are fair.
WHOLE_EPOCHS = ("adasir_u", "adasir_p")


def compare(contestants: dict, rounds: int, budget: float = 0.6) -> dict[str, list[float]]:
    """The cost of each contestant over that of ``uniform``, measured right before and after it."""
    uniform = contestants["uniform"]
    steps = {}
    for name, contestant in contestants.items():
        contestant.seconds(2)  # compiles what is to be compiled, and warms up
        steps[name] = min(max(int(budget / contestant.seconds(3)), 1), len(contestant.train_data))
        if name in WHOLE_EPOCHS:
            steps[name] = len(contestant.train_data)
    ratios = {name: [] for name in contestants if name != "uniform"}
    for _ in range(rounds):
        before = uniform.seconds(steps["uniform"])
        for name in ratios:
            seconds = contestants[name].seconds(steps[name])
            after = uniform.seconds(steps["uniform"])
            ratios[name].append(2 * seconds / (before + after))
            before = after
    return ratios


def products_and_elements(n_items: int, d: int, rounds: int) -> float:
    """Seconds of non-sampling pair by pair: three products of B × items, ℓ and σ of each element.

    A batch that holds a user's pairs together needs the products once per user, so this is no floor.
    """
    rows = 128
    C, V = torch.randn(rows, d), torch.randn(n_items, d)

    def once():
        start = time.perf_counter()
        for _ in range(B // rows):
            scores = C @ V.T
            F.softplus(scores).sum()
            g = scores.sigmoid_()
            g @ V
            g.T @ C
        return time.perf_counter() - start

    return statistics.median([once() for _ in range(rounds)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="gowalladata.mat; generated data of the same size if absent")
    parser.add_argument("--json", help="also write the results to this file")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="a comma-separated part of the list")
    options = parser.parse_args()
    sys.argv[1:] = []  # RecBole's Config reads it by itself
    output = options.json and Path(options.json).absolute()
    chosen = options.only.split(",") if options.only else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dataset(folder, *interactions(options.data))
        os.chdir(folder)
        report = run(Bench(folder), options.rounds, chosen)
    for row in report:
        line = f"≤ {row['line']:g}" if row["line"] else ""
        print(f"{row['sampler']:<42} {row['ratio']:>7.2f}  {line:>6}  {row['verdict']}")
    if output:
        output.write_text(json.dumps(report, indent=2, ensure_ascii=False))


def run(bench: Bench, rounds: int, chosen: list[str] | None) -> list[dict]:
    """All rows of the table."""
    names = [n for n in SAMPLERS if chosen is None or n.partition(",")[0] in chosen]
    contestants = {"uniform": bench.ours(sampler="uniform")}
    contestants.update({name: bench.ours(**SAMPLERS[name][0]) for name in names})
    rows = []
    for name, ratios in compare(contestants, rounds).items():
        ratio, line = statistics.median(ratios), SAMPLERS[name][1]
        verdict = "" if line is None else "ok" if ratio <= line else "MISSED"
        rows.append(row(name, ratio, line, verdict))
    if chosen is None or "non_sampling" in chosen:
        contestant = bench.ours(sampler="non_sampling")
        contestant.seconds(1)
        least = products_and_elements(bench.dataset.item_num, 32, 3)
        seconds = statistics.median([contestant.seconds(1) for _ in range(3)])
        uniform = contestants["uniform"].seconds(100)
        rows.append(row("non_sampling", seconds / uniform, None, ""))
        rows.append(row("non_sampling / its loss pair by pair", seconds / least, None, ""))
        command = [sys.executable, str(Path(train_step.__file__)), "--folder", str(bench.folder)]
        command += ["--memory", json.dumps({"sampler": "non_sampling"})]
        extra = float(subprocess.run(command, check=True, capture_output=True).stdout)
        verdict = "ok" if extra <= 1000 else "MISSED"
        rows.append(row("non_sampling, extra memory in GB", extra / 1000, 1, verdict))
    return rows


def row(sampler: str, ratio: float, line: float | None, verdict: str) -> dict:
    """One line of the table."""
    return {"sampler": sampler, "ratio": ratio, "line": line, "verdict": verdict}


if __name__ == "__main__":
    main()
