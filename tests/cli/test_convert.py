"""Raw files to data sets that train at once."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from conftest import random_pairs

from recbole_hns import run_recbole_hns
from recbole_hns.cli.main import main
from recbole_hns.runs.artifact import load

SHARED = Path(__file__).parents[3] / "shared" / "data"


def rows_of(file):
    header, *rows = Path(file).read_text("utf-8").splitlines()
    assert header.startswith("user_id:token\titem_id:token")
    return [tuple(row.split("\t")) for row in rows]


def parts_of(name):
    return {part: rows_of(f"dataset/{name}/{name}.{part}.inter") for part in ("train", "valid", "test")}


def all_rows(name):
    return [row for part in parts_of(name).values() for row in part]


def matrix():
    rng = np.random.default_rng(0)
    return scipy.sparse.csr_matrix((rng.random((40, 60)) < 0.3).astype(float))


@pytest.mark.parametrize("suffix", ["mat", "npz"])
def test_a_sparse_matrix(suffix, capsys):
    if suffix == "mat":
        scipy.io.savemat("raw.mat", {"data": matrix()})
    else:
        scipy.sparse.save_npz("raw.npz", matrix())
    assert main(["convert", f"raw.{suffix}", "--name=mine"]) == 0
    out = capsys.readouterr().out
    parts = parts_of("mine")
    coo = matrix().tocoo()
    everything = sorted((str(u), str(i)) for u, i in zip(coo.row, coo.col))
    assert sorted([row for part in parts.values() for row in part]) == everything
    assert f"{len(parts['train']) + len(parts['valid']):,}" in out
    assert f"{len(parts['test']):,}" in out
    sparsity = 1 - coo.nnz / 2400
    assert f"{sparsity:.4%}" in out


def test_lists_keep_their_test_set_and_train_at_once(capsys):
    rng = np.random.default_rng(1)
    Path("lists").mkdir()
    for part, n in (("train", 12), ("test", 3)):
        lines = [" ".join(map(str, [u, *rng.choice(50, n, replace=False)])) for u in range(30)]
        Path(f"lists/{part}.txt").write_text("\n".join(lines) + "\n")
    assert main(["convert", "lists", "--name=mine"]) == 0
    parts = parts_of("mine")
    given = {
        (line.split()[0], item)
        for line in Path("lists/train.txt").read_text().splitlines()
        for item in line.split()[1:]
    }
    assert set(parts["train"]) | set(parts["valid"]) == given
    assert not set(parts["test"]) & given  # a repeat of a training pair is no test of anything
    assert len(parts["valid"]) == 30  # round(0.1 · 12) each
    settings = {"epochs": 1, "sampler": "dns", "N": 5, "M": 1, "show_progress": False}
    result = run_recbole_hns("MF", "mine", config_dict=settings)
    assert result["test_result"]["ndcg@10"] > 0


def test_a_table_with_named_columns_and_a_threshold(monkeypatch):
    monkeypatch.setattr("recbole_hns.data.read.CHUNK_ROWS", 7)  # several pieces
    lines = ["stars,who,what,when"]
    for n, (user, item) in enumerate(random_pairs(20, 30, 8)):
        lines.append(f"{n % 5 + 1},{user},{item},{n}")
    Path("ratings.csv").write_text("\n".join(lines) + "\n\n")
    columns = ["--user=who", "--item=what", "--rating=stars", "--threshold=4", "--time=when"]
    assert main(["convert", "ratings.csv", "--name=mine", "--split=none", *columns]) == 0
    expected = [
        (who, what, f"{float(when)}")
        for stars, who, what, when in (line.split(",") for line in lines[1:])
        if int(stars) >= 4
    ]
    assert rows_of("dataset/mine/mine.inter") == expected


def test_ids_called_like_missing_values_come_out_and_train():
    names = ["NA", "null", "None", "nan", "N/A", "NULL"]
    pairs = [(user, f"i{place + k}") for place, user in enumerate([*names, "u"]) for k in range(10)]
    pairs += [(user, "NA") for user in names]
    lines = [",".join(pair) for pair in pairs]
    Path("raw.csv").write_text("\n".join(["user_id,item_id", *lines]) + "\n")
    assert main(["convert", "raw.csv", "--name=mine"]) == 0
    assert sorted(all_rows("mine")) == sorted(pairs)
    settings = {"epochs": 1, "N": 2, "topk": [2], "valid_metric": "NDCG@2", "show_progress": False}
    run_recbole_hns("BPR", "mine", config_dict=settings)
    artifact = load("saved")
    tokens = artifact.data.field2id_token
    assert set(tokens["user_id"]) == {"[PAD]", *names, "u"}
    assert "NA" in tokens["item_id"]


def test_the_core_is_filtered_before_the_split():
    lines = ["user_id\titem_id"] + [f"{u}\t{i}" for u, i in random_pairs(30, 40, 8)]
    Path("raw.tsv").write_text("\n".join(lines))
    assert main(["convert", "raw.tsv", "--name=mine", "--core=5"]) == 0
    rows = all_rows("mine")
    for column in (0, 1):
        counts = np.unique([row[column] for row in rows], return_counts=True)[1]
        assert counts.min() >= 5


MISTAKES = {
    "nowhere.csv": (None, [], "does not exist"),
    "raw.xls": ("x", [], "no known format"),
    "a.csv": ("user_id,item\n1,2\n", [], "no column item_id: its columns are user_id, item"),
    "b.csv": (
        "user_id,item_id,r\n1,2,5\n1,3,good\n",
        ["--rating=r", "--threshold=4"],
        "line 3: r is not",
    ),
    "c.csv": ("user_id,item_id\n1,2\n1,2,3\n", [], "line 3"),
    "d.csv": ("user_id,item_id\n1,2\n,3\n", [], "line 3: no user_id"),
    "e.csv": ("user_id,item_id\n1,2\n", ["--rating=r"], "belong together"),
    "f.csv": ("user_id,item_id\n", [], "no positive interaction"),
    "g.txt": ("1 2 3\n4 x\n", [], "line 2"),
    "h.txt": ("1 2 3\n", ["--split=file"], "split=file"),
    "i.mat": ("not a matrix", [], "cannot be read"),
    "j.npz": ("not a matrix", [], "cannot be read"),
    "k.txt": ("1 2 3\n", ["--core=0"], "core=0"),
    "l.txt": ("1 2 3\n", ["--core=9"], "core=9 leaves nothing"),
    "m.txt": ("1 2 3\n", ["--name=../x"], "name=../x"),
    "n.txt": ("1 2 3\n", ["--split=half"], "split"),
    "o.csv": (
        "user_id,item_id\n1,2\nuser_id,item_id\n3,2\n",
        [],
        "line 3: the header comes a second time; take that line out.",
    ),
}


@pytest.mark.parametrize("file", MISTAKES)
def test_a_mistake_gets_one_line_and_leaves_nothing(file, capsys):
    content, options, words = MISTAKES[file]
    if content is not None:
        Path(file).write_text(content)
    before = sorted(os.listdir())
    name = [] if any(option.startswith("--name") for option in options) else ["--name=mine"]
    assert main(["convert", file, *name, *options]) == 2
    error = capsys.readouterr().err.split("\r")[-1]
    assert words in error
    assert sorted(os.listdir()) == before


def test_what_exists_is_kept_unless_told_otherwise(capsys):
    Path("raw.txt").write_text("1 2 3 4 5 6\n")
    assert main(["convert", "raw.txt", "--name=mine"]) == 0
    Path("raw.txt").write_text("1 2 3 4 5 7\n")
    assert main(["convert", "raw.txt", "--name=mine"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert "7" not in {item for _, item in all_rows("mine")}
    assert main(["convert", "raw.txt", "--name=mine", "--overwrite"]) == 0
    assert "7" in {item for _, item in all_rows("mine")}
    assert os.listdir("dataset") == ["mine"]


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the paper's Gowalla file")
def test_gowalla_comes_out_as_in_the_paper(capsys):
    assert main(["convert", str(SHARED / "gowalla" / "gowalladata.mat"), "--name=gowalla"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == [
        "gowalla",
        "29,858",
        "40,988",
        "1,027,464",
        "822,358",
        "205,106",
        "99.9160%",
    ]


@pytest.mark.slow
def test_ten_million_rows_take_less_than_two_gigabytes(tmp_path):
    rng = np.random.default_rng(0)
    with open("big.csv", "w") as file:
        file.write("user_id,item_id,rating\n")
        for _ in range(100):
            users, items = rng.integers(0, 500_000, 100_000), rng.integers(0, 200_000, 100_000)
            ratings = rng.integers(1, 6, 100_000)
            file.write("".join(f"u{u},i{i},{r}\n" for u, i, r in zip(users, items, ratings)))
    command = [sys.executable, "-m", "recbole_hns", "convert", "big.csv", "--name=big"]
    subprocess.run([*command, "--rating=rating", "--threshold=4"], check=True, timeout=600)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2_000_000  # kilobytes
