"""Checkpoints that survive a kill, and whose reading runs nobody's code.

A run keeps two files: ``X.pth``, the best model, and ``X.last.pth``, all that the next batch depends on.
Both hold tensors and plain data only. Each is written beside the one before, which stays as
``….previous``: whatever moment a run is killed at, one whole file of each is left.
"""

from __future__ import annotations

import itertools
import os
import pickle
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from logging import getLogger
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recbole_hns.errors import Error

FORMAT = 1
LAST, PREVIOUS, CLAIM = ".last.pth", ".previous", ".claim"
# What RecBole finds out about the machine and the launch, and trust, which is given anew each time.
NOT_OF_THE_RUN = {"device", "nproc", "world_size", "ip", "port", "offset", "local_rank", "single_spec"}
NOT_OF_THE_RUN |= {"trust_checkpoint"}
_OF_RECBOLE = {
    "MODEL_TYPE",
    "MODEL_INPUT_TYPE",
    "eval_type",
    "train_neg_sample_args",
    "model",
    "dataset",
}
_NEEDED = ("model", "dataset", "settings", "final")
_ZIP = b"PK\x03\x04"  # torch.save writes an archive; anything else is a bare pickle, or no checkpoint


class Damaged(Error):
    """A file that was a checkpoint once, or half of one."""


# ----------------------------------------------------------------------------------- names


def last_file(best: str | Path) -> Path:
    """Where the run whose best model is in ``best`` keeps its last state."""
    best = Path(best)
    return best if best.name.endswith(LAST) else best.with_name(best.name[: -len(".pth")] + LAST)


def best_file(last: str | Path) -> Path:
    """Where the run whose last state is in ``last`` keeps its best model."""
    last = Path(last)
    return last.with_name(last.name[: -len(LAST)] + ".pth") if last.name.endswith(LAST) else last


def previous_file(file: Path) -> Path:
    """The one before."""
    return file.with_name(file.name + PREVIOUS)


def is_there(file: Path) -> bool:
    """Whether it, or the one before, exists."""
    return file.is_file() or previous_file(file).is_file()


def claim_file(wanted: str | Path) -> Path:
    """The name, or with a number behind it where another run has it: RecBole's end with the second.

    Of runs that begin at once each gets its own: the name is claimed, by a file that must be new, until
    :func:`release_file` is called after the first checkpoint has been written.
    """
    wanted = Path(wanted)
    for n in itertools.count(1):
        file = wanted if n == 1 else wanted.with_name(f"{wanted.stem}-{n}.pth")
        try:
            _claim_of(file).touch(exist_ok=False)
        except FileExistsError:
            continue
        except OSError as error:
            raise _unwritable(file, error) from error
        if not is_there(file) and not is_there(last_file(file)):
            return file
        release_file(file)


def release_file(file: str | Path) -> None:
    """The name has a file now, or is not needed any more."""
    _claim_of(Path(file)).unlink(missing_ok=True)


def _claim_of(file: Path) -> Path:
    return file.with_name(file.name + CLAIM)


def runs_in(folder: Path) -> Iterator[Path]:
    """The last states of the folder's runs, newest first."""
    found = set(folder.glob(f"*{LAST}"))
    found |= {file.with_name(file.name[: -len(PREVIOUS)]) for file in folder.glob(f"*{LAST}{PREVIOUS}")}

    def written(file: Path) -> float:
        return (file if file.is_file() else previous_file(file)).stat().st_mtime

    yield from sorted(found, key=written, reverse=True)


# ----------------------------------------------------------------------------------- writing


def write_checkpoint(content: dict[str, Any], file: str | Path) -> None:
    """Write a file whole or not at all, and keep the one before."""
    content = {key: value for key, value in content.items() if key != "read_from"}
    file = Path(file)
    temporary = file.with_name(file.name + ".tmp")
    try:
        with open(temporary, "wb") as stream:
            torch.save(content, stream)
            stream.flush()
            os.fsync(stream.fileno())
        if file.exists():
            os.replace(file, previous_file(file))
        os.replace(temporary, file)
        _sync_folder(file.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _unwritable(file, error) from error


def _unwritable(file: Path, error: OSError) -> Error:
    return Error(f"checkpoint {file} cannot be written: {error.strerror}.")


def _sync_folder(folder: Path) -> None:
    """Names too are to survive a power cut; not every system can do that."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def use_previous(file: Path) -> None:
    """Put the one before in the place of a damaged file, which must not become the one before."""
    if previous_file(file).is_file():
        os.replace(previous_file(file), file)


def plain_data(value: Any, name: str = "value") -> Any:
    """The value as a checkpoint can hold it: tensors, numbers, strings, lists, dicts."""
    if value is None or isinstance(value, (bool, int, float, str)):
        # np.float64 is a float, but is pickled as NumPy's
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: plain_data(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        items = [plain_data(item, name) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    raise Error(
        f"{name} is a {type(value).__name__}, and checkpoints hold tensors and plain data only: "
        "keep it as a tensor."
    )


def plain_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run, without those of the launch; RecBole's enumerations become strings."""
    return {key: plain_setting(value) for key, value in settings.items() if key not in NOT_OF_THE_RUN}


def plain_setting(value: Any) -> Any:
    """A value as a property file can hold it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): plain_setting(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain_setting(item) for item in value]
    return str(value)


# ----------------------------------------------------------------------------------- reading


def read_checkpoint(
    file: str | Path, device: str | torch.device = "cpu", trust: bool = False
) -> dict[str, Any]:
    """What a file holds; of a damaged one, what the one before holds, with a warning.

    ``read_from`` in it is the file that was really read. ``trust`` allows pickles, RecBole's own
    checkpoints among them, and with them any code that their writer put in.

    Raises:
        Error: if there is no such file, it is no checkpoint, or is a pickle that is not trusted.
    """
    file = Path(file)
    older = previous_file(file)
    try:
        return _read(file, device, trust)
    except Damaged as damage:
        if not older.is_file():
            raise
        content = _read(older, device, trust)
        getLogger().warning(f"{damage} The one before is used, {older}.")
        return content


def _read(file: Path, device: str | torch.device, trust: bool) -> dict[str, Any]:
    try:
        with open(file, "rb") as stream:
            is_archive = stream.read(len(_ZIP)) == _ZIP
    except FileNotFoundError:
        raise Damaged(f"checkpoint {file} does not exist.") from None
    except (OSError, ValueError) as error:  # a folder, no right to read it, no name of a file
        raise Error(f"checkpoint {file} cannot be read: {_reason(error)}.") from error
    if not is_archive and not trust and previous_file(file).is_file():
        raise Damaged(f"checkpoint {file} is damaged.")  # ours are archives
    if is_archive:
        _refuse_damage(file)
    try:
        with warnings.catch_warnings():  # about pickles, which are refused in our own words
            warnings.simplefilter("ignore", UserWarning)
            content = torch.load(file, map_location=device, weights_only=True)
    except pickle.UnpicklingError as error:
        content = _read_pickle(file, device, trust, error)
    except (RuntimeError, EOFError, OSError) as error:
        raise Damaged(f"checkpoint {file} is damaged: {_reason(error)}.") from error
    return {**_checked(content, file), "read_from": str(file)}


def _refuse_damage(file: Path) -> None:
    """torch.load notices what is cut off, but not a bit that has changed: the checksums tell."""
    try:
        with zipfile.ZipFile(file) as archive:
            broken = archive.testzip()
    except (
        zipfile.BadZipFile,
        zlib.error,
        OSError,
        EOFError,
        RuntimeError,
        NotImplementedError,
    ) as error:
        raise Damaged(f"checkpoint {file} is damaged: {_reason(error)}.") from error
    if broken is not None:
        raise Damaged(f"checkpoint {file} is damaged: {broken} is not what was written.")


def _read_pickle(file: Path, device, trust: bool, refusal: Exception) -> Any:
    if not trust:
        raise Error(
            f"checkpoint {file} holds more than tensors and plain data, if it is one at all: a pickle "
            "can run code of whoever wrote it as soon as it is read. RecBole's own checkpoints are "
            "such; add --trust_checkpoint if you know where it comes from."
        ) from refusal
    try:
        return torch.load(file, map_location=device, weights_only=False)
    except (pickle.UnpicklingError, RuntimeError, EOFError, AttributeError, ImportError) as error:
        raise Error(f"checkpoint {file} cannot be read: {_reason(error)}.") from error


def _checked(content: Any, file: Path) -> dict[str, Any]:
    if not isinstance(content, dict) or not isinstance(content.get("state_dict"), dict):
        raise Error(f"{file} is not a checkpoint: there is no model in it.")
    if "format" not in content and "config" in content:
        return _from_recbole(content)
    if content.get("format") != FORMAT or not set(_NEEDED) <= set(content):
        raise Error(
            f"checkpoint {file} has format {content.get('format')}, and this version of recbole-hns "
            f"reads format {FORMAT}."
        )
    return content


def _from_recbole(content: dict[str, Any]) -> dict[str, Any]:
    """RecBole's own checkpoint under our names; ``recbole_config`` is its pickled configuration."""
    config = content.pop("config")
    # Among all its settings, those that were not derived from others.
    chosen = {**config.internal_config_dict, **config.external_config_dict}
    settings = {
        key: config[key]
        for key in chosen
        if key not in NOT_OF_THE_RUN | _OF_RECBOLE and plain_setting(config[key]) == config[key]
    }
    return {
        **content,
        "epoch": content["epoch"] + 1,  # the one to go on with
        "model": config["model"],
        "dataset": config["dataset"],
        "settings": {**settings, "data_path": str(Path(config["data_path"]).parent)},
        "recbole_config": config,
    }


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
