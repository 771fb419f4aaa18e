"""Ids as they are written in RecBole's files; :func:`apply` is called by :mod:`.compat`."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from recbole.data.dataset import Dataset

from recbole_hns.errors import Error

# What pandas takes for a missing value by default; of a number it is one, an id may be called so.
NO_NUMBER = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)


def missing_values(columns: Mapping[str, Any]) -> dict[str, list[str]]:
    """What stands for nothing in each column ``name:type``: of tokens, the empty string alone."""
    return {
        name: [""] if name.rpartition(":")[2].startswith("token") else list(NO_NUMBER)
        for name in columns
    }


def apply() -> None:
    """Keep users and items called NA, null, None or nan; count lines without an id; refuse two headers.

    RecBole reads its files by ``pd.read_csv`` with pandas' own idea of missing values, and leaves out
    whoever is called like one. Where the parts of a split come in files of their own, it makes a line
    without an id an interaction with the padding. What is replaced is ``Dataset._load_feat`` and the name
    ``pd`` inside ``recbole.data.dataset.dataset``.
    """
    from recbole.data.dataset import dataset

    if hasattr(dataset.pd, "reads_ids_as_written"):
        return
    theirs = dataset.pd
    view = types.ModuleType("pandas")
    vars(view).update(
        __getattr__=functools.partial(getattr, theirs),
        read_csv=functools.partial(_read_csv, theirs.read_csv),
        reads_ids_as_written=True,
    )
    dataset.pd = view
    Dataset._load_feat = _without_empty_ids(Dataset._load_feat)


def _read_csv(reader: Any, file: str, *, dtype: Mapping[str, Any], **options: Any) -> pd.DataFrame:
    again = f"{file} has its header a second time, where a line of data should be: take that line out."
    try:
        frame: pd.DataFrame = reader(
            file, dtype=dtype, na_values=missing_values(dtype), keep_default_na=False, **options
        )
    except ValueError as error:
        reasons = f"{error} {error.__cause__}"
        if any(repr(name) in reasons for name in dtype):  # where a number was expected
            raise Error(again) from error
        raise
    texts = [name for name in frame.columns if dtype[name] is str]
    same = frame[texts[0]] == texts[0] if texts else pd.Series(dtype=bool)
    if same.any() and (frame.loc[same, texts] == texts).all(axis=1).any():
        raise Error(again)
    return frame


def _without_empty_ids(load_feat: Callable[..., pd.DataFrame | None]) -> Any:
    """RecBole's reading of a file, less the lines that name no user or no item."""

    @functools.wraps(load_feat)
    def _load_feat(self: Dataset, filepath: str, source: Any) -> pd.DataFrame | None:
        feat = load_feat(self, filepath, source)
        ids = {"user": [self.uid_field], "item": [self.iid_field]}
        ids["inter"] = ids["user"] + ids["item"]
        fields = ids.get(getattr(source, "value", source), [])
        fields = [field for field in fields if feat is not None and field in feat]
        if feat is None or not fields:
            return feat
        empty = feat[fields].isna().to_numpy().any(axis=1)
        if not empty.any():
            return feat
        self.logger.warning(
            f"{filepath}: {empty.sum()} of {len(feat)} lines have an empty {' or '.join(fields)} and are "
            f"left out, the first of them line {int(np.flatnonzero(empty)[0]) + 2}."
        )
        return feat.drop(index=feat.index[empty]).reset_index(drop=True)

    return _load_feat
