"""recbole-hns recommend: lists in the data set's own ids, without what the user has."""

import csv
from pathlib import Path

import pytest
import torch
from conftest import random_pairs, write_inter

from recbole_hns import load, run_recbole_hns
from recbole_hns.cli.main import main
from recbole_hns.runs import recommend as module
from recbole_hns.runs.recommend import recommend

SMALL = {"epochs": 2, "sampler": "dns", "N": 10, "M": 2, "learning_rate": 0.05, "state": "ERROR"}
SEQUENTIAL = {
    "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
    "MAX_ITEM_LIST_LENGTH": 8,
    "hidden_size": 8,
}


def train(settings, model="MF", **more):
    run_recbole_hns(model, "tiny", "dns", config_dict={**SMALL, **settings, **more})
    (file,) = (f for f in Path("saved").glob("*.pth") if ".last" not in f.name)
    return file


def read(file="recommendations.csv"):
    with open(file, newline="") as stream:
        return list(csv.DictReader(stream))


def test_lists_hold_the_best_scores_without_what_the_user_took(tiny, capsys):
    file = train(tiny)
    assert main(["recommend", str(file), "--users=u7,u3", "--k=5"]) == 0
    assert "10 recommendations for 2 users" in capsys.readouterr().out
    rows = read()
    assert list(rows[0]) == ["user", "item", "rank", "score"]
    assert [row["user"] for row in rows] == ["u7"] * 5 + ["u3"] * 5
    # By hand: the model's dot products, over the items of the file that the user did not take.
    trained = load(file)
    data, state = trained.data, trained.state["state_dict"]
    for user in ("u7", "u3"):
        taken = {item for who, item in random_pairs() if who == user}
        assert len(taken) == 10
        context = state["user_embedding.weight"][data.token2id("user_id", user)]
        scores = {
            item: float(context @ state["item_embedding.weight"][data.token2id("item_id", item)])
            for item in {item for _, item in random_pairs()} - taken
        }
        best = sorted(scores, key=scores.get, reverse=True)[:5]
        own = [row for row in rows if row["user"] == user]
        assert [row["item"] for row in own] == best
        assert [int(row["rank"]) for row in own] == [1, 2, 3, 4, 5]
        assert [float(row["score"]) for row in own] == pytest.approx([scores[i] for i in best], rel=1e-4)


def test_all_users_by_default_in_batches(tiny, monkeypatch):
    file = train(tiny, "LightGCN")
    whole = list(recommend(file, k=4))
    assert len({row.user for row in whole}) == 40
    monkeypatch.setattr(module, "SCORES", 61 * 7)  # seven users at a time
    parts = list(recommend(file, k=4))
    assert [(row.user, row.item, row.rank) for row in parts] == [
        (row.user, row.item, row.rank) for row in whole
    ]


def test_users_come_from_a_file_too(tiny):
    file = train(tiny)
    Path("users.txt").write_text("u1\n\n u2 \nu1\n")
    assert main(["recommend", str(file), "--users=users.txt", "--k=2", "--output=lists.csv"]) == 0
    assert [row["user"] for row in read("lists.csv")] == ["u1", "u1", "u2", "u2"]


def test_a_user_with_few_items_left_gets_those(tmp_path):
    pairs = [("ann", f"i{i}") for i in range(18)] + [(f"u{u}", f"i{u}") for u in range(20)] * 2
    pairs += [(f"u{u}", f"i{(u + 1) % 20}") for u in range(20)]
    write_inter(tmp_path / "data", "tiny", pairs)
    file = train({"data_path": str(tmp_path / "data"), "show_progress": False})
    rows = list(recommend(file, ["ann"], k=10))
    assert {row.item for row in rows} == {"i18", "i19"}


@pytest.mark.parametrize(
    ("model", "own"),
    [("SASRec", {"n_layers": 1, "inner_size": 8}), ("GRU4Rec", {"embedding_size": 8})],
)
def test_a_sequential_model_goes_on_from_the_whole_sequence(tiny, model, own):
    file = train(tiny, model, **SEQUENTIAL, **own)
    users = ["u5", "u30", "u2"]
    rows = list(recommend(file, users, k=3))
    assert [row.user for row in rows] == [user for user in users for _ in range(3)]
    trained = load(file)
    data, network = trained.data, trained.model
    for user in users:
        taken = [item for who, item in random_pairs() if who == user]  # in the order of time
        sequence = torch.tensor([data.token2id("item_id", item) for item in taken[-8:]])[None]
        with torch.no_grad():
            vector = network.forward(sequence, torch.tensor([8]))
            scores = (vector @ network.item_embedding.weight.T)[0]
        scores[[0, *(data.token2id("item_id", item) for item in taken)]] = -torch.inf
        best = data.id2token("item_id", scores.topk(3).indices)
        assert [row.item for row in rows if row.user == user] == list(best)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nothing.pth"], "nothing.pth does not exist"),
        (["FILE", "--users=u1,nobody"], "nobody"),
        (["FILE", "--users=[PAD]"], "[PAD]"),
        (["FILE", "--users="], "names no user"),
        (["FILE", "--k=60"], "k=60"),
        (["FILE", "--k=0"], "k=0"),
        (["FILE", "--k=few"], "few"),
        (["FILE", "--output=missing/x.csv"], "missing/x.csv"),
        (["FILE", "--output=data"], "output=data"),
        (["FILE", "--data_path=nowhere"], "tiny is neither in"),
        (["FILE", "--N=3"], "N=3"),
        (["FILE", "--user=u1"], "user"),
        ([], "CHECKPOINT"),
    ],
)
def test_a_mistake_gets_one_line_exit_code_2_and_no_file(tiny, arguments, word, capsys):
    file = train(tiny, epochs=1)
    before = sorted(Path().rglob("*"))
    capsys.readouterr()
    assert main(["recommend", *(str(file) if a == "FILE" else a for a in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert word in captured.err
    assert sorted(Path().rglob("*")) == before


def test_a_file_is_written_whole_or_not_at_all(tiny, monkeypatch):
    file = train(tiny)
    Path("recommendations.csv").write_text("as before")

    def broken(*args):
        yield module.Row("u1", "i1", 1, 0.5)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_rows", broken)
    assert main(["recommend", str(file)]) == 130
    assert Path("recommendations.csv").read_text() == "as before"
    assert not list(Path().glob(".*.tmp"))


def test_ids_that_a_spreadsheet_would_run_get_an_apostrophe(tmp_path):
    ids = {"i0": "=1+1", "i1": "-5", "i2": "@SUM(A1)", "i3": "+cmd|x!A1"}
    pairs = [(user, ids.get(item, item)) for user, item in random_pairs(30, 12, 5)]
    write_inter(tmp_path / "data", "tiny", pairs)
    file = train({"data_path": str(tmp_path / "data"), "show_progress": False})
    assert main(["recommend", str(file), "--k=11"]) == 0
    items = {row["item"] for row in read()}
    assert {"'=1+1", "-5", "'@SUM(A1)", "'+cmd|x!A1"} <= items
    assert not items & {"=1+1", "@SUM(A1)", "+cmd|x!A1"}
    lists = load(file).recommend(k=11)  # in Python the ids are the data's own
    assert {"=1+1", "-5", "@SUM(A1)", "+cmd|x!A1"} <= set(lists["item"])


def test_nothing_is_written_through_a_link_at_the_temporary_name(tiny):
    file = train(tiny)
    Path("secret").write_text("mine")
    Path(".recommendations.csv.tmp").symlink_to("secret")
    assert main(["recommend", str(file), "--users=u1"]) == 0
    assert Path("secret").read_text() == "mine"
    assert not Path(".recommendations.csv.tmp").is_symlink()
    assert not Path("recommendations.csv").is_symlink()
    assert len(read()) == 10
