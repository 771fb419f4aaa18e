import numpy as np

from recbole_hns.sampling.positives import Positives


def test_rows_are_sorted_and_without_repeats():
    users = np.array([2, 0, 2, 2, 0])
    items = np.array([5, 1, 3, 5, 4])
    positives = Positives(users, items, n_users=4, n_items=6)
    assert [positives.row(u).tolist() for u in range(4)] == [[1, 4], [], [3, 5], []]
    assert positives.counts.tolist() == [2, 0, 2, 0]


def test_it_reads_like_recboles_array_of_sets():
    positives = Positives(np.array([1, 1]), np.array([2, 3]), n_users=3, n_items=5)
    assert positives[1] == {2, 3}
    assert positives[0] == set()
    assert len(positives) == 3


def test_users_who_took_everything_are_found():
    users, items = np.repeat([1, 2], [4, 3]), np.array([1, 2, 3, 4, 1, 2, 3])
    positives = Positives(users, items, n_users=3, n_items=5)
    assert positives.users_without_negatives().tolist() == [1]
