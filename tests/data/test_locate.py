import zipfile

import pytest
import yaml
from conftest import write_inter

from recbole_hns import Error, HNSConfig
from recbole_hns.data import locate


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
