"""The world that pools draw from: counts, random streams, and users with nothing to draw."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from recbole_hns import Error
from recbole_hns.sampling import Positives, World, pools

TAKEN = csr_matrix([[1, 1, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]])


def test_counts_are_how_often_items_were_taken_unless_told():
    assert World(TAKEN).counts.tolist() == [1, 2, 0, 0, 1]
    told = np.array([5, 0, 0, 1, 1])
    assert World(TAKEN, told).counts.tolist() == told.tolist()


def test_the_line_holds_each_users_negatives():
    world = World(TAKEN)
    assert (world.n_users, world.n_items) == (3, 5)
    assert world.line.mass.tolist() == [2, 4, 5]
    assert world.line.negatives_of(torch.tensor([2, 0])).tolist() == [5, 2]
    weighted = world.weighted_line(np.array([10, 20, 3, 4, 50]))
    assert weighted.mass.tolist() == [3 + 4, 10 + 3 + 4 + 50, 87]


def test_a_padding_is_no_item():
    world = World(Positives.from_csr(TAKEN, first=1))
    assert world.line.mass.tolist() == [2, 3, 4]
    source = pools.Uniform().open(world)
    assert set(source.draw(torch.tensor([2]), 500).ids[0].tolist()) == {1, 2, 3, 4}


def test_all_that_is_random_is_a_function_of_seed_rank_and_epoch(backend):
    def drawn(seed, rank, epoch, before=0):
        world = World(TAKEN, hns_backend=backend, seed=seed, rank=rank)
        source = pools.Uniform().open(world)
        source.draw(torch.tensor([1]), before + 1)
        world.start_epoch(epoch)
        return tuple(source.draw(torch.tensor([1]), 60).ids[0].tolist())

    moments = [(seed, rank, epoch) for seed in (0, 1) for rank in (0, 1) for epoch in (0, 1)]
    assert len({drawn(*moment) for moment in moments}) == 8
    for moment in moments:
        assert drawn(*moment) == drawn(*moment, before=33)


@pytest.mark.parametrize(
    ("full", "who"),
    [
        ([1], "user 1 took"),
        ([0, 2], "users 0 and 2 took"),
        ([0, 1, 2, 3, 4], "users 0, 1, 2 and 2 more took"),
    ],
)
def test_users_without_negatives_are_named_with_the_remedy(full, who):
    matrix = np.zeros((6, 4))
    matrix[full] = 1
    with pytest.raises(Error, match=rf'^{who} every item.*user_inter_num_interval.*"\[0,2\]"') as error:
        pools.Uniform().open(World(csr_matrix(matrix)))
    assert str(error.value).count("\n") == 0


def test_messages_call_users_as_they_are_told():
    world = World(TAKEN, names=lambda users: [f"u-{user}" for user in users])
    assert world.name_users(np.array([4, 5])) == "users u-4 and u-5"


def test_the_backend_is_the_one_that_is_named():
    assert World(TAKEN).backend.name == "numba"
    assert World(TAKEN, hns_backend="torch").backend.name == "torch"
    with pytest.raises(Error, match="hns_backend=numpy is unknown"):
        World(TAKEN, hns_backend="numpy")
