"""The configuration of a checkpoint's run: for ``--resume``, evaluation and recommendation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from recbole.model.abstract_recommender import AbstractRecommender

from recbole_hns.bridge.config import MODEL_ALIASES, LayeredConfig
from recbole_hns.bridge.keys import PathText, normal
from recbole_hns.errors import Error
from recbole_hns.files import a_path
from recbole_hns.runs.config import HNSConfig
from recbole_hns.settings.dialect import parse_value, read_command_line, read_yaml
from recbole_hns.settings.kinds import convert
from recbole_hns.settings.layers import Layer
from recbole_hns.settings.words import shown
from recbole_hns.training.checkpoint import Content, read_checkpoint
from recbole_hns.training.plain import NOT_OF_THE_RUN, plain_setting, plain_settings
from recbole_hns.training.run_files import LAST, held, is_there, last_file, runs_in

C = TypeVar("C", bound=LayeredConfig)

# Settings that change nothing that is computed, or only how long.
FREE = {"epochs", "stopping_step", "show_progress", "state", "checkpoint_dir", "result_dir"}
FREE |= {"data_path", "gpu_id", "worker", "log_wandb", "wandb_project"}
# What RecBole's configuration derives from other settings, and trust, which is given anew each time.
DERIVED = {"MODEL_TYPE", "MODEL_INPUT_TYPE", "eval_type", "train_neg_sample_args", "model", "dataset"}
DERIVED |= {"valid_neg_sample_args", "test_neg_sample_args", "valid_metric_bigger", "data_path"}


def newest_unfinished(where: str | Path, trust: bool = False) -> Path:
    """The last state of a folder's newest run that has not been tested."""
    convert("resume", str(where), PathText)
    folder = a_path(where)
    if not folder.is_dir():
        raise Error(f"there is no folder {folder} with a run to go on from: name its ….last.pth.")
    for file in runs_in(folder):
        if not read_checkpoint(file, trust=trust).get("finished"):
            return file
    raise Error(f"there is no run that is not finished in {folder}: no ….last.pth to go on from.")


@contextmanager
def held_run(where: str | Path, trust: bool = False) -> Iterator[tuple[Content, Path]]:
    """The state to go on from, and its file: a file of the run, or the newest run of a folder.

    No other process goes on with it as long as ``with`` lasts.
    """
    with ExitStack() as stack:
        file = _run_of(where)
        if file.name.endswith(LAST) and is_there(file):
            stack.enter_context(held(file))
        yield read_checkpoint(file, trust=trust), file


def _run_of(where: str | Path) -> Path:
    """The file of a run, which is named by either of its files or its folder."""
    convert("resume", str(where), PathText)
    where = a_path(where)
    if where.is_dir():
        newest = next(runs_in(where), None)
        if newest is None:
            raise Error(f"there is no run in {where}: no ….last.pth to go on from.")
        return newest
    return last_file(where) if where.suffix == ".pth" and is_there(last_file(where)) else where


def decided(state: Content) -> dict[str, Any]:
    """All settings that a checkpoint's run had, so that defaults of today do not matter."""
    settings: dict[str, Any] = state["settings"]
    if "final" not in state:  # RecBole's own
        return {key: value for key, value in settings.items() if key not in NOT_OF_THE_RUN}
    final = {k: v for k, v in state["final"].items() if k not in DERIVED | NOT_OF_THE_RUN}
    return {**final, **({"data_path": settings["data_path"]} if "data_path" in settings else {})}


def rebuild_config(
    state: Content,
    file: Path,
    model: str | type[AbstractRecommender] | None = None,
    dataset: str | None = None,
    config_file_list: Sequence[str] | None = None,
    config_dict: dict[str, Any] | None = None,
    command_line: Sequence[str] = (),
    free: frozenset[str] | set[str] = frozenset(),
    config_class: type[C] = HNSConfig,
) -> C:
    """The configuration of a checkpoint's run; what is given besides must not contradict it.

    ``free`` are settings that may be given anew beside those of :data:`FREE`.
    """
    free = FREE | set(free)
    name = model.__name__ if isinstance(model, type) else MODEL_ALIASES.get(model or "", model)
    known = {**state["settings"], **state.get("final", {}), "model": state["model"]}
    known["dataset"] = state["dataset"]
    given = {"model": name, "dataset": dataset, **_given(config_file_list, config_dict, command_line)}
    for key, value in given.items():
        # RecBole completes mappings, such as eval_args: these are compared below.
        if key in known and key not in free and value is not None and not isinstance(value, dict):
            _refuse_another(file, key, known[key], value)
    with _own_classes_named(state, file):
        config = config_class(
            model or state["model"],
            state["dataset"],
            config_file_list,
            config_dict,
            command_line,
            below=Layer(str(file), {**decided(state), **_own_places(state, file)}),
        )
    saved, now = state.get("final", {}).get("result_dir"), config["result_dir"]
    if config_class is HNSConfig and saved != now and "result_dir" not in given:
        config.notes.append(
            f"result_dir={shown(saved)} of {file} is outside of this folder: the result goes to {now}, or "
            "to the --result_dir that you give."
        )
    if "final" in state:  # what the version that wrote it did not know was as it is by default
        now = plain_settings(config.final_config_dict)
        for key, saved in {**config.known.values, **state["final"]}.items():
            if key not in free and (key in state["final"] or key in given) and key in now:
                _refuse_another(file, key, saved, now[key])
    return config


def _own_places(state: Content, file: Path) -> dict[str, Any]:
    """Where a run that goes on writes: beside its file, and never where that file alone says.

    Its own ``result_dir`` is kept if it is nowhere, or in the folder that one works in.
    """
    saved = state.get("final", {}).get("result_dir", "results")
    inside = isinstance(saved, str) and a_path(saved).resolve().is_relative_to(Path.cwd().resolve())
    return {
        "checkpoint_dir": str(file.parent),
        "result_dir": saved if inside or saved is None else "results",
    }


@contextmanager
def _own_classes_named(state: Content, file: Path) -> Iterator[None]:
    """Say what to do with a run of a model class that RecBole does not know."""
    try:
        yield
    except Error as error:
        if f"model={state['model']} is unknown" not in str(error):
            raise
        raise Error(
            f"{file} is of {state['model']}, a model class of your own: use it in Python, where "
            "model=… takes the class."
        ) from error


def _refuse_another(file: Path, key: str, saved: object, value: object) -> None:
    """Refuse a setting that is not the run's."""
    value = plain_setting(normal(key, value))
    # RecBole makes lists of single values.
    if value != saved and [value] != saved:
        raise Error(
            f"{key}={value} contradicts {file}, which was trained with {key}={saved}: leave it out, or "
            "start a run of its own."
        )


def _given(
    files: Sequence[str] | None, config_dict: dict[str, Any] | None, command_line: Sequence[str]
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for file in files or ():
        given.update(read_yaml(file))
    if given.get("loss_type") == "CE":  # which a configuration reads as the run's did
        del given["loss_type"]
    for key, value in (config_dict or {}).items():
        given[key] = parse_value(value) if isinstance(value, str) else value
    return {**given, **read_command_line(command_line)}
