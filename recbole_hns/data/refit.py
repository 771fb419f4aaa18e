"""Training on what was held out for validation, once there is nothing left to choose."""

from __future__ import annotations

from recbole.data.dataset import Dataset
from recbole.data.interaction import cat_interactions


def join_validation(data: Dataset) -> None:
    """Let the data set's ``build`` put its validation part behind its training part."""
    build = data.build

    def joined() -> list[Dataset]:
        train, valid, test = build()
        whole = train.copy(cat_interactions([train.inter_feat, valid.inter_feat]))
        return [whole, valid.copy(valid.inter_feat[:0]), test]

    data.build = joined
