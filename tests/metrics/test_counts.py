"""Rank counts against loops over sorted lists."""

import numpy as np
import pytest
import torch

from recbole_hns.kernels import get_kernels
from recbole_hns.metrics import RankCounts
from recbole_hns.metrics.counts import can_count

NUMBA = get_kernels("numba", torch.device("cpu"))
USERS, ITEMS = 7, 30


@pytest.fixture(params=[False, True], ids=["distinct", "ties"])
def case(request, generator):
    """(scores, users and items of the positives): −inf marks items that take no part."""
    scores = torch.randn(USERS, ITEMS, generator=generator)
    if request.param:
        scores = scores.round()
    scores[:, 0] = -torch.inf
    pairs = []
    for user in range(USERS):
        chosen = (torch.randperm(ITEMS - 1, generator=generator) + 1).tolist()
        pairs += [(user, item) for item in chosen[: 1 + user]]
        scores[user, chosen[-user:] if user else []] = -torch.inf
    order = torch.randperm(len(pairs), generator=generator)
    return scores, *torch.tensor(pairs)[order].T


def by_loops(scores, positive_u, positive_i):
    """(user, above, n₊, n₋) of every positive, ascending within a user."""
    rows = []
    for user in range(len(scores)):
        positives = positive_i[positive_u == user].tolist()
        negatives = [
            float(scores[user, j])
            for j in range(scores.shape[1])
            if j not in positives and scores[user, j] > -torch.inf
        ]
        above = []
        for i in positives:
            r = float(scores[user, i])
            above.append(sum((x > r) + 0.5 * (x == r) for x in negatives))
        rows += [(user, x, len(positives), len(negatives)) for x in sorted(above)]
    return rows


def test_counts_are_the_negatives_above_each_positive(case, kernels):
    counts, rows = RankCounts.from_scores(*case, kernels), by_loops(*case)
    assert counts.above.tolist() == [row[1] for row in rows]
    assert counts.n_pos.tolist() == [row[2] for row in rows]
    assert counts.n_neg.tolist() == [row[3] for row in rows]
    places = [k for user in range(USERS) for k in range(sum(row[0] == user for row in rows))]
    assert counts.place.tolist() == places


def test_by_user_gives_what_the_bounds_take(case, kernels):
    above, n_pos, n_neg = RankCounts.from_scores(*case, kernels).by_user()
    rows = by_loops(*case)
    assert above.tolist() == [row[1] for row in rows]
    assert n_pos.tolist() == list(range(1, USERS + 1))
    assert n_neg.tolist() == [next(row[3] for row in rows if row[0] == user) for user in range(USERS)]


def test_hits_are_the_places_of_positives_in_the_sorted_list(case, kernels):
    """As RecBole's ``rec.topk``; a positive that ties with negatives stands in the middle of them."""
    k = 5
    hits = RankCounts.from_scores(*case, kernels).hits(k)
    rows = by_loops(*case)
    expected = torch.zeros(USERS, k + 1, dtype=torch.int64)
    for user in range(USERS):
        own = [row for row in rows if row[0] == user]
        for place, (_, above, _, _) in enumerate(own):
            rank = int(np.ceil(above)) + place
            if rank < k:
                expected[user, rank] = 1
        expected[user, k] = len(own)
    assert torch.equal(hits, expected)


def test_without_ties_hits_are_those_of_a_sort(generator):
    scores = torch.randn(3, ITEMS, generator=generator)
    positives = torch.tensor([[0, 4], [0, 9], [1, 2], [2, 7], [2, 8], [2, 9]])
    hits = RankCounts.from_scores(scores, *positives.T, NUMBA).hits(10)
    for user in range(3):
        taken = positives[positives[:, 0] == user, 1]
        top = scores[user].argsort(descending=True)[:10]
        assert hits[user].tolist() == [*torch.isin(top, taken).int().tolist(), len(taken)]


def test_batches_of_users_are_joined(case, kernels):
    scores, users, items = case
    parts = []
    for some in (range(3), range(3, USERS)):
        of_these = torch.isin(users, torch.tensor(list(some)))
        own = scores[some.start : some.stop]
        parts.append(RankCounts.from_scores(own, users[of_these] - some.start, items[of_these], kernels))
    whole, joined = RankCounts.from_scores(*case, kernels), RankCounts.concatenate(parts)
    for name in ("above", "place", "n_pos", "n_neg", "tied"):
        assert getattr(whole, name).tolist() == getattr(joined, name).tolist()


def test_users_without_negatives_are_counted_and_left_out(kernels):
    scores = torch.tensor([[1.0, 2.0, -torch.inf], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    users, items = torch.tensor([0, 0, 1, 2, 2, 2]), torch.tensor([0, 1, 1, 0, 1, 2])
    kept, left_out = RankCounts.from_scores(scores, users, items, kernels).with_negatives()
    assert left_out == 2
    assert (kept.above.tolist(), kept.n_neg.tolist()) == ([1.0], [2.0])


def test_counting_is_for_batches_that_it_knows(generator):
    """Not for positives named twice or taking no part, nor users without any."""
    scores = torch.randn(2, 5, generator=generator)
    users, items = torch.tensor([0, 1, 1]), torch.tensor([2, 3, 4])
    assert can_count(scores, users, items)
    assert not can_count(scores, torch.tensor([0, 1, 1]), torch.tensor([2, 3, 3]))
    assert not can_count(scores, torch.tensor([1, 1]), torch.tensor([3, 4]))
    assert not can_count(scores.to("meta"), users, items)
    scores[1, 3] = -torch.inf
    assert not can_count(scores, users, items)
