import itertools
import socket
from pathlib import Path

import torch
from conftest import prepare
from recbole.utils import init_seed

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
    config, train_data, *_ = prepare(**tiny, train_batch_size=64, N=17)
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


def test_non_sampling_sees_the_pairs_of_a_user_together_and_users_shuffled(tiny):
    config, train_data, *_ = prepare(**tiny, sampler="non_sampling", train_batch_size=64)
    loader, feat = positives_only(config, train_data), train_data._dataset.inter_feat
    seen = pairs_of(loader)
    assert sorted(seen) == sorted(zip(feat["user_id"].tolist(), feat["item_id"].tolist()))
    stretches = [user for user, _ in itertools.groupby(user for user, _ in seen)]
    assert sorted(stretches) == sorted(set(feat["user_id"].tolist()))
    assert stretches != sorted(stretches)
    loader.set_epoch(1)
    assert pairs_of(loader) != seen


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


def _batches_of_one_rank(rank: int, port: int, data_path: str, folder: str) -> None:
    address = f"tcp://127.0.0.1:{port}"
    torch.distributed.init_process_group("gloo", address, rank=rank, world_size=2)
    init_seed(1, True)  # RecBole's random split
    config, train_data, *_ = prepare(data_path=data_path, train_batch_size=64, show_progress=False)
    config["single_spec"], config["world_size"] = False, 2
    loader = positives_only(config, train_data)
    batches = list(loader)
    torch.save([len(loader), [len(b) for b in batches], pairs_of(batches)], f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_processes_share_the_training_set_and_the_batch(tiny, tmp_path):
    """Two real processes on loopback: together they see all pairs, in as many steps each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    group = torch.multiprocessing.spawn(
        _batches_of_one_rank, (port, tiny["data_path"], str(tmp_path)), nprocs=2, join=False
    )
    try:
        assert group.join(timeout=120) or group.join(timeout=30)
    finally:
        for process in group.processes:
            process.kill()
    (n_0, sizes_0, pairs_0), (n_1, sizes_1, pairs_1) = (
        torch.load(Path(tmp_path) / f"{rank}.pt") for rank in (0, 1)
    )
    init_seed(1, True)
    feat = prepare(**tiny)[1]._dataset.inter_feat
    everything = set(zip(feat["user_id"].tolist(), feat["item_id"].tolist()))
    assert set(pairs_0) | set(pairs_1) == everything
    assert n_0 == n_1 == len(sizes_0) == len(sizes_1)
    assert sizes_0[0] == 32  # train_batch_size is the whole group's
    assert len(set(pairs_0) & set(pairs_1)) <= 1  # an odd one is repeated to make ends meet
