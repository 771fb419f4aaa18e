"""Whether a model of one's own reads the negatives that it is given."""

from __future__ import annotations

import copy
import random
from logging import getLogger
from typing import TYPE_CHECKING

import numpy as np
import torch

from recbole_hns.kernels import Candidates, get_kernels
from recbole_hns.models.cards import scorer_of
from recbole_hns.models.scorer import OwnLossScorer
from recbole_hns.sampling.negatives import Negatives

if TYPE_CHECKING:
    from recbole.data.interaction import Interaction
    from recbole.model.abstract_recommender import AbstractRecommender

    from recbole_hns.data.loader import TrainLoader
    from recbole_hns.runs.config import HNSConfig

PAIRS = 64


def warn_if_negatives_are_not_read(
    config: HNSConfig, model: AbstractRecommender, loader: TrainLoader
) -> bool:
    """Warn where the loss is the same for different negatives: every sampler would train the same model.

    A copy of the model is asked, with noise in its parameters, which may all be 0 as yet. Where it cannot
    be copied, or its loss cannot be computed like this, nothing is said: training will show its errors.
    True where it has warned.
    """
    if not issubclass(scorer_of(type(model)), OwnLossScorer):
        return False
    states = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            losses = [_loss(config, model, loader, which) for which in range(2)]
    except Exception:  # whatever an author's code raises: it is to be seen where it is used
        return False
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
    if torch.equal(*losses):
        getLogger().warning(
            f"the loss of {config['model']} is the same whatever the negatives are, so that all samplers "
            f"train the same model: its calculate_loss is to read {_negative_of(loader)}."
        )
        return True
    return False


def _loss(
    config: HNSConfig, model: AbstractRecommender, loader: TrainLoader, which: int
) -> torch.Tensor:
    """The loss of a few pairs, each with the first or the second of two negatives that differ."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    own = copy.deepcopy(model).train()
    batch, ids = _pairs(loader, which)
    with torch.no_grad():
        for parameter in own.parameters():
            if parameter.is_floating_point():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    backend = get_kernels(config["hns_backend"], torch.device(config["device"]))
    scorer = scorer_of(type(model))(own, loader._dataset, backend)
    ones = torch.ones(len(ids), 1, device=own.device)
    negatives = Negatives(Candidates(ids[:, None].to(own.device)), ones)
    loss = scorer.own_loss(batch.to(own.device), negatives, torch.Generator(own.device))
    parts = loss if isinstance(loss, tuple) else (loss,)
    return torch.stack([part.detach().double().sum() for part in parts])


def _pairs(loader: TrainLoader, which: int) -> tuple[Interaction, torch.Tensor]:
    """Some pairs, and another item than theirs for each."""
    data = loader._dataset
    index = torch.arange(min(PAIRS, len(data)))
    batch = data.join(data.inter_feat[index])
    items, n = batch[data.iid_field], data.item_num - 1
    return batch, (items + which) % n + 1  # 1 and 2 places behind the positive


def _negative_of(loader: TrainLoader) -> str:
    config = loader._dataset.config
    return f"interaction[self.NEG_ITEM_ID], the column {config['NEG_PREFIX']}{config['ITEM_ID_FIELD']}"
