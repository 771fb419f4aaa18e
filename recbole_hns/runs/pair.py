"""A training pair of a checkpoint, with the scores of all items for it: what is simulated upon."""

from __future__ import annotations

import numpy as np
import torch
from recbole.data.dataset import Dataset
from recbole.data.interaction import Interaction
from recbole.data.transform import construct_transform

from recbole_hns.bridge.world import taken
from recbole_hns.errors import Error
from recbole_hns.runs.artifact import Artifact
from recbole_hns.runs.tester import Tester
from recbole_hns.sampling import Positives, World
from recbole_hns.theory.sampling import Pair, choose_pair


def pair_of(artifact: Artifact, seed: int, user: str | None = None, item: str | None = None) -> Pair:
    """A pair of the training set, drawn by seed where it is not named, and scored as in evaluation.

    Users and items are named as in the data's files. Any model that RecBole evaluates has such scores.
    """
    train = artifact.train_set
    user_id = _id_of(train, train.uid_field, user)
    item_id = _id_of(train, train.iid_field, item)
    users, items = (train.inter_feat[field].numpy() for field in (train.uid_field, train.iid_field))
    size = (train.user_num, train.item_num)
    user_id, item_id = choose_pair(Positives(users, items, *size), seed, user_id, item_id)
    row = int(np.flatnonzero((users == user_id) & (items == item_id))[0])
    world = World(Positives(*taken(train), *size), seed=seed)
    return Pair(world, user_id, item_id, scores_of(artifact, row))


def scores_of(artifact: Artifact, row: int) -> torch.Tensor:
    """The scores of all items for the context of a training row, (n_items,): a user, or a sequence."""
    train = artifact.train_set
    columns = {name: column[[row]] for name, column in train.inter_feat.interaction.items()}
    context = construct_transform(artifact.config)(train, train.join(Interaction(columns)))
    nothing = torch.zeros(0, dtype=torch.long)
    scores = Tester(artifact.config, artifact.model).scores(context, (nothing, nothing), train)
    return scores[0].float().cpu()


def _id_of(data: Dataset, field: str, token: str | None) -> int | None:
    if token is None:
        return None
    try:
        return int(data.token2id(field, token))
    except ValueError as error:
        raise Error(f"{error}: name a user and an item of the data set.") from error
