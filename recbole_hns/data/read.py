"""Reading the files that researchers really have."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.io
import scipy.sparse
from tqdm import tqdm

from recbole_hns.data.interactions import TEST, TRAIN, Interactions, Names, Numbers, Times
from recbole_hns.errors import Error
from recbole_hns.settings.words import nearest

CHUNK_ROWS = 200_000
Ids = npt.NDArray[np.int64]  # as a file has them


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold what."""

    user: str = "user_id"
    item: str = "item_id"
    rating: str | None = None
    time: str | None = None
    threshold: float | None = None  # ratings from here on are positive


def read_interactions(paths: Sequence[Path], columns: Columns) -> Interactions:
    """Interactions from files of any known format, told by their names."""
    files = []
    for path in paths:  # a folder holds LightGCN's two lists
        files += [path / "train.txt", path / "test.txt"] if path.is_dir() else [path]
    for file in files:
        if not file.is_file():
            raise Error(f"{file} does not exist.")
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise Error("files of several formats cannot be one data set: name files of one format.")
    (kind,) = kinds
    if kind == "lists":
        return read_lists(files)
    if kind == "table":
        return read_tables(files, columns)
    if len(files) > 1:
        raise Error(f"{kind} is one matrix in one file: name one file.")
    return read_matrix(files[0])


def _kind(file: Path) -> str:
    kinds = {".mat": ".mat", ".npz": ".npz", ".txt": "lists", ".csv": "table", ".tsv": "table"}
    kind = kinds.get(file.suffix.lower())
    if kind is None:
        raise Error(
            f"{file} is of no known format: .mat and .npz (a sparse matrix), .txt (lists of items, as "
            "LightGCN's train.txt and test.txt), .csv and .tsv (a table with named columns) are."
        )
    return kind


def read_matrix(file: Path) -> Interactions:
    """A sparse matrix of users × items: ``data`` in a .mat, or SciPy's .npz."""
    try:
        if file.suffix.lower() == ".mat":
            content = scipy.io.loadmat(file)
            if "data" not in content:
                names = ", ".join(name for name in content if not name.startswith("__")) or "nothing"
                raise Error(f"{file} has no matrix called data; it has {names}.")
            matrix = content["data"]
        else:
            _refuse_bomb(file)
            matrix = scipy.sparse.load_npz(file)
    except Error:
        raise
    except Exception as error:  # whatever the two readers raise for a broken file
        reason = " ".join(str(error).split())
        raise Error(f"{file} cannot be read as a matrix: {reason}.") from error
    rows, columns = _positive_places(file, matrix)
    users, user_names = numbered(rows)
    items, item_names = numbered(columns)
    return Interactions(users, items, user_names, item_names)


def _refuse_bomb(file: Path) -> None:
    """A matrix unpacks to a few times its file's size; an archive of nothing but zeros to a thousand."""
    with zipfile.ZipFile(file) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > 100 * file.stat().st_size + 2**27:
        raise Error(f"{file} cannot be read as a matrix: it would unpack to {size / 2**30:.1f} GB.")


def _positive_places(file: Path, matrix: Any) -> tuple[Ids, Ids]:
    """Rows and columns of what is greater than 0.

    SciPy follows the indices of compressed rows wherever they lead; so they are checked before it does.
    """
    if getattr(matrix, "dtype", np.dtype(object)).kind not in "biuf" or matrix.ndim != 2:
        raise Error(f"{file} cannot be read as a matrix: it holds no table of numbers.")
    try:
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        places = scipy.sparse.coo_matrix(matrix)
    except (ValueError, IndexError, TypeError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise Error(f"{file} cannot be read as a matrix: {reason}.") from error
    positive = places.data > 0
    if not positive.any():
        raise Error(f"{file} holds no interaction.")
    return places.row[positive].astype(np.int64), places.col[positive].astype(np.int64)


def numbered(ids: Ids) -> tuple[Numbers, Names | None]:
    """Ids as numbers that can be counted by: themselves, unless they are far more than there are.

    Memory is taken for the largest number; of ids that would waste it, the names are kept apart.
    """
    if ids.max(initial=0) < min(2**31, 100 * len(ids) + 1_000_000):
        return ids.astype(np.int32), None
    names, numbers = np.unique(ids, return_inverse=True)
    return numbers.astype(np.int32), np.array([str(name) for name in names], dtype=object)


def read_lists(files: Sequence[Path]) -> Interactions:
    """Lines ``user item item …`` of numbers; of two files, the one called test is the test set."""
    if len(files) > 2:
        raise Error("lists of items are one file, or one to train and one to test on.")
    is_test = ["test" in file.stem for file in files]
    if len(files) == 2 and sum(is_test) != 1:
        raise Error(f"which of {files[0].name} and {files[1].name} is the test set? Call it test.txt.")
    users, items, parts = [], [], []
    for file, test in zip(files, is_test):
        for user, taken in _lists(file):
            items.append(taken)
            users.append(np.full(len(taken), user))
            parts.append(np.full(len(taken), TEST if test else TRAIN, dtype=np.int8))
    if not users:
        raise Error(f"{files[0]} holds no interaction.")
    both = np.concatenate(parts) if len(files) == 2 else None
    own, user_names = numbered(np.concatenate(users))
    its, item_names = numbered(np.concatenate(items))
    return Interactions(own, its, user_names, item_names, parts=both)


def _lists(file: Path) -> Iterator[tuple[int, Ids]]:
    """The users of a file who took something, with their items."""
    number = 0
    try:
        with open(file, encoding="utf-8-sig") as lines:
            for line in tqdm(lines, desc=file.name, unit=" lines", leave=False):
                number += 1
                ids = np.array(line.split(), dtype=np.int64)
                if ids.min(initial=0) < 0:
                    raise ValueError("negative")
                if len(ids) > 1:
                    yield int(ids[0]), ids[1:]
    except UnicodeDecodeError as error:
        raise Error(f"{file} is malformed: it is no text in UTF-8.") from error
    except (ValueError, OverflowError) as error:
        raise Error(
            f"{file}, line {number}: a user and items are needed, all whole numbers from 0 to 2^63 - 1."
        ) from error


class _Numbers:
    """Gives every name a number, in the order of their coming."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}

    def of(self, names: pd.Series) -> Numbers:
        codes, new = pd.factorize(names)
        numbers = [self.number.setdefault(name, len(self.number)) for name in new]
        return np.array(numbers, dtype=np.int32)[np.asarray(codes, dtype=np.int64)]

    def names(self) -> Names:
        return np.array(list(self.number), dtype=object)


def read_tables(files: Sequence[Path], columns: Columns) -> Interactions:
    """CSV or TSV files with a header, read in pieces: a row costs 8 to 16 bytes, a name its text."""
    users, items = _Numbers(), _Numbers()
    pieces: list[tuple[Numbers, Numbers, Times | None]] = []
    for file in files:
        for chunk in _chunks(file, columns):
            rows = _positive_rows(file, chunk, columns)
            times = _numeric(file, rows[columns.time]).to_numpy(np.float64) if columns.time else None
            pieces.append((users.of(rows[columns.user]), items.of(rows[columns.item]), times))
    if not sum(len(own) for own, _, _ in pieces):
        raise Error(f"{files[0]} holds no positive interaction.")
    return Interactions(
        np.concatenate([own for own, _, _ in pieces]),
        np.concatenate([own for _, own, _ in pieces]),
        users.names(),
        items.names(),
        np.concatenate([own for *_, own in pieces if own is not None]) if columns.time else None,
    )


def _chunks(file: Path, columns: Columns) -> Iterable[pd.DataFrame]:
    """The table in pieces, as text; row n of the table, counted from 0, is line n + 2 of the file."""
    separator = "\t" if file.suffix.lower() == ".tsv" else ","
    wanted = [name for name in (columns.user, columns.item, columns.rating, columns.time) if name]
    try:
        _check_header(file, separator, wanted)
        # All columns are read: with `usecols` pandas would accept lines that have too many fields.
        reader = pd.read_csv(
            file,
            sep=separator,
            dtype=str,
            chunksize=CHUNK_ROWS,
            keep_default_na=False,
            na_values=[""],
            skip_blank_lines=False,
            index_col=False,
        )
        with reader, tqdm(desc=file.name, unit=" rows", leave=False) as bar:
            for rows in reader:
                yield rows[wanted].dropna(how="all")
                bar.update(len(rows))
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, csv.Error) as error:
        reason = " ".join(str(error).split()).replace("Error tokenizing data. C error: ", "")
        raise Error(f"{file} is malformed: {reason}.") from error


def _check_header(file: Path, separator: str, wanted: Sequence[str]) -> None:
    with open(file, encoding="utf-8", newline="") as lines:
        header = next(csv.reader(lines, delimiter=separator), [])
    for name in wanted:
        if name not in header:
            raise Error(
                f"{file} has no column {name}{nearest(name, header)}: its columns are "
                f"{', '.join(header) or 'none'}."
            )


def _positive_rows(file: Path, rows: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    for name in (columns.user, columns.item):
        _refuse_rows(file, rows[name].isna(), f"no {name}")
    again = (rows[columns.user] == columns.user) & (rows[columns.item] == columns.item)
    _refuse_rows(file, again, "the header comes a second time; take that line out")
    if columns.rating is None:
        return rows
    return rows[_numeric(file, rows[columns.rating]) >= columns.threshold]


def _numeric(file: Path, column: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    _refuse_rows(file, ~np.isfinite(numbers), f"{column.name} is not a number")
    return numbers


def _refuse_rows(file: Path, bad: pd.Series, what: str) -> None:
    if bad.any():
        raise Error(f"{file}, line {int(bad.idxmax()) + 2}: {what}.")
