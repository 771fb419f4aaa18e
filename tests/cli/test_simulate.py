"""recbole-hns simulate: the paper's figures from one command, on any model."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import random_pairs, write_inter

from recbole_hns import run_recbole_hns
from recbole_hns.bridge.install import install
from recbole_hns.cli.main import main
from recbole_hns.runs.artifact import open_artifact
from recbole_hns.runs.pair import pair_of

SMALL = ["--n_pos=20", "--n_neg=80", "--permutations=500", "--topk=5,10", "--n_betas=10"]
# A model of each kind: dot products, sequences, a graph of knowledge, predict alone.
OURS = ["MF", "LightGCN", "SASRec", "KGAT", "ConvNCF"]
# What the samplers cannot train, from RecBole's own checkpoints: pointwise, features, histories, counts.
RECBOLES = ["NeuMF", "FM", "DeepFM", "MultiVAE", "BERT4Rec", "EASE", "Pop"]
SETTINGS = {"embedding_size": 8, "hidden_size": 8, "layers": [8], "n_layers": 1, "epochs": 1}
SETTINGS |= {"cnn_channels": [1, 4, 4], "cnn_kernels": [2, 2], "cnn_strides": [2, 2]}


@pytest.fixture(scope="module")
def data_path(tmp_path_factory):
    """Interactions, features of the items, and a graph of knowledge."""
    folder = tmp_path_factory.mktemp("data")
    pairs = random_pairs(n_users=30, n_items=40, per_user=9, seed=3)
    write_inter(folder, "tiny", pairs)
    items = sorted({item for _, item in pairs})
    files = {
        "item": ["item_id:token\tclass:token", *(f"{item}\tc{n % 3}" for n, item in enumerate(items))],
        "link": ["item_id:token\tentity_id:token", *(f"{item}\te{item}" for item in items)],
        "kg": [
            "head_id:token\trelation_id:token\ttail_id:token",
            *(f"e{item}\tr{n % 3}\tx{n % 7}" for n, item in enumerate(items)),
        ],
    }
    for suffix, lines in files.items():
        (folder / "tiny" / f"tiny.{suffix}").write_text("\n".join(lines) + "\n")
    return str(folder)


def train(model, data_path):
    """The checkpoint of one epoch."""
    own = {**SETTINGS, "data_path": data_path, "show_progress": False}
    if model in OURS:
        Path("own.yaml").write_text("".join(f"{key}: {value}\n" for key, value in own.items()))
        run_recbole_hns(model, "tiny", config_file_list=["own.yaml"])
    else:
        install()
        from recbole.quick_start import run_recbole

        own["load_col"] = {"inter": ["user_id", "item_id", "timestamp"], "item": ["item_id", "class"]}
        if model == "BERT4Rec":
            own |= {"train_neg_sample_args": None, "load_col": {"inter": own["load_col"]["inter"]}}
        elif model in ("FM", "DeepFM"):  # RecBole evaluates them on labels unless told otherwise
            own["eval_args"] = {"split": {"RS": [0.8, 0.1, 0.1]}, "order": "RO", "mode": "full"}
            own |= {"metrics": ["Recall"], "valid_metric": "Recall@10"}
            own["train_neg_sample_args"] = {
                **{"distribution": "uniform", "sample_num": 1, "alpha": 1.0},
                **{"dynamic": False, "candidate_num": 0},
            }
        run_recbole(model=model, dataset="tiny", config_dict=own)
    (file,) = (file for file in Path("saved").glob("*.pth") if ".last" not in file.name)
    return file


def test_correlation_prints_a_table_and_writes_both_files(capsys):
    assert main(["simulate", "correlation", *SMALL, "--output=out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["metric", "best", "β", "correlation", "AUC"]
    assert [line.split()[0] for line in lines[1:3]] == ["Precision@5", "Precision@10"]
    assert {path.name for path in Path("out").iterdir()} == {"correlation.csv", "correlation.png"}


def test_sampling_on_generated_embeddings(capsys):
    command = ["simulate", "sampling", "--draws=2000", "--M=1,2", "--N=10", "--rho=1", "--output=~/out"]
    assert main(command) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.split()[:2] == ["sampler", "top"]
    labels = ["uniform", "DNS(1, 200)", "DNS(2, 200)", "DNS(5, 10)", "Softmax-v(1, 200)"]
    assert [line[:22].strip() for line in lines[:-1]] == labels
    # The hardest of 200 is among the top 1 % unless all 200 miss it: 1 − 0.99²⁰⁰.
    assert float(lines[1].split()[2]) == pytest.approx(1 - 0.99**200, abs=0.03)
    folder = Path("~/out").expanduser()
    assert {path.name for path in folder.iterdir()} == {"sampling.csv", "sampling.png"}


@pytest.fixture(autouse=True)
def at_home(monkeypatch, tmp_path):
    """A home folder of one's own; and RecBole's own Config reads sys.argv."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("sys.argv", ["pytest"])


@pytest.mark.parametrize("model", [*OURS, *RECBOLES])
def test_sampling_follows_the_scores_of_any_model(model, data_path, capsys):
    """DNS follows its closed form by the ranks of the model's own scores."""
    checkpoint = train(model, data_path)
    capsys.readouterr()
    command = ["simulate", "sampling", f"--checkpoint={checkpoint}", "--trust_checkpoint"]
    assert main([*command, "--draws=2000", "--M=2", "--N=20", "--rho=1", "--output=out"]) == 0
    rows = list(csv.DictReader(Path("out/sampling.csv").read_text("utf-8").splitlines()))
    for label in ("DNS(2, 200)", "DNS(5, 20)", "uniform"):
        own = [row for row in rows if row["setting"] == label]
        off = max(abs(float(row["simulated"]) - float(row["exact"])) for row in own)
        assert off < 2.7 / 2000**0.5
    assert "DNS(2, 200)" in capsys.readouterr().out


@pytest.mark.parametrize("model", ["MF", "SASRec", "DeepFM"])
def test_scores_are_what_the_model_predicts_for_the_pair(model, data_path):
    artifact = open_artifact(train(model, data_path), trust=True)
    pair, train_set = pair_of(artifact, seed=3), artifact.train_set
    table = train_set.inter_feat
    row = next(
        n
        for n in range(len(table))
        if (int(table["user_id"][n]), int(table["item_id"][n])) == (pair.user, pair.positive)
    )
    for item in (1, 7, 30):
        batch = table[[row]]
        batch.interaction["item_id"] = torch.tensor([item])  # joined with its own features
        with torch.no_grad():
            expected = artifact.model.predict(train_set.join(batch))
        assert float(pair.scores[item]) == pytest.approx(float(expected), rel=1e-5)


def test_a_pair_is_named_in_the_data_sets_own_ids(data_path, capsys):
    checkpoint = train("MF", data_path)
    command = ["simulate", "sampling", f"--checkpoint={checkpoint}", "--draws=100", "--output=out"]
    artifact = open_artifact(checkpoint)
    data = artifact.train_set
    user, item = int(data.inter_feat["user_id"][5]), int(data.inter_feat["item_id"][5])
    names = str(data.id2token("user_id", user)), str(data.id2token("item_id", item))
    pair = pair_of(artifact, 0, *names)
    assert (pair.user, pair.positive) == (user, item)
    v = artifact.vectors()
    expected = v.items @ v.users[user - 1]
    np.testing.assert_allclose(pair.scores[1:], expected, rtol=1e-5, atol=1e-7)
    assert main([*command, f"--user={names[0]}", f"--item={names[1]}"]) == 0
    capsys.readouterr()
    assert main([*command, f"--user={names[0]}", "--item=nothing"]) == 2
    assert "nothing" in capsys.readouterr().err
    stranger = next(i for i in range(1, data.item_num) if i not in pair.world.positives[user])
    assert main([*command, f"--user={names[0]}", f"--item={data.id2token('item_id', stranger)}"]) == 2
    assert "no such training item" in capsys.readouterr().err


def test_help_tells_what_the_settings_are(capsys):
    with pytest.raises(SystemExit):
        main(["simulate", "sampling", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "values of ρ, the hardness, β = e^−ρ; larger is harder, at N = 200 (0.1,1,10)" in out
    assert "at M = 5 (50,200,800)" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required"),
        (["nothing"], "invalid choice"),
        (["correlation", "--n_pos=0"], "n_pos=0 is too small"),
        (["correlation", "--n_neg=0"], "n_neg=0 is too small"),
        (["correlation", "--topk="], "topk=[]"),
        (["correlation", "--topk=2000"], "2000 is not in 1 … 1000 items"),
        (["correlation", "--permutations=one"], "invalid int"),
        (["correlation", "--unknown=1"], "--unknown=1"),
        (["correlation", "--seed=-1"], "seed=-1"),
        (["sampling", "--M=0"], "M=0 is not allowed"),
        (["sampling", "--M="], "M has no value"),
        (["sampling", "--M=201"], "it is varied at N = 200"),
        (["sampling", "--N=1"], "it is varied at M = 5"),
        (["sampling", "--rho=-1"], "rho=-1.0 is not allowed"),
        (["sampling", "--draws=0"], "draws=0"),
        (["sampling", "--checkpoint=missing.pth"], "missing.pth"),
        (["sampling", "--user=u1"], "give --checkpoint too"),
    ],
)
def test_a_mistake_gets_one_line_and_leaves_nothing_behind(arguments, words, capsys, tmp_path):
    assert main(["simulate", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("recbole-hns: error: ")
    assert words in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
