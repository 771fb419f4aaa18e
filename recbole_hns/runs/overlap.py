"""Pairs that are in the training set and are asked for again."""

from __future__ import annotations

from logging import getLogger

import numpy as np
import numpy.typing as npt
from recbole.data.dataset import Dataset


def warn_of_known_pairs(train: Dataset, valid: Dataset, test: Dataset | None) -> None:
    """Say how many pairs of the validation and the test set the model has been trained on."""
    known = _keys(train)
    found = []
    for name, part in (("validation", valid), ("test", test)):
        if part is None or len(part) == 0:
            continue
        repeated = int(np.isin(_keys(part), known).sum())
        if repeated:
            count = f"all {len(part):,}" if repeated == len(part) else f"{repeated:,} of {len(part):,}"
            found.append(f"{count} pairs of the {name} set")
    if found:
        getLogger().warning(
            f"{' and '.join(found)} are in the training set too: their metrics tell how well it was "
            "learned, not how well it predicts."
        )


def _keys(part: Dataset) -> npt.NDArray[np.int64]:
    """A number for each pair of user and item."""
    feat = part.inter_feat
    users, items = feat[part.uid_field].numpy(), feat[part.iid_field].numpy()
    keys: npt.NDArray[np.int64] = users.astype(np.int64) * part.item_num + items
    return keys
