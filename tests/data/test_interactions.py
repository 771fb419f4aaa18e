"""The paper's preparation against loops."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recbole_hns import Error
from recbole_hns.data.interactions import (
    TEST,
    TRAIN,
    VALID,
    Interactions,
    hold_out,
    k_core,
    split_test,
    statistics,
    without_repeats,
)

pairs = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=120)


def interactions(pairs, parts=None):
    users, items = (np.array(column, dtype=np.int32) for column in zip(*pairs))
    return Interactions(users, items, parts=None if parts is None else np.array(parts, dtype=np.int8))


def k_core_by_loops(pairs, k):
    pairs = list(pairs)
    while True:
        users, items = Counter(u for u, _ in pairs), Counter(i for _, i in pairs)
        kept = [(u, i) for u, i in pairs if users[u] >= k and items[i] >= k]
        if len(kept) == len(pairs):
            return kept
        pairs = kept


@settings(max_examples=100, deadline=None)
@given(pairs, st.integers(1, 4))
def test_k_core_is_the_fixed_point(pairs, k):
    expected = k_core_by_loops(pairs, k)
    if not expected:
        with pytest.raises(Error, match=f"core={k}"):
            k_core(interactions(pairs), k)
        return
    core = k_core(interactions(pairs), k)
    assert list(zip(core.users.tolist(), core.items.tolist())) == expected


@settings(max_examples=100, deadline=None)
@given(pairs, st.integers(0, 5))
def test_the_split_is_per_user_and_by_the_rounded_share(pairs, seed):
    data = without_repeats(interactions(pairs))
    assert len(set(zip(data.users.tolist(), data.items.tolist()))) == len(data) == len(set(pairs))
    split = hold_out(split_test(data, seed), seed)
    parts = defaultdict(Counter)
    for user, part in zip(split.users.tolist(), split.parts.tolist()):
        parts[user][part] += 1
    for counts in parts.values():
        n = sum(counts.values())
        training = round(0.8 * n)
        assert counts[TEST] == n - training
        assert counts[VALID] == round(0.1 * training)
        assert counts[TRAIN] == training - counts[VALID]


def test_the_split_is_random_and_follows_the_seed():
    data = interactions([(u, i) for u in range(50) for i in range(20)])
    first, again, other = (split_test(data, seed).parts for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    places = np.bincount(data.items[first == TEST], minlength=20)
    assert places.min() > 0  # no place of the file is always on one side


def test_of_a_repeat_the_training_one_stays():
    data = interactions([(1, 1), (1, 1), (2, 1), (2, 1)], parts=[TEST, TRAIN, TRAIN, TRAIN])
    kept = without_repeats(data)
    assert sorted(zip(kept.users.tolist(), kept.items.tolist(), kept.parts.tolist())) == [
        (1, 1, TRAIN),
        (2, 1, TRAIN),
    ]


def test_statistics_are_the_papers_table():
    data = hold_out(split_test(interactions([(u, i) for u in range(10) for i in range(10)]), 0), 0)
    assert statistics(data) == {
        "users": 10,
        "items": 10,
        "interactions": 100,
        "train": 80,
        "test": 20,
        "held_out": 10,
        "sparsity": 0.0,
    }
