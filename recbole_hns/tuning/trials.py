"""The trials of a search as rows, and the best of them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recbole_hns.errors import Error
from recbole_hns.files import whole_file
from recbole_hns.settings.dialect import to_yaml
from recbole_hns.settings.words import as_cell
from recbole_hns.tuning.plan import ModelClass, SearchPlan
from recbole_hns.tuning.space import Space
from recbole_hns.tuning.study import Line, Reports, folder_of, name_of

Row = dict[str, Any]

# What a run's machine and folders decide, and no result.
_ELSEWHERE = {"data_path", "checkpoint_dir", "result_dir", "show_progress", "state", "gpu_id", "worker"}


def rows_of(plan: SearchPlan, folder: Path, bigger: bool, errors: Mapping[str, str]) -> list[Row]:
    """A row for each trial: the best score, with the settings that made it."""
    return [
        _row(plan, start, Reports.read(folder_of(folder, name)), bigger, errors.get(name))
        for name, start in starts(plan).items()
    ]


def starts(plan: SearchPlan) -> dict[str, dict[str, Any]]:
    """The settings that trials begin with, by name."""
    return {name_of(number): settings for number, settings in enumerate(plan.points())}


def _row(
    plan: SearchPlan, start: dict[str, Any], reports: Reports, bigger: bool, error: str | None
) -> Row:
    best = reports.best(bigger)
    settings = start if best is None else best["settings"]
    row: Row = {key: settings[key] for key in plan.space}
    row["status"] = "done" if error is None else "failed"
    row["best_score"] = None if best is None else best["score"]
    row["best_epoch"] = None if best is None else best["epoch"] - 1
    trained = max((line["epoch"] for line in reports.lines), default=0)
    row.setdefault("epochs", trained)  # where they are searched, what was asked for
    row["seconds"] = round(sum(line["seconds"] for line in reports.lines), 3)
    row.update({f"valid {name}": v for name, v in ({} if best is None else best["valid"]).items()})
    row["changes"] = changes(reports.lines)
    row["reason"] = error or ""
    return row


def changes(lines: list[Line]) -> str:
    """How settings changed while a trial trained: ``M=10 to epoch 3, M=2 to epoch 9``."""
    told, before = [], None
    for line, after in zip(lines, [*lines[1:], None]):
        if after is None or after["settings"] != line["settings"]:
            now = line["settings"]
            differs = {k: v for k, v in now.items() if before is None or before.get(k) != v}
            text = " ".join(
                f"{k}={v:.5g}" if isinstance(v, float) else f"{k}={v}" for k, v in differs.items()
            )
            told.append(f"{text} to epoch {line['epoch'] - 1}")
            before = now
    return ", ".join(told) if len(told) > 1 else ""


def _setting(item: tuple[str, Any]) -> str:
    key, value = item
    return f"{key}={value:.5g}" if isinstance(value, float) else f"{key}={value}"


def best_trial(rows: list[Row], bigger: bool) -> Row:
    """The trial with the best validation score among those that did not fail."""
    scored = [row for row in rows if row["status"] != "failed" and row["best_score"] is not None]
    if not scored:
        reasons = sorted({row["reason"] for row in rows if row["reason"]})
        raise Error(f"every trial failed: {'; '.join(reasons) or 'see the folder of the search'}.")
    return (max if bigger else min)(scored, key=lambda row: row["best_score"])


def at_an_end(best: Mapping[str, Any], space: Space) -> list[str]:
    """The settings of the winner beyond which nothing was tried."""
    return [key for key, domain in space.items() if domain.is_end(best[key])]


def write_rows(rows: list[Row], keys: list[str], file: Path) -> None:
    """All trials, one line each."""
    columns = list(dict.fromkeys([*keys, *(key for row in rows for key in row)]))
    columns = [key for key in columns if key != "changes" or any(row["changes"] for row in rows)]
    with whole_file(file, newline="") as out:
        writer = csv.DictWriter(out, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows({key: as_cell(value) for key, value in row.items()} for row in rows)


def write_best(plan: SearchPlan, best: Mapping[str, Any], file: Path, model: ModelClass | None) -> None:
    """The winner as a property file: everything that RecBole's own defaults do not decide."""
    config = plan.config(best, model)
    own = {key for key, origin in config.known.origins.items() if origin != "RecBole's defaults"}
    own |= set(config.given.values)
    final = config.final_config_dict
    settings = {key: final[key] for key in sorted(own - _ELSEWHERE) if key in final}
    settings.update({k: v for k, v in config.settings.items() if k != "hns_backend"})
    text = f"# The best of a search on {plan.dataset} with {plan.model}, by validation.\n"
    with whole_file(file) as out:
        out.write(text + to_yaml(settings))
