"""A data set's fingerprint: whether a training set is the one it was."""

from __future__ import annotations

import zlib

import numpy as np
from recbole.data.dataset import Dataset


def fingerprint(dataset: Dataset) -> str:
    """A checksum of the pairs in their order, with the numbers of users and items."""
    check = 0
    for field in (dataset.uid_field, dataset.iid_field):
        column = np.ascontiguousarray(dataset.inter_feat[field], dtype=np.int64)
        check = zlib.crc32(column.data, check)
    return f"{dataset.user_num}x{dataset.item_num}-{len(dataset)}-{check:08x}"
