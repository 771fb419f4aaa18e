"""The learning rate of an epoch."""

from __future__ import annotations

import torch
from torch.optim.lr_scheduler import LambdaLR


def decay_learning_rate(
    optimizer: torch.optim.Optimizer, rate: float, step_size: int, gamma: float, epoch: int
) -> None:
    """Set the rate to ``rate`` · γ^⌊epoch / step_size⌋.

    torch's schedule is made anew for every epoch: so the rate is a function of the epoch alone, and a
    run that goes on needs no state of it.
    """
    for group in optimizer.param_groups:
        group["initial_lr"] = rate
    LambdaLR(optimizer, lambda now: gamma ** (now // step_size), last_epoch=epoch - 1)
