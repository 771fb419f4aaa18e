"""RecBole's data as a world, and pools as RecBole's samplers with its own loaders on top."""

import numpy as np
import pytest
import torch
from conftest import prepare, write_inter
from recbole.data.dataloader import NegSampleEvalDataLoader, TrainDataLoader
from recbole.sampler import Sampler

from recbole_hns import Error
from recbole_hns.bridge.world import PoolSampler, counts_of, world_of
from recbole_hns.sampling import pools

POOLS = [pools.Uniform(), pools.Popularity()]


def taken_by_user(dataset):
    taken = [set() for _ in range(dataset.user_num)]
    for user, item in zip(
        dataset.inter_feat["user_id"].tolist(), dataset.inter_feat["item_id"].tolist()
    ):
        taken[user].add(item)
    return taken


def test_the_world_of_a_run_is_its_training_set(tiny):
    config, train_data, *_ = prepare(**tiny, seed=5, hns_backend="torch")
    world = world_of(train_data._dataset, config, rank=2)
    assert [world.positives[user] for user in range(world.n_users)] == taken_by_user(train_data._dataset)
    assert (world.positives.first, world.seed, world.rank, world.backend.name) == (1, 5, 2, "torch")
    items = train_data._dataset.inter_feat["item_id"].tolist()
    assert world.counts.tolist() == [items.count(item) for item in range(world.n_items)]
    assert world.name_users(np.array([1])) == f"user {train_data._dataset.id2token('user_id', 1)}"


def test_a_sequences_history_counts_as_taken(tiny):
    settings = {**tiny, "load_col": {"inter": ["user_id", "item_id", "timestamp"]}}
    config, train_data, *_ = prepare("SASRec", **settings)
    train, world = train_data._dataset, world_of(train_data._dataset, config)
    expected = taken_by_user(train)
    histories = train.inter_feat["item_id_list"].tolist()
    for user, history in zip(train.inter_feat["user_id"].tolist(), histories):
        expected[user] |= set(history) - {0}
    assert [world.positives[user] for user in range(world.n_users)] == expected


@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_recboles_loaders_can_use_a_pool(tiny, pool):
    config, train_data, valid_data, _ = prepare(**tiny)
    datasets = [train_data._dataset, valid_data._dataset]
    sampler = PoolSampler(["train", "valid"], datasets, pool)
    assert isinstance(sampler, Sampler)
    taken = taken_by_user(datasets[0])
    for batch in TrainDataLoader(config, datasets[0], sampler.set_phase("train"), shuffle=True):
        for user, negative in zip(batch["user_id"], batch["neg_item_id"]):
            assert int(negative) not in taken[user]

    config["valid_neg_sample_args"] = {"distribution": "uniform", "sample_num": 20}
    loader = NegSampleEvalDataLoader(config, datasets[1], sampler.set_phase("valid"))
    for user, items in enumerate(taken_by_user(datasets[1])):
        taken[user] |= items
    for batch, _, positive_u, _ in loader:
        negatives = batch.interaction["item_id"][batch["label"] == 0]
        users = batch.interaction["user_id"][batch["label"] == 0]
        assert len(negatives) == 20 * len(positive_u)
        assert all(int(j) not in taken[u] for u, j in zip(users, negatives))


def test_a_samplers_counts_are_of_all_its_data_sets(tiny):
    _, train_data, valid_data, _ = prepare(**tiny)
    sets = [train_data._dataset, valid_data._dataset]
    items = [item for part in sets for item in part.inter_feat["item_id"].tolist()]
    assert counts_of(*sets).tolist() == [items.count(item) for item in range(sets[0].item_num)]


def test_a_user_who_took_everything_is_named(tmp_path):
    pairs = [("ann", f"i{i}") for i in range(5)] + [("bob", "i1"), ("bob", "i2")]
    write_inter(tmp_path / "data", "full", pairs * 2)
    settings = {"data_path": str(tmp_path / "data"), "repeatable": True}
    dataset = prepare("BPR", "full", **settings)[1]._dataset
    dataset.inter_feat.interaction = {
        "user_id": torch.tensor([1] * 5 + [2]),
        "item_id": torch.tensor([1, 2, 3, 4, 5, 1]),
    }
    with pytest.raises(Error, match=r"user ann took every item.*user_inter_num_interval"):
        PoolSampler(["train"], [dataset], pools.Uniform())
