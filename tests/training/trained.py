"""Trainers with their data, ready to fit."""

import torch
from conftest import prepare

from recbole_hns.data.loader import positives_only
from recbole_hns.training.trainer import make_trainer


def trainer_for(model, settings, **more):
    torch.manual_seed(0)  # RecBole splits the data by torch's global generator
    config, train_data, *_ = prepare(model, **settings, **more)
    torch.manual_seed(0)
    loader = positives_only(config, train_data)
    network = config.model_class(config, loader._dataset)
    return make_trainer(config, network), loader


def by_hand(trainer, loader, optimizer, epochs):
    """What ``fit`` is, without anything around it: the loss of every epoch."""
    trainer.prepare(loader)
    sums = []
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        trainer.sampler.start_epoch(epoch)
        sums.append(0.0)
        for batch in loader:
            optimizer.zero_grad()
            loss = trainer.sampled_loss(batch)
            loss.backward()
            optimizer.step()
            sums[-1] += loss.item()
    return sums


def losses_of(trainer):
    """The loss of every epoch."""
    return [row["train_loss"] for row in trainer.history]
