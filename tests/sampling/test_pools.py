"""Pools as RecBole samplers: positives left out, exact q, and RecBole's own loaders on top."""

import numpy as np
import pytest
import torch
from conftest import prepare, write_inter
from recbole.data.dataloader import NegSampleEvalDataLoader, TrainDataLoader
from recbole.sampler import Sampler
from scipy.stats import chisquare

from recbole_hns import Error
from recbole_hns.sampling import PopularityPool, UniformPool

POOLS = [UniformPool, PopularityPool]


@pytest.fixture
def train_set(tiny):
    return prepare(**tiny)[1]._dataset


def taken_by_user(dataset):
    taken = [set() for _ in range(dataset.user_num)]
    for user, item in zip(dataset.inter_feat["user_id"], dataset.inter_feat["item_id"]):
        taken[int(user)].add(int(item))
    return taken


@pytest.mark.parametrize("block", [1, 16])
@pytest.mark.parametrize("pool_class", POOLS)
def test_pool_never_draws_a_training_positive_or_the_padding(train_set, pool_class, block):
    pool = pool_class("train", train_set, block=block).set_phase("train")
    taken = taken_by_user(train_set)
    users = torch.arange(1, train_set.user_num).repeat(50)
    ids = pool.draw(users, 40).ids
    assert ids.min() >= 1
    assert ids.max() < train_set.item_num
    assert not any(int(j) in taken[user] for user, row in zip(users, ids) for j in row)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_popularity_draws_and_log_q_follow_the_definition(train_set, alpha):
    """q(j | c) = count_j^α / Σ over the user's negatives; χ² at α = 10⁻⁴, seed fixed."""
    torch.manual_seed(7)
    pool = PopularityPool("train", train_set, alpha=alpha).set_phase("train")
    counts = np.zeros(train_set.item_num)
    for item in train_set.inter_feat["item_id"]:
        counts[int(item)] += 1
    taken = taken_by_user(train_set)
    for user in (1, 5, 20):
        q = counts**alpha
        q[0] = 0
        q[list(taken[user])] = 0
        q /= q.sum()
        candidates = pool.draw(torch.full((1000,), user), 20)
        drawn = np.bincount(candidates.ids.flatten(), minlength=len(q))
        assert drawn[q == 0].sum() == 0
        assert chisquare(drawn[q > 0], 20_000 * q[q > 0]).pvalue > 1e-4
        expected = np.log(q[candidates.ids])
        np.testing.assert_allclose(candidates.log_q, expected, atol=1e-5)


def test_uniform_pool_needs_no_log_q(train_set):
    pool = UniformPool("train", train_set).set_phase("train")
    assert pool.draw(torch.tensor([1, 2]), 5).log_q is None


def test_n_negatives_is_what_the_user_did_not_take(train_set):
    pool = UniformPool("train", train_set).set_phase("train")
    taken = taken_by_user(train_set)
    users = torch.tensor([1, 2, 3])
    expected = [train_set.item_num - 1 - len(taken[u]) for u in users]
    assert pool.negatives_of(users).tolist() == expected


@pytest.mark.parametrize("pool_class", POOLS)
def test_recboles_loaders_can_use_a_pool(tiny, pool_class):
    config, train_data, valid_data, _ = prepare(**tiny)
    datasets = [train_data._dataset, valid_data._dataset]
    pool = pool_class(["train", "valid"], datasets)
    assert isinstance(pool, Sampler)
    taken = taken_by_user(datasets[0])
    for batch in TrainDataLoader(config, datasets[0], pool.set_phase("train"), shuffle=True):
        for user, negative in zip(batch["user_id"], batch["neg_item_id"]):
            assert int(negative) not in taken[user]

    config["valid_neg_sample_args"] = {"distribution": "uniform", "sample_num": 20}
    loader = NegSampleEvalDataLoader(config, datasets[1], pool.set_phase("valid"))
    for user, items in enumerate(taken_by_user(datasets[1])):
        taken[user] |= items
    for batch, _, positive_u, _ in loader:
        negatives = batch.interaction["item_id"][batch["label"] == 0]
        users = batch.interaction["user_id"][batch["label"] == 0]
        assert len(positive_u) > 0
        assert all(int(j) not in taken[u] for u, j in zip(users, negatives))


def test_a_sequences_history_counts_as_taken(tiny):
    settings = {**tiny, "load_col": {"inter": ["user_id", "item_id", "timestamp"]}}
    train_set = prepare("SASRec", **settings)[1]._dataset
    pool = UniformPool("train", train_set).set_phase("train")
    for user, history in zip(
        train_set.inter_feat["user_id"].tolist(), train_set.inter_feat["item_id_list"].tolist()
    ):
        assert set(history) - {0} <= pool.used_ids[user]


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
        UniformPool("train", dataset)


def test_popularity_refuses_a_user_who_took_everything_with_a_count(train_set):
    pool = PopularityPool("train", train_set)
    pool.item_weights = lambda: np.isin(
        np.arange(train_set.item_num), list(taken_by_user(train_set)[3])
    ).astype(np.int64)
    with pytest.raises(Error, match="pool=popularity cannot draw for user"):
        pool.set_phase("train")
