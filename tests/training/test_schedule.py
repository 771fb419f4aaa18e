"""The learning rate is a function of the epoch, and of nothing else."""

import warnings

import pytest
import torch
from trained import trainer_for

from recbole_hns.training.schedule import decay_learning_rate


def rates_of(trainer, loader):
    """The learning rate of every step."""
    rates, original = [], trainer.sampled_loss

    def sampled_loss(batch):
        rates.append(trainer.optimizer.param_groups[0]["lr"])
        return original(batch)

    trainer.sampled_loss = sampled_loss
    trainer.fit(loader, saved=False)
    return rates


def test_the_learning_rate_decays_by_epoch(tiny):
    trainer, loader = trainer_for(
        "BPR", tiny, epochs=7, learning_rate=0.0013, lr_step_size=2, lr_gamma=0.6
    )
    assert rates_of(trainer, loader) == [0.0013 * 0.6 ** (epoch // 2) for epoch in range(7)]


def test_without_a_step_size_the_learning_rate_stays(tiny):
    trainer, loader = trainer_for("BPR", tiny, epochs=3, learning_rate=0.001)
    assert rates_of(trainer, loader) == [0.001] * 3


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD])
def test_the_rate_of_an_epoch_does_not_hang_on_those_before(optimizer):
    """In any order, for all groups, whatever rate they had, and without a word."""
    tables = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
    optimizer = optimizer([{"params": tables[:1], "lr": 3.0}, {"params": tables[1:]}], lr=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rate, epoch in [(0.1, 9), (0.1, 0), (0.2, 9), (0.1, 10), (0.1, 10)]:
            decay_learning_rate(optimizer, rate, 5, 0.95, epoch)
            rates = [group["lr"] for group in optimizer.param_groups]
            assert rates == [rate * 0.95 ** (epoch // 5)] * 2
