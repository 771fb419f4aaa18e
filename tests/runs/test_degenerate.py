"""Data at the edge of what can be learned from: it trains to a result, or is refused in one sentence."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch

from recbole_hns.cli.main import main
from recbole_hns.sampling.methods import all_methods

HEADER = "user_id:token\titem_id:token"
Pairs = Iterable[tuple[str, str]]


def pairs_of(**users: str) -> Pairs:
    """(user, item) pairs out of the items of each user, e.g. ``a="i1 i2"``."""
    return [(user, item) for user, items in users.items() for item in items.split()]


def full(n: int) -> str:
    return " ".join(f"i{item}" for item in range(n))


ORDINARY = pairs_of(a="i0 i1 i2 i3", b="i2 i3 i4 i5", c="i4 i5 i6 i7", d="i6 i7 i0 i1")
# Everyone has items enough for three parts, and user a has one negative, i9.
ONE_NEGATIVE = [*pairs_of(a=full(9)), *pairs_of(b="i9 i1 i2 i3 i4", c="i9 i5 i6 i7 i8 i0")]


def write(name: str, pairs: Pairs, suffix: str = "") -> None:
    file = Path("data") / name / f"{name}{suffix}.inter"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([HEADER, *("\t".join(pair) for pair in pairs)]) + "\n")


def run(*settings: str, model: str = "BPR", sampler: str = "dns", name: str = "edge") -> int:
    line = [f"--model={model}", f"--dataset={name}", f"--sampler={sampler}", "--data_path=data"]
    line += ["--epochs=2", "--show_progress=False", "--topk=[1]", "--valid_metric=NDCG@1"]
    return main([*line, *settings])


def result() -> dict:
    (file,) = Path("results").rglob("result.json")
    return json.loads(file.read_text())


def refusal(capsys) -> str:
    """The one line that a refusal prints, after which there is nothing but the data."""
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert [path.name for path in Path().iterdir()] == ["data"]
    return err


def small(sampler: str, N: int) -> list[str]:
    """N candidates, where the sampler draws a number of them."""
    return [f"--N={N}"] if "N" in all_methods()[sampler].defaults({}) else []


every_sampler = pytest.mark.parametrize("sampler", all_methods())


@every_sampler
def test_one_user_is_refused_having_no_negative(sampler, capsys):
    write("edge", pairs_of(a=full(6)))
    assert run(sampler=sampler) == 2
    assert "user a took every item" in refusal(capsys)


@every_sampler
def test_one_item_is_refused_leaving_no_negative(sampler, capsys):
    write("edge", pairs_of(a="i0", b="i0", c="i0"))
    assert run(sampler=sampler) == 2
    assert "took every item" in refusal(capsys)


@every_sampler
def test_a_user_with_one_negative_and_fewer_negatives_than_candidates_train(sampler):
    write("edge", ONE_NEGATIVE)
    assert run(*small(sampler, 50), *(["--M=40"] if sampler == "dns" else []), sampler=sampler) == 0
    assert 0 <= result()["test"]["ndcg@1"] <= 1


@every_sampler
def test_duplicate_interactions_train(sampler):
    write("edge", [*ORDINARY, *ORDINARY, *ORDINARY])
    assert run(*small(sampler, 5), *(["--M=2"] if sampler == "dns" else []), sampler=sampler) == 0
    assert len(result()["epochs"]) == 2


@pytest.mark.parametrize("split", ["{'RS':[0.8,0,0.2]}", "{'LS':'test_only'}"])
def test_without_validation_the_last_epoch_counts(split):
    write("edge", ORDINARY)
    assert run(f"--eval_args={{'split':{split}}}") == 0
    last, best = (torch.load(f, weights_only=True) for f in sorted(Path("saved").glob("*.pth")))
    assert best["epoch"] == 1
    for name, value in best["state_dict"].items():
        assert torch.equal(value, last["state_dict"][name])
    assert result()["best"] == {"epoch": None, "score": None, "valid": None}
    assert [row["epoch"] for row in result()["epochs"]] == [0, 1]
    assert set(result()["test"]) == {"recall@1", "mrr@1", "ndcg@1", "hit@1", "precision@1"}


def test_without_a_test_set_there_is_no_test_result():
    write("edge", ORDINARY)
    assert run("--eval_args={'split':{'LS':'valid_only'}}") == 0
    assert result()["test"] is None
    scores = [row["score"] for row in result()["epochs"]]
    assert result()["best"]["score"] == max(scores)


@pytest.mark.parametrize("model", ["BPR", "LightGCN"])
@pytest.mark.parametrize("sampler", ["uniform", "popularity", "adasir_p", "softmax_v", "non_sampling"])
def test_users_and_items_that_training_has_not_seen_are_ranked_all_the_same(sampler, model):
    """Users b and f have two test items each, of which the first place holds one, or none."""
    write("edge", ORDINARY, ".train")
    write("edge", pairs_of(a="i4", e="i5"), ".valid")
    write("edge", pairs_of(b="i0 new", f="new i1"), ".test")
    files = "--benchmark_filename=['train','valid','test']"
    assert run(files, *small(sampler, 5), sampler=sampler, model=model) == 0
    found = result()["test"]
    assert found["hit@1"] in (0, 0.5, 1)
    assert found["recall@1"] == found["hit@1"] / 2
    assert found["mrr@1"] == found["ndcg@1"] == found["precision@1"] == found["hit@1"]


@pytest.mark.parametrize("sampler", ["uniform", "dns", "softmax_v", "warp"])
def test_lightgcn_trains_on_the_edge_too(sampler):
    write("edge", [*ONE_NEGATIVE, *ONE_NEGATIVE])
    assert run(*small(sampler, 50), model="LightGCN", sampler=sampler) == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "edge.inter begins with ''"),
        (HEADER + "\n", "holds no interaction"),
        ("user_id\titem_id\nu\ti\n", "user_id:token"),
        ("user_id:token\nu\n", "item_id"),
        ("user_id:tokens\titem_id:token\nu\ti\n", "tokens"),
    ],
)
def test_a_file_without_interactions_is_refused(content, words, capsys):
    write("edge", [])
    Path("data/edge/edge.inter").write_text(content)
    assert run() == 2
    assert words in refusal(capsys)


def test_a_training_part_without_interactions_is_refused(capsys):
    write("edge", [], ".train")
    write("edge", ORDINARY, ".valid")
    write("edge", ORDINARY, ".test")
    assert run("--benchmark_filename=['train','valid','test']") == 2
    assert "edge.train.inter holds no interaction" in refusal(capsys)


def test_filters_that_leave_nothing_are_refused(capsys):
    write("edge", ORDINARY)
    assert run("--user_inter_num_interval=[90,inf)") == 2
    assert "filtering" in refusal(capsys)
