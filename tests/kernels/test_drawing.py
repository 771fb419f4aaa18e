"""Draws from a line against the distribution by definition, on both backends."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from random_lines import assert_follows, case_of, random_case


@pytest.fixture(params=[0, 1], ids=["from_0", "padded"])
def first(request):
    """The first real item."""
    return request.param


# A block of 4 or 12 holds each of the 12 users once, so a user's draws stay independent.
@pytest.mark.parametrize("block", [1, 4, 12])
@pytest.mark.parametrize("N", [3, 50])
@pytest.mark.parametrize("weighted", [False, True])
def test_draws_follow_the_weights_of_the_users_negatives(kernels, generator, first, weighted, N, block):
    case = random_case(first, weighted)
    users = torch.arange(12).repeat(20_000 // N)
    candidates = kernels.draw(case.line, users, N, block, generator)
    assert candidates.ids.dtype == torch.int32
    assert candidates.log_q is None
    for user in range(12):
        assert case.q(user)[first] > 0 or first in case.taken[user]  # the first item takes part
        assert_follows(candidates.ids[users == user].flatten().numpy(), case.q(user))


def test_draws_with_weights_beyond_32_bits_follow_them_too(kernels, generator, first):
    rows = [np.arange(2, 2 + size) for size in range(8)]
    weights = np.arange(30, dtype=np.int64) + 1 - first << 34
    case = case_of(rows, 30, first, weights)
    assert case.line.before.dtype == torch.int64
    users = torch.arange(8).repeat(1000)
    ids = kernels.draw(case.line, users, 20, 1, generator).ids
    for user in range(8):
        assert_follows(ids[users == user].flatten().numpy(), case.q(user))


@pytest.mark.parametrize("n_items", [400, 3000])
def test_many_positives_are_left_out_as_exactly_as_few(kernels, generator, first, n_items):
    case = random_case(first, n_users=6, n_items=n_items)
    users = torch.arange(6).repeat_interleave(200)
    for block in (1, 16):
        ids = kernels.draw(case.line, users, 40, block, generator).ids
        for user in range(6):
            assert set(ids[users == user].flatten().tolist()) <= set(case.negatives(user))
        assert ids[users == 5].unique().tolist() == [first + 5]  # the one that is left


def test_users_who_took_nothing_get_every_item(kernels, generator, first):
    nothing = case_of([np.array([], dtype=int)] * 3, 7, first)
    for block in (1, 2):
        ids = kernels.draw(nothing.line, torch.tensor([0, 1, 2]), 2000, block, generator).ids
        for row in ids:
            assert_follows(row.numpy(), nothing.q(0))


def test_draws_within_a_block_are_shared_and_blocks_are_independent(kernels, generator, first):
    users = torch.zeros(64, dtype=torch.long)  # no positives: nothing to replace
    candidates = kernels.draw(random_case(first).line, users, 30, 16, generator)
    blocks = candidates.ids.view(4, 16, 30)
    assert (blocks == blocks[:, :1]).all()
    assert (candidates.shared.ids == blocks[:, 0]).all()
    assert len({tuple(row.tolist()) for row in candidates.shared.ids}) == 4
    assert len(candidates.shared.pair) == 0


def test_replaced_slots_are_exactly_those_that_differ(kernels, generator, first):
    case = random_case(first)
    users = torch.arange(12).repeat(9)[:101]  # the last block is not full
    candidates = kernels.draw(case.line, users, 30, 8, generator)
    shared = candidates.shared
    common = shared.ids.repeat_interleave(8, dim=0)[:101]
    taken = torch.tensor([[int(j) in case.taken[u] for j in row] for u, row in zip(users, common)])
    marked = torch.zeros_like(taken)
    marked[shared.pair, shared.slot] = True
    assert (marked == taken).all()
    assert (candidates.ids[~taken] == common[~taken]).all()


def test_the_generator_alone_decides_what_is_drawn(kernels):
    line, users = random_case(1).line, torch.arange(12).repeat(10)
    one, two, other = (
        kernels.draw(line, users, 40, 1, torch.Generator().manual_seed(seed)).ids for seed in (3, 3, 4)
    )
    assert torch.equal(one, two)
    # Different seeds agree no more often than chance: Σ_j q_j², averaged over the users.
    chance = np.mean([1 / len(random_case(1).negatives(user)) for user in range(12)])
    assert float((one == other).float().mean()) == pytest.approx(chance, abs=0.03)
