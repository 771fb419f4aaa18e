"""From raw interactions to RecBole's atomic files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from recbole_hns.data.interactions import (
    TEST,
    TRAIN,
    VALID,
    Interactions,
    Names,
    Numbers,
    hold_out,
    k_core,
    split_test,
    without_repeats,
)
from recbole_hns.errors import Error
from recbole_hns.files import cannot_be_written, make_folder
from recbole_hns.folders import put_in_place, recover
from recbole_hns.locks import alone
from recbole_hns.settings.dialect import to_yaml

SPLITS = ("paper", "file", "none")
PARTS = {TRAIN: "train", VALID: "valid", TEST: "test"}
CHUNK_ROWS = 1_000_000


def prepare(data: Interactions, core: int, split: str, seed: int) -> Interactions:
    """Repeats taken out, the k-core, and the split."""
    if split == "file" and data.parts is None:
        raise Error("split=file keeps a test set of the files' own, and these have none: see --split.")
    data = without_repeats(data)
    data = k_core(data, core) if core > 1 else data
    if split == "none":
        return Interactions(data.users, data.items, data.user_names, data.item_names, data.times)
    if split == "paper":
        data = split_test(data, seed)
    return hold_out(data, seed)


def write_dataset(data: Interactions, folder: Path, name: str, overwrite: bool = False) -> list[Path]:
    """Write ``folder/name/name[.part].inter`` and a property file that tells RecBole how to read them.

    Everything goes to a temporary folder first and is moved when it is complete.
    """
    target = folder / name
    make_folder(folder)
    with alone(target):
        try:
            recover(target)
            if target.exists() and not overwrite:
                raise Error(f"{target} exists already: choose another --name, or give --overwrite.")
            with _new_folder(folder / f".{name}.new") as work:
                _write_files(data, work, name)
                put_in_place(work, target)
        except OSError as error:
            raise cannot_be_written(target, error) from error
    return sorted(target.iterdir())


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder that is gone after ``with``; one that a killed process left is replaced."""
    if folder.exists():
        shutil.rmtree(folder)
    try:
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_files(data: Interactions, folder: Path, name: str) -> None:
    if data.parts is None:
        _write_inter(data, folder / f"{name}.inter")
    else:
        for part, word in PARTS.items():
            _write_inter(data.keep(data.parts == part), folder / f"{name}.{word}.inter")
    (folder / f"{name}.yaml").write_text(_properties(data), encoding="utf-8")


def _properties(data: Interactions) -> str:
    """How RecBole is to read the files; whatever the data set's name means elsewhere is taken back."""
    columns = ["user_id", "item_id"] + (["timestamp"] if data.times is not None else [])
    settings = {
        "USER_ID_FIELD": "user_id",
        "ITEM_ID_FIELD": "item_id",
        "load_col": {"inter": columns},
        "val_interval": None,
        "user_inter_num_interval": None,
        "item_inter_num_interval": None,
        "benchmark_filename": None if data.parts is None else list(PARTS.values()),
    }
    text = "# Written by recbole-hns convert: read by every run on this data set.\n"
    return text + to_yaml(settings)


def _write_inter(data: Interactions, file: Path) -> None:
    header = ["user_id:token", "item_id:token"]
    header += ["timestamp:float"] if data.times is not None else []
    with open(file, "w", encoding="utf-8", newline="") as out:
        out.write("\t".join(header) + "\n")
        for first in tqdm(range(0, len(data), CHUNK_ROWS), desc=file.name, leave=False):
            rows = slice(first, first + CHUNK_ROWS)
            frame = pd.DataFrame({"user": _named(data.users[rows], data.user_names)})
            frame["item"] = _named(data.items[rows], data.item_names)
            if data.times is not None:
                frame["time"] = data.times[rows]
            frame.to_csv(out, sep="\t", header=False, index=False)


def _named(numbers: Numbers, names: Names | None) -> Numbers | Names:
    return numbers if names is None else names[numbers]
