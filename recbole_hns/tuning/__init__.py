"""Searches for settings on Ray Tune: a trial is a run with a reporter and without a test set."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from recbole_hns.bridge.keys import Folder
from recbole_hns.errors import Error
from recbole_hns.files import a_path
from recbole_hns.settings.kinds import convert
from recbole_hns.settings.words import shown
from recbole_hns.tuning.plan import FILE, SearchPlan, make_plan
from recbole_hns.tuning.search import Machines, run_search

__all__ = ["Machines", "SearchPlan", "make_plan", "new_folder", "run_search"]


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
