"""Ids as they are written: what pandas takes for nothing, lines without an id, a header in the middle."""

from pathlib import Path

import pytest
from recbole.data import create_dataset

from recbole_hns import Error, HNSConfig
from recbole_hns.bridge import compat_reading

NAMES = ["NA", "null", "None", "nan", "N/A", "NULL", "NaN", "n/a", "<NA>", "#N/A"]
BOTH = {"load_col": {"inter": ["user_id", "item_id"]}}


def write(name: str, text: str) -> None:
    folder = Path("data/own")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def loaded(model="BPR", **settings):
    data = {"data_path": "data", "val_interval": None, "user_inter_num_interval": None}
    dataset = create_dataset(HNSConfig(model, "own", config_dict={**data, **BOTH, **settings}))
    return dataset


def tokens(dataset, field):
    return dataset.field2id_token[field].tolist()[1:]


def test_users_and_items_called_like_missing_values_are_kept():
    lines = [f"{user}\t{item}\t1.5" for user in [*NAMES, "u"] for item in [*NAMES, "i"]]
    write("own.inter", "\n".join(["user_id:token\titem_id:token\trating:float", *lines]) + "\n")
    dataset = loaded(load_col={"inter": ["user_id", "item_id", "rating"]})
    assert len(dataset) == 121
    assert tokens(dataset, "user_id") == [*NAMES, "u"]
    assert tokens(dataset, "item_id") == [*NAMES, "i"]


def test_numbers_may_still_be_missing():
    lines = ["a\tb\tNA", "a\tc\t", "a\td\t3", "b\tb\t5"]
    write("own.inter", "\n".join(["user_id:token\titem_id:token\trating:float", *lines]) + "\n")
    dataset = loaded(load_col={"inter": ["user_id", "item_id", "rating"]})
    assert dataset.inter_feat["rating"].tolist() == [4, 4, 3, 5]  # the mean where there is none


def test_names_of_items_and_of_their_tags_are_kept():
    write("own.inter", "user_id:token\titem_id:token\na\tNA\nb\tx\n")
    write("own.item", "item_id:token\ttags:token_seq\tsizes:float_seq\nNA\tnull None\t1 2\nx\t\tNA\n")
    columns = {"inter": ["user_id", "item_id"], "item": ["item_id", "tags", "sizes"]}
    dataset = loaded(load_col=columns)
    dataset._change_feat_format()
    assert sorted(tokens(dataset, "tags")) == ["None", "null"]
    assert dataset.item_feat["sizes"][dataset.token2id("item_id", ["NA", "x"])].tolist() == [
        [1, 2],
        [0, 0],
    ]


def test_lines_without_an_id_are_counted_in_one_warning(caplog):
    write("own.inter", "user_id:token\titem_id:token\na\tb\n\tb\na\t\nc\td\n\t\n")
    with caplog.at_level("WARNING"):
        dataset = loaded()
    assert len(dataset) == 2
    (told,) = [r.getMessage() for r in caplog.records if "empty" in r.getMessage()]
    assert told.endswith(
        "own.inter: 3 of 5 lines have an empty user_id or item_id and are left out, the first of them "
        "line 3."
    )


def test_in_parts_of_their_own_they_are_left_out_too_and_the_parts_stay_apart(caplog):
    """RecBole would make them pairs of the padding; the others must not slip into another part."""
    header = "user_id:token\titem_id:token\n"
    write("own.train.inter", f"{header}a\tb\n\tb\nb\tc\n")
    write("own.valid.inter", f"{header}a\tc\nb\t\n")
    write("own.test.inter", f"{header}a\td\nb\td\n")
    dataset = loaded(benchmark_filename=["train", "valid", "test"])
    assert [len(part) for part in dataset.build()] == [2, 1, 2]
    assert dataset.inter_feat["user_id"].min() == 1
    assert sum("left out" in r.getMessage() for r in caplog.records) == 2  # files


@pytest.mark.parametrize("rating", ["", "\trating:float"])
def test_a_header_in_the_middle_is_no_user(rating):
    header, value = f"user_id:token\titem_id:token{rating}", "\t1" if rating else ""
    write("own.inter", f"{header}\na\tb{value}\n{header}\nb\tc{value}\n")
    columns = ["user_id", "item_id"] + (["rating"] if rating else [])
    with pytest.raises(Error, match=r"own\.inter has its header a second time"):
        loaded(load_col={"inter": columns})


def test_a_number_that_is_none_is_not_taken_for_a_header():
    write("own.inter", "user_id:token\titem_id:token\trating:float\na\tb\tmuch\n")
    with pytest.raises(ValueError, match=r"much|rating:float"):
        loaded(load_col={"inter": ["user_id", "item_id", "rating"]})


def test_doing_so_again_changes_nothing():
    from recbole.data.dataset import dataset

    HNSConfig("BPR", "ml-100k")
    before = dataset.pd
    compat_reading.apply()
    assert dataset.pd is before
