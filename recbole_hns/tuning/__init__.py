"""Searches for settings on Ray Tune: a trial is a run with a reporter and without a test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from recbole_hns.bridge.keys import Folder
from recbole_hns.errors import Error
from recbole_hns.files import a_path
from recbole_hns.settings.kinds import convert
from recbole_hns.settings.words import shown
from recbole_hns.tuning.plan import FILE, ModelClass, SearchPlan, make_plan
from recbole_hns.tuning.search import HERE, Machines, run_search

__all__ = ["Machines", "SearchPlan", "make_plan", "new_folder", "run_search", "tune"]


def tune(
    model: str | ModelClass,
    dataset: str,
    settings: Mapping[str, Any],
    search: object = None,
    config_files: Sequence[str | Path] = (),
    storage: str | Path = "tuning",
    name: str | None = None,
    machines: Machines = HERE,
    progress: bool = True,
    trust: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """A new search, in a folder of its own; returns its summary, with the folder."""
    plan = make_plan(model, dataset, settings, search, config_files, **options)
    folder = new_folder(plan, Path(storage), name)
    own = model if isinstance(model, type) else None
    summary = run_search(plan, folder, machines, progress, own, trust)
    return {**summary, "folder": str(folder)}


def new_folder(plan: SearchPlan, storage: Path, name: str | None = None) -> Path:
    """Where a search is to write; nothing is there yet."""
    storage = a_path(storage)
    if name is None:
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
        sampler = plan.typed.get("sampler", "samplers")
        name = f"{plan.model}-{plan.dataset}-{sampler}-{stamp}"
    elif Path(name).name != name or name in ("", ".."):
        raise Error(f"name={shown(name)} is not allowed: it is the name of a folder in {storage}.")
    folder = storage / name
    convert("storage", str(folder), Folder)
    if (folder / FILE).exists():
        raise Error(
            f"{folder} holds a search already: go on by --resume={folder}, or give another --name."
        )
    return folder
