"""``result.json``: everything about a finished run that a report needs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recbole_hns.errors import Error
from recbole_hns.files import cannot_be_written, write_json
from recbole_hns.training.versions import versions

if TYPE_CHECKING:
    from recbole_hns.bridge.config import LayeredConfig
    from recbole_hns.training.trainer import HNSTrainerMixin

FORMAT = 1


Metrics = Mapping[str, float] | None


def make_result(
    config: LayeredConfig, trainer: HNSTrainerMixin, valid: Metrics, test: Metrics, seconds: float
) -> dict[str, Any]:
    """The record of a run: configuration, versions, every epoch, the best one, and the test."""
    best = max(
        (row for row in trainer.history if row.get("best")), key=itemgetter("epoch"), default=None
    )
    return {
        "format": FORMAT,
        "model": config["model"],
        "dataset": config["dataset"],
        "sampler": config.settings,
        "seed": config["seed"],
        "checkpoint": str(trainer.saved_model_file),
        "valid_metric": config["valid_metric"],
        "valid_metric_bigger": config["valid_metric_bigger"],
        "best": {
            "epoch": best and best["epoch"],
            "score": best and plain(trainer.best_valid_score),
            "valid": plain(valid),
        },
        "test": plain(test),
        "epochs": plain(trainer.history),
        "seconds": round(seconds, 3),
        "finished": datetime.now().astimezone().isoformat(timespec="seconds"),
        "versions": versions(),
        "config": plain(config.final_config_dict),
    }


def write_result(result: dict[str, Any], folder: str | Path, again: bool = False) -> Path:
    """Write ``result.json`` into a new folder of its own below ``folder``.

    ``again`` is for a run that may have written one before it was resumed: a run has one result.
    """
    name = "-".join([result["model"], result["dataset"], result["sampler"]["sampler"]])
    for file in sorted(Path(folder).glob(f"{name}-*/result.json")) if again else ():
        if _checkpoint_in(file) == result["checkpoint"]:
            return write_json(result, file)
    name += datetime.now().strftime("-%Y%m%d-%H%M%S")
    own = _new_folder(Path(folder), name)
    try:
        return write_json(result, own / "result.json")
    except BaseException:
        with suppress(OSError):
            own.rmdir()
        raise


def _new_folder(folder: Path, name: str) -> Path:
    for n in itertools.count(1):
        own = folder / (name if n == 1 else f"{name}-{n}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            own.mkdir()
            return own
        except FileExistsError as error:
            if not folder.is_dir():
                raise cannot_be_written(folder, error) from error
        except OSError as error:
            raise cannot_be_written(own, error) from error
    raise AssertionError  # count() has no end


def _checkpoint_in(file: Path) -> object:
    """What a record says it is of; one that cannot be read is no run's."""
    try:
        return read_result(file).get("checkpoint")
    except Error as error:
        if isinstance(error.__cause__, OSError):  # it may be this run's
            raise
        return None


def read_result(file: Path) -> dict[str, Any]:
    """A record that :func:`write_result` wrote."""
    try:
        result = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
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
