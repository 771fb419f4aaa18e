"""Test pairs that the model was trained on."""

from pathlib import Path

import pytest

from recbole_hns import run_recbole_hns

HEADER = "user_id:token\titem_id:token"
PARTS = {"benchmark_filename": ["train", "valid", "test"], "load_col": {"inter": ["user_id", "item_id"]}}


def run(train, valid, test, caplog, **settings):
    folder = Path("data/own")
    folder.mkdir(parents=True)
    for name, pairs in (("train", train), ("valid", valid), ("test", test)):
        lines = [HEADER, *(f"u{u}\ti{i}" for u, i in pairs)]
        (folder / f"own.{name}.inter").write_text("\n".join(lines) + "\n")
    given = {"data_path": "data", "epochs": 1, "N": 5, "topk": [2], "valid_metric": "NDCG@2", **PARTS}
    with caplog.at_level("WARNING"):
        run_recbole_hns("BPR", "own", config_dict={**given, "show_progress": False, **settings})
    return [m for m in caplog.messages if "training set too" in m]


TRAIN = [(u, (u + d) % 12) for u in range(12) for d in range(4)]
VALID = [(u, (u + 5) % 12) for u in range(12)]
TEST = [(u, (u + 6) % 12) for u in range(12)]
END = "in the training set too: their metrics tell how well it was learned, not how well it predicts."


@pytest.mark.parametrize(
    ("valid", "test", "sentence"),
    [
        (VALID, TRAIN[:20], f"all 20 pairs of the test set are {END}"),
        (VALID, [*TEST, *TRAIN[:3]], f"3 of 15 pairs of the test set are {END}"),
        (
            [*VALID, TRAIN[0]],
            TRAIN[:1],
            f"1 of 13 pairs of the validation set and all 1 pairs of the test set are {END}",
        ),
    ],
)
def test_pairs_of_the_training_set_are_counted_in_one_warning(valid, test, sentence, caplog):
    assert run(TRAIN, valid, test, caplog) == [sentence]


def test_a_split_without_any_is_not_warned_of(caplog):
    assert run(TRAIN, VALID, TEST, caplog) == []
