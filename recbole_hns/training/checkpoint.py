"""Checkpoints that survive a kill, and whose reading runs nobody's code.

A run keeps two files, the best model and all that the next batch depends on (:mod:`.run_files` has their
names). Both hold tensors and plain data only. Each is written beside the one before, which stays as
``….previous``: whatever moment a run is killed at, one whole file of each is left.
"""

from __future__ import annotations

import pickle
import struct
import warnings
import zipfile
import zlib
from logging import getLogger
from pathlib import Path
from typing import IO, Any, cast

import torch

from recbole_hns.errors import Error
from recbole_hns.files import Watched, whole_file
from recbole_hns.settings.words import shown
from recbole_hns.training.content import refuse_wrong_kinds
from recbole_hns.training.plain import NOT_OF_THE_RUN, plain_setting
from recbole_hns.training.run_files import previous_file

FORMAT = 1
Content = dict[str, Any]  # of a checkpoint

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


def write_checkpoint(content: Content, file: str | Path) -> None:
    """Write a file whole or not at all, and keep the one before."""
    content = {key: value for key, value in content.items() if key != "read_from"}
    file = Path(file)
    with whole_file(file, "wb", keep=previous_file(file)) as stream:
        watched = Watched(stream)
        try:
            torch.save(content, watched)
        except RuntimeError as error:  # torch's own, about what the system's error led to
            if watched.error is not None:
                raise watched.error from error
            raise


def read_checkpoint(
    file: str | Path, device: str | torch.device = "cpu", trust: bool = False, exactly: bool = False
) -> Content:
    """What a file holds; of a damaged one, what the one before holds, with a warning.

    ``read_from`` in it is the file that was really read; it is ``exactly`` the one asked for if so wished.
    ``trust`` allows pickles, RecBole's own checkpoints among them, and with them any code that their
    writer put in.

    Raises:
        Error: if there is no such file, it is no checkpoint, or is a pickle that is not trusted.
    """
    file = Path(file)
    older = previous_file(file)
    try:
        return _read(file, device, trust)
    except Damaged as damage:
        if exactly or not older.is_file():
            raise
        content = _read(older, device, trust)
        getLogger().warning(f"{damage} The one before is used, {older}.")
        return content


def _read(file: Path, device: str | torch.device, trust: bool) -> Content:
    """A disk that fails is no damage: what it failed to read may be whole."""
    try:
        with open(file, "rb") as opened:
            stream = Watched(opened)
            try:
                content = _read_stream(file, stream, device, trust)
            finally:  # torch goes on with what is in its memory where a read fails
                if stream.error is not None:
                    raise stream.error
    except FileNotFoundError:
        raise Damaged(f"checkpoint {file} does not exist.") from None
    except Error:
        raise
    except (OSError, ValueError) as error:  # a folder, no right to read it, no name of a file
        raise Error(f"checkpoint {file} cannot be read: {_reason(error)}.") from error
    return {**_checked(content, file), "read_from": str(file)}


def _read_stream(file: Path, stream: Watched, device: str | torch.device, trust: bool) -> object:
    is_archive = stream.read(len(_ZIP)) == _ZIP
    if not is_archive and not trust and previous_file(file).is_file():
        raise Damaged(f"checkpoint {file} is damaged.")  # ours are archives
    if is_archive:
        _refuse_damage(file, stream)
    stream.seek(0)
    try:
        with warnings.catch_warnings():  # about pickles, which are refused in our own words
            warnings.simplefilter("ignore", UserWarning)
            return torch.load(stream, map_location=device, weights_only=True)
    except pickle.UnpicklingError as error:
        return _read_pickle(file, device, trust, error)
    except Exception as error:  # torch's reader raises anything for bytes that nobody wrote
        raise Damaged(f"checkpoint {file} is damaged: {_reason(error)}.") from error


def _refuse_damage(file: Path, stream: Watched) -> None:
    """torch.load notices what is cut off, but not a bit that has changed: the checksums tell.

    torch packs nothing, so that an archive which unpacks to more than its file was not written by it.
    """
    try:
        with zipfile.ZipFile(cast(IO[bytes], stream)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > file.stat().st_size:
                raise Error(
                    f"checkpoint {file} would unpack to {size} bytes: torch writes no such file."
                )
            broken = archive.testzip()
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        OSError,
        EOFError,
        RuntimeError,
        NotImplementedError,
        OverflowError,
        UnicodeDecodeError,
    ) as error:
        raise Damaged(f"checkpoint {file} is damaged: {_reason(error)}.") from error
    if broken is not None:
        raise Damaged(f"checkpoint {file} is damaged: {broken} is not what was written.")


def _read_pickle(file: Path, device: str | torch.device, trust: bool, refusal: Exception) -> object:
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


def _checked(content: object, file: Path) -> Content:
    if not isinstance(content, dict) or not isinstance(content.get("state_dict"), dict):
        raise Error(f"{file} is not a checkpoint: there is no model in it.")
    if "format" not in content and "config" in content:
        return _from_recbole(content)
    version = content.get("format")
    if type(version) is not int or version != FORMAT or not set(_NEEDED) <= set(content):
        raise Error(
            f"checkpoint {file} has format {shown(version, 50)}, and this version of recbole-hns "
            f"reads format {FORMAT}."
        )
    refuse_wrong_kinds(content, file)
    return content


def _from_recbole(content: Content) -> Content:
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
