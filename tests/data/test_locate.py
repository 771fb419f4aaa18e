import zipfile

import numpy as np
import pytest
import yaml
from conftest import random_pairs, write_inter

from recbole_hns import Error
from recbole_hns.cli.main import main
from recbole_hns.data import locate
from recbole_hns.runs import pipeline
from recbole_hns.runs.config import HNSConfig


@pytest.fixture
def urls(tmp_path, monkeypatch):
    """RecBole's list of downloads, replaced by one whose entries are files of this machine."""
    write_inter(tmp_path / "source", "remote", [("u1", "i1"), ("u1", "i2")])
    archive = tmp_path / "Remote-File.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(tmp_path / "source/remote/remote.inter", "Remote-File.inter")
    listing = tmp_path / "url.yaml"
    listing.write_text(yaml.safe_dump({"known": archive.as_uri(), "gone": "file:///no/such.zip"}))
    monkeypatch.setattr(locate, "URLS", listing)


def test_a_known_data_set_is_downloaded_and_renamed(urls, tmp_path):
    locate.ensure_dataset(HNSConfig("BPR", "known", config_dict={"data_path": str(tmp_path / "d")}))
    assert (tmp_path / "d/known/known.inter").is_file()
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["known"]


def test_a_failed_download_is_told_and_leaves_nothing_behind(urls, tmp_path):
    config = HNSConfig("BPR", "gone", config_dict={"data_path": str(tmp_path / "d")})
    before = sorted(tmp_path.iterdir())
    with pytest.raises(Error, match="could not be downloaded"):
        locate.ensure_dataset(config)
    assert sorted(tmp_path.iterdir()) == before


def test_an_unknown_data_set_says_where_it_was_looked_for(urls, tmp_path):
    config = HNSConfig("BPR", "nowhere", config_dict={"data_path": str(tmp_path / "d")})
    with pytest.raises(Error, match=r"nowhere\.inter") as error:
        locate.ensure_dataset(config)
    assert str(tmp_path / "d" / "nowhere") in str(error.value)


def test_a_folder_without_the_interactions_is_refused(tmp_path):
    (tmp_path / "d" / "empty").mkdir(parents=True)
    config = HNSConfig("BPR", "empty", config_dict={"data_path": str(tmp_path / "d")})
    with pytest.raises(Error, match=r"has no empty\.inter"):
        locate.ensure_dataset(config)


SMALL = {"epochs": 1, "train_batch_size": 64, "show_progress": False, "N": 5, "M": 1}


@pytest.mark.parametrize("model", ["BPR", "SASRec"])
@pytest.mark.parametrize("separator", [",", "|", " ", "::"])
def test_columns_are_read_with_any_separator(separator, model, tmp_path, capsys):
    """The same numbers as from tabs."""
    folder = tmp_path / "data" / "tiny"
    for character in ("\t", separator):
        folder.mkdir(parents=True, exist_ok=True)
        lines = [character.join(("user_id:token", "item_id:token", "timestamp:float"))]
        lines += [f"{u}{character}{i}{character}{t}" for t, (u, i) in enumerate(random_pairs())]
        (folder / "tiny.inter").write_text("\n".join(lines) + "\n")
        options = [f"--{key}={value}" for key, value in SMALL.items()]
        options += [f"--field_separator={character}", f"--data_path={folder.parent}", "--sampler=dns"]
        assert main([f"--model={model}", "--dataset=tiny", *options]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[: len(out) // 2] == out[len(out) // 2 :]
    assert out[0].split() == ["metric", "valid", "test"]


def write_sessions(folder, columns=("session_id:token", "item_id_list:token_seq", "item_id:token")):
    """Three files of sequences of three items, each with the item that came next."""
    rng = np.random.default_rng(0)
    (folder / "sessions").mkdir(parents=True)
    for part, n in (("train", 60), ("valid", 15), ("test", 15)):
        rows = ["\t".join(columns)]
        for session in range(n):
            *before, target = (f"i{item}" for item in rng.choice(30, 4, replace=False))
            rows.append(f"{part}{session}\t{' '.join(before)}\t{target}")
        (folder / "sessions" / f"sessions.{part}.inter").write_text("\n".join(rows) + "\n")


PARTS = {"benchmark_filename": ["train", "valid", "test"], "USER_ID_FIELD": "session_id"}


def test_session_parts_need_no_time(tmp_path):
    """What is read is what the files hold; an item of a sequence is the item of that name."""
    write_sessions(tmp_path / "data")
    settings = {**SMALL, **PARTS, "data_path": str(tmp_path / "data"), "sampler": "dns"}
    config = HNSConfig("SASRec", "sessions", config_dict=settings)
    train = pipeline.split(config, pipeline.load(config)).train
    lines = (tmp_path / "data/sessions/sessions.train.inter").read_text().splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    assert train.item_num == 31
    for place in (0, 7, 59):
        own = train.inter_feat[place]
        assert train.id2token("session_id", int(own["session_id"])) == rows[place][0]
        names = train.id2token("item_id", own["item_id_list"].numpy()[:3])
        assert list(names) == rows[place][1].split()
        assert train.id2token("item_id", int(own["item_id"])) == rows[place][2]


@pytest.mark.parametrize(
    ("more", "columns", "words"),
    [
        ({}, ("session_id:token", "items:token_seq", "item_id:token"), "has no column item_id_list"),
        ({"load_col": {"inter": ["session_id", "item_id"]}}, None, "leaves out item_id_list"),
    ],
)
def test_session_parts_without_sequences_are_refused(more, columns, words, tmp_path):
    write_sessions(tmp_path / "data", *([columns] if columns else []))
    settings = {**SMALL, **PARTS, **more, "data_path": str(tmp_path / "data")}
    with pytest.raises(Error, match=words):
        locate.ensure_dataset(
            HNSConfig("SASRec", "sessions", config_dict={**settings, "sampler": "dns"})
        )


def test_interactions_without_a_time_make_no_sequences(tmp_path):
    (tmp_path / "data/timeless").mkdir(parents=True)
    (tmp_path / "data/timeless/timeless.inter").write_text("user_id:token,item_id:token\nu1,i1\n")
    settings = {"data_path": str(tmp_path / "data"), "field_separator": ","}
    with pytest.raises(Error, match="has no column timestamp to order them by"):
        locate.ensure_dataset(HNSConfig("SASRec", "timeless", config_dict=settings))
