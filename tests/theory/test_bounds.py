from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbole_hns.errors import Error
from recbole_hns.theory import count_in_topk, recall_interval, topk_bounds, users_outside_bounds
from recbole_hns.theory.bounds import _bounds_of_i

SIZES = [
    (n_pos, n_neg, k)
    for n in range(3, 9)
    for n_pos in range(1, n - 1)  # N₊ ≤ K too, which the theorem does not need to leave out
    for n_neg in [n - n_pos]
    for k in range(1, n_neg)
]


def opauc(positives, negatives, k):
    """The estimator as the paper writes it, for β = K/N₋; an item's score is minus its position."""
    hardest = sorted(negatives)[:k]
    return sum(-i > -j for i in positives for j in hardest) / (len(positives) * len(negatives))


def rankings(n_pos, n_neg):
    """The positions of positives and negatives in all permutations that differ in them."""
    everything = set(range(n_pos + n_neg))
    for positives in combinations(sorted(everything), n_pos):
        yield positives, sorted(everything - set(positives))


@pytest.mark.parametrize(("n_pos", "n_neg", "k"), SIZES)
def test_all_permutations_lie_within_both_intervals(n_pos, n_neg, k):
    for positives, negatives in rankings(n_pos, n_neg):
        value = opauc(positives, negatives, k)
        i = sum(p < k for p in positives)
        printed, tight = (topk_bounds(value, k, n_pos, n_neg, tight) for tight in (False, True))
        assert printed.recall[0] <= tight.recall[0] <= i / n_pos <= tight.recall[1] <= printed.recall[1]
        assert printed.precision[0] <= tight.precision[0] <= i / k
        assert i / k <= tight.precision[1] <= printed.precision[1]


@pytest.mark.parametrize(("n_pos", "n_neg", "k"), SIZES)
def test_tight_interval_cannot_be_smaller(n_pos, n_neg, k):
    """For every possible OPAUC, a permutation meets each end (the upper one if not above K)."""
    precisions = defaultdict(set)
    for positives, negatives in rankings(n_pos, n_neg):
        precisions[opauc(positives, negatives, k)].add(sum(p < k for p in positives) / k)
    for value, met in precisions.items():
        low, high = topk_bounds(value, k, n_pos, n_neg, tight=True).precision
        assert min(met) == low
        assert max(met) == min(high, 1)


@given(
    st.integers(1, 300).flatmap(
        lambda k: st.tuples(st.just(k), st.integers(k + 1, 10**4), st.integers(k + 1, 10**6), st.data())
    )
)
def test_rounding_does_not_move_floor_or_ceiling(case):
    k, n_pos, n_neg, data = case
    i = data.draw(st.integers(0, k))
    for S, end in ((i * i, 1), (i * (n_pos + k - i), 0)):
        # Both roots are whole here: floor, ceiling and the root itself are one.
        for value in (S / (n_pos * n_neg), S / n_pos / n_neg, np.nextafter(S / n_pos / n_neg, 1)):
            for tight in (False, True):
                assert topk_bounds(value, k, n_pos, n_neg, tight).precision[end] == i / k


def test_printed_form_follows_the_formula():
    k, n_pos, n_neg, S = 5, 20, 80, 30  # √30 = 5.48, (25 − √505) / 2 = 1.26
    value = S / (n_pos * n_neg)
    assert topk_bounds(value, k, n_pos, n_neg) == ((1 / 20, 6 / 20), (1 / 5, 6 / 5))
    assert topk_bounds(value, k, n_pos, n_neg, tight=True) == ((2 / 20, 5 / 20), (2 / 5, 5 / 5))


@pytest.mark.parametrize("S", [2.5, 2.3])
def test_sums_between_integers(S):
    # √2.5 = 1.58, (25 − √615) / 2 = 0.10
    assert topk_bounds(S / 1600, 5, 20, 80).precision == (0, 2 / 5)
    assert topk_bounds(S / 1600, 5, 20, 80, tight=True).precision == (1 / 5, 1 / 5)


def test_count_in_topk_counts_positions():
    for positives, negatives in rankings(3, 5):
        above = [sum(j < i for j in negatives) for i in reversed(positives)]
        for k in range(1, 9):
            assert count_in_topk(above, k) == sum(p < k for p in positives)
    assert count_in_topk([], 3) == 0


def above_of(rng, n_pos, n_neg):
    """The a_i of random permutations, users one after the other."""
    positions = [np.sort(rng.choice(p + n, p, replace=False)) for p, n in zip(n_pos, n_neg)]
    return np.concatenate([rng.permutation(x - np.arange(len(x))) for x in positions])


@pytest.mark.parametrize("tight", [False, True])
def test_users_of_random_rankings_are_inside(tight):
    rng = np.random.default_rng(0)
    n_pos, n_neg = rng.integers(0, 40, 300), rng.integers(3, 200, 300)
    above = above_of(rng, n_pos, n_neg)
    for k in (1, 5, 20):
        checked = ((n_pos > 0) & (n_neg > k)).sum()
        assert users_outside_bounds(above, n_pos, n_neg, k, tight) == (checked, [])


def test_with_fewer_negatives_than_k_the_bounds_would_fail():
    """Why N₋ ≤ K is refused: OPAUC(1) sums over N₋ negatives where the proof takes K of them."""
    broken = total = 0
    for n_pos, n_neg, k in [(p, n, k) for p in range(1, 6) for n in range(1, 4) for k in range(n, 7)]:
        for positives, negatives in rankings(n_pos, n_neg):
            S = round(opauc(positives, negatives, k) * n_pos * n_neg)
            low, high = _bounds_of_i(S, k, n_pos, tight=False)
            total += 1
            broken += not low <= sum(p < k for p in positives) <= high
            if n_neg == k:
                assert low <= sum(p < k for p in positives) <= high
    assert 0 < broken < total


def test_the_interval_of_recall_holds_the_means_of_the_users_it_covers():
    rng = np.random.default_rng(3)
    n_pos, n_neg = rng.integers(0, 12, 200), rng.integers(3, 60, 200)
    above = above_of(rng, n_pos, n_neg)
    starts = np.cumsum(n_pos) - n_pos
    for k in (1, 5, 20):
        covered, rows = (n_pos > 0) & (n_neg > k), []
        for u in np.flatnonzero(covered):
            a = above[starts[u] : starts[u] + n_pos[u]]
            value = np.maximum(0, k - a).sum() / n_pos[u] / n_neg[u]
            recall = topk_bounds(value, k, int(n_pos[u]), int(n_neg[u]), tight=True).recall
            rows.append((count_in_topk(a, k) / n_pos[u], *recall))
        found = recall_interval(above, n_pos, n_neg, k)
        assert found[:3] == pytest.approx(np.mean(rows, axis=0).tolist())
        assert (found.users, found.of) == (covered.sum(), (n_pos > 0).sum())
        assert found.low <= found.recall <= found.high
    assert str(found).endswith(
        f"means over {found.users} of {found.of} users ({found.users / found.of:.1%}), those with more "
        "than K negatives"
    )


def test_where_nobody_has_enough_negatives_there_is_no_interval():
    none = recall_interval([0, 1], [2], [3], 3)
    assert none[3:] == (0, 1)
    assert str(none) == "not bounded by the theorem: no user has more than K negatives"


def test_a_tie_stands_in_the_middle_as_in_the_metrics():
    """1 negative above and 3 ties: 2.5, so the positive comes fourth."""
    assert recall_interval([2.5], [1], [9], 3)[:3] == (0, 0, 0)
    assert recall_interval([2.5], [1], [9], 4)[:3] == (1, 1, 1)


def test_users_outside_are_named():
    # User 1 has a tie that counts ½ for OPAUC and whole for Recall@1, which no permutation allows.
    above = np.array([0, 1, 2, 1, 0.5, 0, 0, 0, 0])
    n_pos, n_neg = np.array([3, 2, 1, 3]), np.array([9, 9, 9, 1])
    assert users_outside_bounds(above, n_pos, n_neg, 1, tight=True) == (3, [1])
    assert users_outside_bounds(above, n_pos, n_neg, 1, tight=False) == (3, [])


def test_unsigned_counts_do_not_wrap_around():
    rng = np.random.default_rng(1)
    n_pos, n_neg = np.full(20, 6), np.full(20, 50)
    above = above_of(rng, n_pos, n_neg).astype(np.uint8)
    assert users_outside_bounds(above, n_pos, n_neg, 5, tight=True) == (20, [])


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ((0.1, 0, 5, 5), "k=0"),
        ((0.1, 5, 0, 9), "n_pos=0"),
        ((0.1, 5, 9, 5), "n_neg=5"),
        ((0.1, 6, 9, 5), "n_neg=5"),
        ((-0.01, 2, 5, 5), "opauc=-0.01"),
        ((0.41, 2, 5, 5), "opauc=0.41"),
        ((float("nan"), 2, 5, 5), "opauc=nan"),
        ((float("inf"), 2, 5, 5), "opauc=inf"),
    ],
)
def test_impossible_values_are_refused(arguments, key):
    with pytest.raises(Error, match=key):
        topk_bounds(*arguments)


def test_users_that_do_not_fit_are_refused():
    with pytest.raises(Error, match="above has 3 values"):
        users_outside_bounds(np.zeros(3), np.array([2, 2]), np.array([5, 5]), 1, tight=True)
    with pytest.raises(Error, match="n_neg 1 users"):
        users_outside_bounds(np.zeros(4), np.array([2, 2]), np.array([5]), 1, tight=True)
    with pytest.raises(Error, match="k=0"):
        users_outside_bounds(np.zeros(4), np.array([2, 2]), np.array([5, 5]), 0, tight=True)
    with pytest.raises(Error, match="-1"):
        users_outside_bounds(np.array([0, -1]), np.array([2]), np.array([5]), 1, tight=True)
