"""Raw files are checked before they are used: no crash, no memory by the size of an id."""

import resource
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from recbole_hns.data.interactions import k_core, split_test
from recbole_hns.data.read import Columns, numbered, read_interactions
from recbole_hns.errors import Error

GOOD = scipy.sparse.csr_matrix(np.triu(np.ones((6, 9))))


def read(file):
    return read_interactions([Path(file)], Columns())


def names(data):
    """The pairs in the file's own ids."""
    users, items = data.users, data.items
    users = users if data.user_names is None else data.user_names[users]
    items = items if data.item_names is None else data.item_names[items]
    return {(int(user), int(item)) for user, item in zip(users, items)}


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("key", ["indptr", "indices"])
@pytest.mark.parametrize("way", ["decreases", "is negative", "is too large"])
def test_indices_that_lead_out_of_a_matrix_are_refused(form, key, way):
    """A decreasing ``indptr`` was a segmentation fault."""
    good = GOOD.tobsr((1, 1)) if form == "bsr" else GOOD.asformat(form)
    scipy.sparse.save_npz("good.npz", good)
    with np.load("good.npz") as parts:
        content = dict(parts)
    changed = content[key].copy()
    middle = len(changed) // 2
    if way == "decreases":
        changed[1:-1] = changed[1:-1][::-1].copy()
    else:
        changed[middle] = -5 if way == "is negative" else 10**6
    np.savez("bad.npz", **{**content, key: changed})
    if way == "decreases" and key == "indices":  # another matrix, and a right one
        assert names(read("bad.npz"))
        return
    with pytest.raises(Error, match=r"bad\.npz cannot be read as a matrix"):
        read("bad.npz")


def test_an_archive_that_unpacks_to_gigabytes_is_refused_before_it_is():
    scipy.sparse.save_npz("good.npz", GOOD)
    with np.load("good.npz") as parts:
        content = {**parts, "data": np.zeros(2**25)}
    np.savez_compressed("bomb.npz", **content)
    with pytest.raises(Error, match=r"would unpack to 0\.[23] GB"):
        read("bomb.npz")


@pytest.mark.parametrize(
    "line", ["-1 2", "1 -2", "9223372036854775808 1", "1 " + "9" * 30, "1 1.5", "x 1"]
)
def test_ids_that_are_no_numbers_from_0_are_refused(line):
    Path("raw.txt").write_text(f"0 1 2\n{line}\n")
    with pytest.raises(Error, match=r"raw\.txt, line 2: .* whole numbers from 0"):
        read("raw.txt")


def test_large_ids_keep_their_names_and_cost_what_small_ones_do():
    """4294967297 became 1, and 2147483647 took 16 GB."""
    pairs = {(4294967297, 2147483647), (4294967297, 5), (2**63 - 1, 5), (3, 2147483647)}
    Path("raw.txt").write_text("4294967297 2147483647 5\n9223372036854775807 5\n3 2147483647\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data = read("raw.txt")
    assert names(data) == pairs
    assert names(split_test(k_core(data, 1), seed=1)) == pairs
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KB


def test_numbers_are_kept_as_they_are_where_they_waste_nothing():
    numbers, own = numbered(np.array([7, 3, 7, 1_000_003]))
    assert own is None
    assert numbers.tolist() == [7, 3, 7, 1_000_003]
    numbers, own = numbered(np.array([7, 3, 7, 2_000_000]))
    assert own[numbers].tolist() == ["7", "3", "7", "2000000"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b""),
        ("b.csv", b"\x00" * 50),
        ("c.csv", b"user_id,item_id\n\xff\xfe,1\n"),
        ("d.csv", b"user_id,item_id\n" + b'"' + b"x" * 200_000 + b"\n"),
        ("e.csv", b'"' + b"x" * 200_000 + b'",user_id,item_id\n1,2,3\n'),
        ("f.txt", b"1 2\n\xff\xfe\n"),
    ],
)
def test_bytes_that_are_no_text_are_told_in_a_sentence(name, content):
    Path(name).write_bytes(content)
    with pytest.raises(Error, match=name):
        read(name)


@pytest.mark.parametrize("value", ["inf", "-inf", "1e400", "nan"])
def test_a_time_is_a_number(value):
    Path("raw.csv").write_text(f"user_id,item_id,at\n1,2,3\n1,3,{value}\n")
    with pytest.raises(Error, match="line 3: at is not a number"):
        read_interactions([Path("raw.csv")], Columns(time="at"))
