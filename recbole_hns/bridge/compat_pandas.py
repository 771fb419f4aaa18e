"""RecBole 1.2.1's feature files on pandas 3; :func:`apply` is called by :mod:`.compat`."""

from __future__ import annotations

import functools
import types
from typing import Any

import pandas as pd


class Column(pd.Series):
    """A column of a :class:`Table`, as columns were before pandas 3."""

    table: Table | None = None

    @property
    def _constructor(self) -> type[Column]:
        return Column

    def fillna(self, value: Any = None, *, inplace: bool = False, **options: Any) -> pd.Series | None:
        """In place means in the table, where RecBole looks for it."""
        if not inplace or self.table is None:
            return super().fillna(value, inplace=inplace, **options)
        self.table[self.name] = super().fillna(value, **options)
        return None

    def agg(self, func: Any = None, *args: Any, **options: Any) -> Any:
        """``len`` is of every element, not of the column."""
        return self.map(len) if func is len else super().agg(func, *args, **options)


class Table(pd.DataFrame):
    """A feature file that RecBole reads, as frames were before pandas 3."""

    @property
    def _constructor(self) -> type[Table]:
        return Table

    @property
    def _constructor_sliced(self) -> type[Column]:
        return Column

    def __getitem__(self, key: Any) -> Any:
        """A column that knows where it is from."""
        part = super().__getitem__(key)
        if isinstance(part, Column):
            part.table = self
        return part


def read_csv(*args: Any, **options: Any) -> Table:
    """What pandas reads, as a :class:`Table`."""
    return Table(pd.read_csv(*args, **options))


def apply() -> None:
    """Let RecBole fill missing values in place, and count the elements of sequences.

    It calls ``feat[field].fillna(…, inplace=True)``, which pandas 3 does to a copy, and
    ``feat[field].agg(len)``, which pandas 3 takes for the length of the column: user and item features
    with missing values or sequences cannot be loaded. Only the name ``pd`` inside
    ``recbole.data.dataset.dataset`` is replaced, so that only the frames made there behave as before.
    """
    if int(pd.__version__.partition(".")[0]) < 3:
        return
    from recbole.data.dataset import dataset

    view = types.ModuleType("pandas")
    vars(view).update(__getattr__=functools.partial(getattr, pd), DataFrame=Table, read_csv=read_csv)
    dataset.pd = view
