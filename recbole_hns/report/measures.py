"""What is known of a metric by its key: how it is written, and whether smaller is better."""

from __future__ import annotations

# RecBole's metrics with `smaller = True`; a record has no such flag.
SMALLER = frozenset({"mae", "rmse", "logloss", "averagepopularity", "giniindex"})
WRITTEN = {"recall": "Recall", "hit": "Hit", "precision": "Precision"}  # others in capitals


def metric_name(key: str) -> str:
    """ndcg@10 as NDCG@10, recall@10 as Recall@10."""
    family, at, K = key.partition("@")
    return WRITTEN.get(family, family.upper()) + at + K


def sign(key: str) -> int:
    """1 where larger is better, −1 where smaller is."""
    return -1 if key.partition("@")[0].lower() in SMALLER else 1
