import torch
from conftest import prepare

from recbole_hns.data.loader import positives_only


def pairs_of(batches):
    return [(int(u), int(i)) for batch in batches for u, i in zip(batch["user_id"], batch["item_id"])]


def test_an_epoch_is_a_permutation_of_the_training_set(tiny):
    config, train_data, *_ = prepare(**tiny, train_batch_size=64)
    loader = positives_only(config, train_data)
    feat = train_data._dataset.inter_feat
    everything = sorted(zip(feat["user_id"].tolist(), feat["item_id"].tolist()))
    seen = pairs_of(loader)
    assert sorted(seen) == everything
    assert seen != everything


def test_train_batch_size_counts_positives_whatever_N_is(tiny):
    config, train_data, *_ = prepare(**tiny, train_batch_size=64, N=17, M=1)
    sizes = [len(batch) for batch in positives_only(config, train_data)]
    assert set(sizes[:-1]) == {64}
    assert len(sizes) == len(positives_only(config, train_data))


def test_the_order_depends_on_seed_and_epoch_alone(tiny):
    config, train_data, *_ = prepare(**tiny, train_batch_size=64)
    first, second = positives_only(config, train_data), positives_only(config, train_data)
    torch.manual_seed(1)
    epoch_0 = pairs_of(first)
    first.set_epoch(1)
    assert pairs_of(first) != epoch_0
    torch.manual_seed(2)
    assert pairs_of(second) == epoch_0


def test_shuffle_false_keeps_the_order(tiny):
    config, train_data, *_ = prepare(**tiny, shuffle=False)
    feat = train_data._dataset.inter_feat
    loader = positives_only(config, train_data)
    assert pairs_of(loader) == list(zip(feat["user_id"].tolist(), feat["item_id"].tolist()))


def test_sequential_batches_keep_their_histories(tiny):
    settings = {**tiny, "load_col": {"inter": ["user_id", "item_id", "timestamp"]}}
    config, train_data, *_ = prepare("SASRec", **settings)
    batch = next(iter(positives_only(config, train_data)))
    assert batch["item_id_list"].shape == (len(batch), config["MAX_ITEM_LIST_LENGTH"])
    assert (batch["item_length"] >= 1).all()
