"""Losses: how the scores of a positive and of its weighted negatives become a loss."""

from recbole_hns.losses.base import Loss, SeparableLoss
from recbole_hns.losses.bce import BCE
from recbole_hns.losses.bpr import BPR
from recbole_hns.losses.hinge import Hinge
from recbole_hns.losses.softmax import InfoNCE, ListLoss, SampledSoftmax
from recbole_hns.losses.weighted import mean_loss

__all__ = [
    "BCE",
    "BPR",
    "Hinge",
    "InfoNCE",
    "ListLoss",
    "Loss",
    "SampledSoftmax",
    "SeparableLoss",
    "mean_loss",
]
