"""Files as editors leave them: with a mark before the first character, or with blank lines."""

import pytest
from conftest import random_pairs, write_inter

from recbole_hns import Error, run_recbole_hns

QUICK = {"epochs": 2, "sampler": "dns", "N": 3, "state": "ERROR", "result_dir": None}


def result(folder, change, model="BPR", **more):
    """What a run on the data set gives once ``change`` has edited its file."""
    write_inter(folder, "tiny", random_pairs())
    file = folder / "tiny" / "tiny.inter"
    file.write_bytes(change(file.read_bytes()))
    settings = {**QUICK, **more, "data_path": str(folder), "show_progress": False}
    return run_recbole_hns(model, "tiny", config_dict=settings)["test_result"]


def blank_lines(content):
    """One below the header, one between, two at the end."""
    head, *lines = content.split(b"\n")
    return b"\n".join([head, b"", *lines[:100], b"", *lines[100:], b"", b""])


SEQUENCES = {"load_col": {"inter": ["user_id", "item_id", "timestamp"]}, "MAX_ITEM_LIST_LENGTH": 5}


@pytest.mark.parametrize(
    ("change", "more"),
    [
        (lambda content: b"\xef\xbb\xbf" + content, {}),
        (lambda content: b"\xef\xbb\xbf" + content, {"encoding": "utf-8"}),
        (lambda content: b"\xef\xbb\xbf" + content, {"model": "GRU4Rec", **SEQUENCES}),
        (blank_lines, {}),
    ],
    ids=["mark", "mark, utf-8", "mark, sequences", "blank lines"],
)
def test_the_same_numbers_come_out(tmp_path, change, more):
    assert result(tmp_path / "b", change, **more) == result(tmp_path / "a", lambda c: c, **more)


def test_blank_lines_alone_are_no_interaction(tmp_path):
    with pytest.raises(Error, match="holds no interaction"):
        result(tmp_path, lambda content: content.split(b"\n")[0] + b"\n\n\n")
