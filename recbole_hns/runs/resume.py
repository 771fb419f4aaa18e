"""``--resume``: which run goes on, and with which settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recbole_hns.bridge.allowed import PATH
from recbole_hns.bridge.config import MODEL_ALIASES, HNSConfig, read_command_line, read_yaml
from recbole_hns.errors import Error
from recbole_hns.training.checkpoint import (
    is_there,
    last_file,
    plain_setting,
    plain_settings,
    read_checkpoint,
    runs_in,
)

# Settings that change nothing that is computed, or only how long.
FREE = {"epochs", "stopping_step", "show_progress", "state", "checkpoint_dir", "result_dir"}
FREE |= {"data_path", "gpu_id", "worker", "log_wandb", "wandb_project", "trust_checkpoint"}


def find_run(where: str | Path, trust: bool = False, unfinished: bool = False) -> tuple[dict, Path]:
    """The state to go on from, and its file: a file of the run, or the newest run of a folder."""
    PATH.check("resume", str(where))
    where = Path(where)
    if where.is_dir():
        for file in runs_in(where):
            state = read_checkpoint(file, trust=trust)
            if not (unfinished and state.get("finished")):
                return state, file
        kind = "run that is not finished" if unfinished else "run"
        raise Error(f"there is no {kind} in {where}: no ….last.pth to go on from.")
    if unfinished:
        raise Error(f"there is no folder {where} with a run to go on from: name its ….last.pth.")
    file = last_file(where) if where.suffix == ".pth" and is_there(last_file(where)) else where
    return read_checkpoint(file, trust=trust), file


def read_given(
    config_file_list: Sequence[str] | None,
    config_dict: dict[str, Any] | None,
    command_line: Sequence[str],
) -> dict[str, Any]:
    """All that the user gives beside a checkpoint, later layers over earlier ones."""
    given: dict[str, Any] = {}
    for file in config_file_list or ():
        given.update(read_yaml(file))
    return {**given, **(config_dict or {}), **read_command_line(command_line)}


def rebuild_config(
    state: dict[str, Any],
    file: Path,
    model: Any = None,
    dataset: str | None = None,
    given: dict[str, Any] | None = None,
    free: frozenset[str] | set[str] = frozenset(),
) -> HNSConfig:
    """The configuration of a checkpoint's run; what is given besides must not contradict it.

    ``free`` are settings that may be given anew beside those of :data:`FREE`.
    """
    given = dict(given or {})
    free = FREE | set(free)
    name = model.__name__ if isinstance(model, type) else MODEL_ALIASES.get(model, model)
    known = {**state["settings"], **state.get("final", {}), "model": state["model"]}
    known["dataset"] = state["dataset"]
    for key, value in {"model": name, "dataset": dataset, **given}.items():
        is_recboles_default = "final" not in state and key not in known
        if value is None or key in free or is_recboles_default:
            continue
        saved = known.get(key)
        # RecBole makes lists of single values.
        if plain_setting(value) != saved and [plain_setting(value)] != saved:
            raise _contradiction(file, key, saved, value)
    try:
        config = HNSConfig(
            model or state["model"], state["dataset"], None, {**state["settings"], **given}
        )
    except Error as error:
        if f"model={state['model']} is unknown" in str(error):
            raise Error(
                f"{file} is of {state['model']}, a model class of your own: use it in Python, where "
                "model=… takes the class."
            ) from error
        raise
    if "final" in state:
        now = plain_settings(config.final_config_dict)
        for key, saved in state["final"].items():
            if key not in free and now.get(key, saved) != saved:
                raise _contradiction(file, key, saved, now[key])
    return config


def _contradiction(file: Path, key: str, saved: Any, value: Any) -> Error:
    return Error(
        f"{key}={value} contradicts {file}, which was trained with {key}={saved}: leave it out, or "
        "start a run of its own."
    )
