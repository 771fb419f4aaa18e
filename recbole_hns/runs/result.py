"""``result.json``: everything about a finished run that a report needs."""

from __future__ import annotations

import json
import os
import platform
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from recbole_hns.errors import Error

FORMAT = 1
PACKAGES = ("recbole-hns", "recbole", "torch", "numpy", "numba", "scipy", "pandas", "ray")


def make_result(config, trainer, best_valid_result, test_result, seconds: float) -> dict[str, Any]:
    """The record of a run: configuration, versions, every epoch, the best one, and the test."""
    best = max(
        (row for row in trainer.history if row.get("best")), key=lambda row: row["epoch"], default={}
    )
    return {
        "format": FORMAT,
        "model": config["model"],
        "dataset": config["dataset"],
        "sampler": config.spec.settings,
        "seed": config["seed"],
        "checkpoint": str(trainer.saved_model_file),
        "valid_metric": config["valid_metric"],
        "valid_metric_bigger": config["valid_metric_bigger"],
        "best": {
            "epoch": best.get("epoch"),
            "score": plain(trainer.best_valid_score) if best else None,
            "valid": plain(best_valid_result),
        },
        "test": plain(test_result),
        "epochs": plain(trainer.history),
        "seconds": round(seconds, 3),
        "finished": datetime.now().astimezone().isoformat(timespec="seconds"),
        "versions": versions(),
        "config": plain(config.final_config_dict),
    }


def seconds_of(history: list[dict[str, Any]]) -> float:
    """The time that epochs took."""
    return sum(row["train_seconds"] + row.get("valid_seconds", 0) for row in history)


def versions() -> dict[str, str]:
    """What the run ran on."""
    found = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    found["threads"] = str(torch.get_num_threads())
    return found


def write_result(result: dict[str, Any], folder: str | Path, again: bool = False) -> Path:
    """Write ``result.json`` into a new folder of its own below ``folder``.

    ``again`` is for a run that may have written one before it was resumed: a run has one result.
    """
    name = "-".join([result["model"], result["dataset"], result["sampler"]["sampler"]])
    for file in sorted(Path(folder).glob(f"{name}-*/result.json")) if again else ():
        if json.loads(file.read_text("utf-8")).get("checkpoint") == result["checkpoint"]:
            return write_json(result, file)
    name += datetime.now().strftime("-%Y%m%d-%H%M%S")
    for n in range(1, 10_000):
        own = Path(folder) / (name if n == 1 else f"{name}-{n}")
        try:
            own.mkdir(parents=True)
            break
        except FileExistsError:
            continue
    return write_json(result, own / "result.json")


def write_json(content: Any, file: Path) -> Path:
    """Write a file whole or not at all."""
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(temporary, file)
    return file


def read_result(file: Path) -> dict[str, Any]:
    """A record that :func:`write_result` wrote."""
    try:
        result = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Error(f"{file} cannot be read as a result: {' '.join(str(error).split())}.") from error
    if not isinstance(result, dict) or result.get("format") != FORMAT:
        raise Error(f"{file} is not a result.json of this version of recbole-hns.")
    return result


def plain(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return number if number == number and abs(number) != float("inf") else None
