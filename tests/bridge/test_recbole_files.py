"""Property files that people have for RecBole are files for this package too.

``corpora/recbole_files`` holds the keys and values of files of public repositories, which are named in
each. RecBole's own ``Config`` is the oracle: what it takes is taken, or is on the short list below.
"""

from collections import Counter
from pathlib import Path

import pytest
from recbole.config import Config
from recbole.data import create_dataset

from recbole_hns import Error, HNSConfig
from recbole_hns.bridge.install import install
from recbole_hns.runs import pipeline

FILES = sorted((Path(__file__).parents[1] / "corpora" / "recbole_files").glob("*.yaml"))
NO_PAIRS = "choose a pairwise model such as BPR, LightGCN or SASRec"
# Files that RecBole's Config takes and ours does not, each for a reason that its author would agree with.
REFUSED = {
    # Models that do not learn from pairs of a positive and a negative.
    **dict.fromkeys(("ranking_feed_itemknn_model", "ranking_feed_pop_model"), NO_PAIRS),
    **dict.fromkeys(("ranking_feed_dmf_model", "ranking_feed_dmf_model_7"), NO_PAIRS),
    **dict.fromkeys(("ranking_feed_multivae_model", "ranking_feed_multivae_model_8"), NO_PAIRS),
    **dict.fromkeys(("ranking_feed_dssm", "sumerge_recbole_test"), NO_PAIRS),
    "recbole_usage_ease_config": NO_PAIRS,
    "non_items_recbole_coveo_pageview_title_id_core": NO_PAIRS,
    # RecBole trains with Adam where it does not know the optimiser.
    "recbolefusion_recfusion": "learner='adamax'",
    # RecBole's own data preparation fails on one part of three.
    "unisrec_pretrain": "benchmark_filename=['train']",
    "vq_rec_pretrain": "benchmark_filename=['train']",
    "non_items_recbole_coveo_pageview_title_id_bert4rec": "masks items of the sequence",
    "sumerge_recbole_ripplenet_config": "learns from single items",
}


@pytest.fixture(autouse=True)
def as_on_their_machines(tmp_path, monkeypatch):
    """RecBole reads the command line; and many of these files ask for wandb, which is theirs to install."""
    (tmp_path / "installed" / "wandb").mkdir(parents=True)
    (tmp_path / "installed" / "wandb" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    monkeypatch.setattr("sys.argv", ["run"])
    install()


def told_in(file):
    """What the comments on top of a file say: its repository, and a model and data set that it is for."""
    lines = [line[2:] for line in file.read_text("utf-8").splitlines() if line.startswith("# ")]
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def recboles(file):
    """RecBole's configuration, without train_neg_sample_args where it wants that; None if it fails."""
    about = told_in(file)
    for more in ({}, {"train_neg_sample_args": None}):
        try:
            return Config(about["model"], about["dataset"], [str(file)], more)
        except Exception:
            continue
    return None


def ours(file):
    """Our configuration, or what it says."""
    about = told_in(file)
    try:
        return HNSConfig(about["model"], about["dataset"], [str(file)])
    except Error as error:
        return str(error)


def test_there_are_files_of_many_repositories():
    repositories = Counter(told_in(file)["repository"] for file in FILES)
    assert len(FILES) >= 40
    assert len(repositories) >= 20
    assert set(REFUSED) <= {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_recbole_takes_is_taken_or_refused_for_a_good_reason(file):
    if recboles(file) is None:
        pytest.skip("RecBole refuses it")
    found = ours(file)
    if file.stem in REFUSED:
        assert REFUSED[file.stem] in found
    else:
        assert isinstance(found, HNSConfig), found


def test_values_arrive_as_recbole_has_them():
    """A file that is taken is also used: of every key that RecBole knows, both have the same value."""
    derived = {"data_path", "train_neg_sample_args", "MODEL_INPUT_TYPE", "loss_type", "device"}
    compared = 0
    for file in FILES:
        theirs, mine = recboles(file), ours(file)
        if theirs is None or isinstance(mine, str):
            continue
        for key in set(theirs.file_config_dict) & set(mine.known.values) - derived:
            expected = theirs.final_config_dict[key]
            if key == "eval_args":
                expected = {part: how for part, how in expected.items() if part != "item_id"}
            if key == "stopping_step":
                expected = min(expected, mine[key])
            same = {str(mine[key]), f"{mine[key]}/", f"./{mine[key]}/"}  # of a folder
            assert mine[key] == expected or str(expected) in same, (file.stem, key)
            compared += 1
    assert compared > 1000


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_data_that_recbole_loads_by_a_file_is_loaded_by_ours(file):
    """Of ml-100k, which RecBole brings along; what it cannot load is told in a sentence."""
    theirs, mine = recboles(file), ours(file)
    if theirs is None or isinstance(mine, str) or mine["dataset"] != "ml-100k":
        pytest.skip("not taken, or not of ml-100k")
    try:
        expected = create_dataset(theirs)
        expected.build()
    except Exception:
        with pytest.raises(Error):
            pipeline.split(mine, pipeline.load(mine))
        return
    parts = pipeline.split(mine, pipeline.load(mine))
    assert len(parts.train) > 0
