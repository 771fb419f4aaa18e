"""A line's knowledge of users, against Python sets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from random_lines import case_of, random_case

USERS = torch.tensor([3, 0, 11, 3, 7])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", [0, 1])
def test_who_took_what(first, weighted):
    case = random_case(first, weighted)
    negatives = [len(case.negatives(user)) for user in USERS]
    assert case.line.negatives_of(USERS).tolist() == negatives
    assert case.line.n_positives_of(USERS).tolist() == [30 - first - n for n in negatives]
    places, items = case.line.positives_of(USERS)
    expected = [(place, j) for place, user in enumerate(USERS) for j in sorted(case.taken[user])]
    assert list(zip(places.tolist(), items.tolist())) == expected
    everything = torch.arange(30)
    for user in range(12):
        marked = case.line.is_positive(torch.full((30,), user), everything)
        assert set(everything[marked].tolist()) == case.taken[user]
    assert case.line.mass.tolist() == [sum(case.weights[case.negatives(u)]) for u in range(12)]


def test_where_nobody_took_anything_nothing_is_a_positive():
    line = case_of([np.array([], dtype=int)] * 2, 5, 0).line
    assert line.negatives_of(torch.tensor([0, 1])).tolist() == [5, 5]
    assert not line.is_positive(torch.tensor([0, 1, 1]), torch.tensor([0, 2, 4])).any()
    assert [len(column) for column in line.positives_of(torch.tensor([0, 1]))] == [0, 0]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_line_moves_with_all_its_tensors(weighted):
    moved = random_case(1, weighted).line.to(torch.device("meta"))
    tensors = [value for value in vars(moved).values() if isinstance(value, torch.Tensor)]
    assert len(tensors) == 5 + weighted
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert moved.first == 1
