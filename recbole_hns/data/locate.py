"""Finding a data set before anything else is done."""

from __future__ import annotations

import os
import shutil
import tempfile
from logging import getLogger
from pathlib import Path

import recbole
from recbole.config import Config
from recbole.utils import ModelType
from recbole.utils.url import download_url, extract_zip, rename_atomic_files

from recbole_hns.data.marks import encoding_of
from recbole_hns.errors import Error
from recbole_hns.settings.dialect import read_yaml
from recbole_hns.settings.words import shown

URLS = Path(recbole.__file__).resolve().parent / "properties" / "dataset" / "url.yaml"


def ensure_dataset(config: Config) -> None:
    """See that the data set is on disk, fetching it if RecBole knows where from.

    The download goes to a temporary folder and is moved when complete, so a failure leaves nothing
    behind. (RecBole's own download ends in a barrier that fails outside distributed training.)
    """
    folder, name = Path(config["data_path"]), config["dataset"]
    if folder.is_dir():
        _check_folder(folder, config)
        return
    urls = read_yaml(URLS, "RecBole's list")
    if name not in urls:
        raise Error(
            f"data set {name} is neither in {folder.resolve()} nor a name that RecBole can download: "
            f"put {name}.inter (tab-separated, user_id:token item_id:token) into that folder, or set "
            "data_path to the folder that holds it."
        )
    try:
        _download(urls[name], folder, name)
    except (OSError, RuntimeError) as error:
        raise Error(
            f"data set {name} is not in {folder.resolve()} and could not be downloaded from "
            f"{urls[name]} ({error}): fetch and unpack that file there, or set data_path."
        ) from error


def _check_folder(folder: Path, config: Config) -> None:
    """The files of interactions are there, and a sequential model finds sequences in them."""
    name, suffixes = config["dataset"], config["benchmark_filename"]
    for file in [f"{name}.{s}.inter" for s in suffixes] if suffixes else [f"{name}.inter"]:
        if not (folder / file).is_file():
            raise Error(
                f"data set {name}: the folder {folder} has no {file}; RecBole reads its "
                "interactions from that file (tab-separated, user_id:token item_id:token)."
            )
        if config["MODEL_TYPE"] == ModelType.SEQUENTIAL:
            _check_sequences(folder / file, config)


def _check_sequences(file: Path, config: Config) -> None:
    """Sequences are made in the order of time; parts that come in files of their own hold them."""
    encoding = encoding_of(file, config["encoding"] or "utf-8")
    try:
        with file.open(encoding=encoding, errors="replace") as lines:
            header = next(lines, "").rstrip("\r\n").split(config["field_separator"])
    except UnicodeError as error:  # UTF-16 without its mark cannot be begun with
        raise Error(f"{file} cannot be read with encoding={config['encoding']}: {error}.") from error
    columns = [name.partition(":")[0] for name in header]
    needs = f"{config['model']} learns from sequences, and {file} has no column"
    sequences, time = config["ITEM_ID_FIELD"] + config["LIST_SUFFIX"], config["TIME_FIELD"]
    if not config["benchmark_filename"]:
        if time not in columns:
            raise Error(
                f"{needs} {time} to order them by: add it ({time}:float), or name another with "
                "TIME_FIELD."
            )
        return
    if sequences not in columns:
        raise Error(
            f"{needs} {sequences} that holds them: add it ({sequences}:token_seq), or leave "
            "benchmark_filename out, and sequences are made of the interactions."
        )
    loaded = (config["load_col"] or {}).get("inter", "*")
    if loaded != "*" and sequences not in loaded:
        raise Error(f"load_col={shown(config['load_col'])} leaves out {sequences}: add it to inter.")


def _download(url: str, folder: Path, name: str) -> None:
    getLogger().info(f"Downloading {name} from {url}")
    parent = folder.parent
    existing = next(path for path in (parent, *parent.resolve().parents) if path.is_dir())
    with tempfile.TemporaryDirectory(dir=existing, prefix=f".{name}-") as work:
        archive = download_url(url, work)
        extract_zip(archive, work)
        os.unlink(archive)
        rename_atomic_files(work, Path(archive).stem, name)
        parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(work, folder)
