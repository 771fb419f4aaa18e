"""Who took what, as a CSR matrix, against sets."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_matrix

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
    assert positives[None] == set()  # RecBole's loader asks for the user before the first
    assert len(positives) == 3


@pytest.mark.parametrize(("first", "full"), [(0, []), (1, [1])])
def test_users_who_took_everything_are_found(first, full):
    users, items = np.repeat([1, 2], [4, 3]), np.array([1, 2, 3, 4, 1, 2, 3])
    positives = Positives(users, items, n_users=3, n_items=5, first=first)
    assert positives.users_without_negatives().tolist() == full


def test_a_scipy_matrix_says_the_same_as_its_triples(generator):
    """Stored zeros are no interactions, and a stored repeat is one."""
    rng = np.random.default_rng(3)
    users, items = rng.integers(0, 7, 60), rng.integers(0, 11, 60)
    data = (rng.random(60) < 0.8).astype(float)
    positives = Positives.from_csr(coo_array((data, (users, items)), shape=(7, 11)))
    assert (positives.n_users, positives.n_items, positives.first) == (7, 11, 0)
    for user in range(7):
        expected = {int(j) for u, j, one in zip(users, items, data) if u == user and one}
        assert positives[user] == expected
        assert positives.row(user).tolist() == sorted(expected)


def test_ids_below_the_first_item_stand_for_no_item():
    positives = Positives.from_csr(csr_matrix([[1, 1, 0, 1], [1, 0, 0, 0]]), first=1)
    assert [positives[user] for user in range(2)] == [{1, 3}, set()]
    assert positives.users_without_negatives().tolist() == []
