"""What needs too much memory is refused in a sentence, before it is taken."""

from pathlib import Path

import pytest

from recbole_hns import Error, run_recbole_hns
from recbole_hns.runs import needs
from recbole_hns.runs.needs import COPIES

QUICK = {"epochs": 1, "sampler": "softmax_v", "N": 5, "state": "ERROR"}


@pytest.fixture
def refusal(tiny, monkeypatch):
    """Run with so much memory; the sentence, and nothing on the disk."""

    def run(there, **settings):
        monkeypatch.setattr(needs, "available", lambda: there)
        before = sorted(Path().rglob("*"))
        with pytest.raises(Error) as error:
            run_recbole_hns("BPR", "tiny", config_dict={**tiny, **QUICK, **settings})
        assert sorted(Path().rglob("*")) == before
        return str(error.value)

    return run


def test_vectors_with_gradients_and_moments_are_counted(refusal):
    """41 users and 60 items with the paddings, 1000 numbers of 4 bytes each, four times."""
    said = refusal(10**6, embedding_size=1000)
    assert f"embedding_size=1000 needs {101 * 1000 * 4 * COPIES / 1e6:.1f} MB" in said
    assert "of memory for 101 users and items, and 1.0 MB can be had: make it smaller." in said


def test_what_is_held_together_is_added_up(refusal, tiny):
    """Each alone would fit."""
    each = 24 * 400 * 100  # N = 100 candidates of 400 pairs
    assert "N=100 needs 1.0 MB" in refusal(each, N=100, embedding_size=8)
    assert "N=500 needs 0.8 MB" in refusal(4 * 400 * 500, N=500, embedding_size=8, sampler="dns")
    both = 101 * 1000 * 4 * COPIES + 24 * 400
    assert "embedding_size=1000 needs" in refusal(both - 1, N=1, embedding_size=1000)
    run_recbole_hns("BPR", "tiny", config_dict={**tiny, **QUICK, "N": 1, "embedding_size": 999})


@pytest.mark.parametrize(
    ("there", "settings", "words"),
    [
        (20_000, {}, "data set tiny needs about"),
        (5 * 10**7, {"N": 10**6, "train_batch_size": 10**6}, "N=1000000 needs"),
    ],
    ids=["files", "candidates"],
)
def test_what_shows_before_anything_is_read_is_refused_then(
    refusal, monkeypatch, there, settings, words
):
    monkeypatch.setattr("recbole_hns.runs.pipeline.create_dataset", lambda config: 1 / 0)
    assert words in refusal(there, **settings)
