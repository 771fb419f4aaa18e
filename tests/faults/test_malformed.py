"""Whatever a file holds, a command ends well or in one line, soon, and in a bounded memory."""

from __future__ import annotations

import json
import random
import resource
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from fuzzing import Outcome, run_here
from mutants import (
    Mutant,
    all_yaml,
    beginnings,
    bomb,
    changed,
    drawn,
    mutated_bytes,
    odd,
    wrong_kinds,
)

from recbole_hns.errors import Error
from recbole_hns.settings.dialect import MOST_LETTERS, parse_value, read_yaml
from recbole_hns.tuning import SearchPlan, make_plan
from recbole_hns.tuning.study import Reports

ROOM = 2 << 30  # bytes that a malformed file may take beyond what is taken already
SOON = 30  # seconds, on a machine that does other things too


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    return beginnings(tmp_path_factory.mktemp("right"))


@pytest.fixture
def in_bounds():
    """What would take more memory fails."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def fault_of(outcome: Outcome) -> str | None:
    """What is wrong with the end of a command."""
    if outcome.code not in (0, 2) or "Traceback" in outcome.error:
        return "traceback"
    if outcome.seconds > SOON:
        return f"{outcome.seconds:.0f} s"
    last = outcome.error.strip().splitlines()[-1:] if outcome.code == 2 else []
    return "no sentence" if outcome.code == 2 and "recbole-hns: error: " not in last[0] else None


def assert_told(mutants: list[Mutant], right: Path, folder: Path, monkeypatch) -> None:
    ends, wrong, longest = Counter(), [], 0.0
    for number, mutant in enumerate(mutants):
        own = folder / str(number)
        shutil.copytree(right, own)
        monkeypatch.chdir(own)
        mutant.put()
        outcome = run_here(mutant.line, own, own)
        fault = fault_of(outcome)
        ends[fault or ("refused" if outcome.code else "taken")] += 1
        longest = max(longest, outcome.seconds)
        if fault:
            wrong.append(f"{mutant.name}: {fault}\n{outcome.error[-1500:]}")
        shutil.rmtree(own)
    print(f"{len(mutants)} malformed files: {dict(ends)}, longest {longest:.1f} s")
    assert not wrong, f"{len(wrong)} of {len(mutants)}\n" + "\n\n".join(wrong[:40])


CI = {"checkpoint": 30, "result": 20, "inter": 20, "raw": 30, "yaml": 20}
ALL = {"checkpoint": 350, "result": 150, "inter": 150, "raw": 250, "yaml": 100}


def test_120_malformed_files_are_told_in_a_line(right, tmp_path, in_bounds, monkeypatch):
    assert_told(drawn(18, CI), right, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL)
def test_1000_malformed_files_are_told_in_a_line(kind, right, tmp_path, in_bounds, monkeypatch):
    assert_told(drawn(1000, {kind: ALL[kind]}), right, tmp_path, monkeypatch)


@pytest.mark.slow
def test_every_part_of_a_checkpoint_as_every_wrong_kind(right, tmp_path, in_bounds, monkeypatch):
    assert_told(wrong_kinds(), right, tmp_path, monkeypatch)


@pytest.mark.slow
def test_every_odd_property_file_is_told_in_a_line(right, tmp_path, in_bounds, monkeypatch):
    assert_told(all_yaml(), right, tmp_path, monkeypatch)


@pytest.mark.parametrize("merge", [False, True])
def test_a_bomb_of_anchors_is_refused_at_once(merge, in_bounds):
    Path("bomb.yaml").write_text(bomb(merge=merge))
    start = time.perf_counter()
    with pytest.raises(Error, match="more than 100,000 values"):
        read_yaml("bomb.yaml")
    assert time.perf_counter() - start < 2


def test_a_bomb_of_anchors_on_the_command_line_is_a_word(in_bounds):
    names = "".join(f", &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 60))
    text = f"[&a0 [1]{names}]"
    start = time.perf_counter()
    assert parse_value(text) == text
    assert time.perf_counter() - start < 2


def test_a_file_of_a_million_letters_is_no_property_file(in_bounds):
    Path("long.yaml").write_text("#" * (MOST_LETTERS + 1))
    with pytest.raises(Error, match="longer than 1,000,000 characters"):
        read_yaml("long.yaml")


@pytest.fixture
def search(right, tmp_path, monkeypatch):
    """The folder of a search that was begun."""
    monkeypatch.chdir(right)
    settings = {
        "sampler": "dns",
        "N": 5,
        "epochs": 1,
        "topk": 5,
        "valid_metric": "MRR@5",
        "data_path": "data",
    }
    space = {"M": {"grid": [1, 2, 5]}, "learning_rate": {"loguniform": [0.001, 0.1]}}
    make_plan("MF", "tiny", settings, space, num_samples=2).write(tmp_path)
    return tmp_path


def told_or_taken(file: Path, right: str, read, n: int) -> Counter:
    """What became of n malformed contents of a file."""
    ends = Counter()
    for number in range(n):
        rng = random.Random(number)
        if number % 3 == 0:
            file.write_bytes(mutated_bytes(rng, right.encode())[1])
        else:
            content = [json.loads(line) for line in right.splitlines()]
            file.write_text("\n".join(map(json.dumps, changed(rng, content, odd)[1])))
        try:
            read(file.parent)
            ends["taken"] += 1
        except Error:
            ends["told"] += 1
    return ends


def test_a_malformed_plan_of_a_search_is_told_in_a_line(search):
    file = search / "search.json"
    right = json.dumps(json.loads(file.read_text()))

    def read(folder: Path) -> None:
        plan = SearchPlan.read(folder)
        assert len(plan.points()) == plan.num_samples * len(plan.domains["M"].values)
        plan.config()

    ends = told_or_taken(file, right, read, 120)
    assert ends["told"] > 60
    assert ends["taken"] > 5


def test_of_malformed_reports_those_before_count(tmp_path):
    line = {"score": 0.1, "valid": {"a": 1.0}, "train_loss": 1.0, "seconds": 1.0, "settings": {"M": 1}}
    lines = [{"epoch": epoch, **line} for epoch in (1, 2, 3)]
    right = "\n".join(map(json.dumps, [*lines, {"done": True}]))

    def read(folder: Path) -> None:
        reports = Reports.read(folder)
        assert all(set(one) == {"epoch", *line} for one in reports.lines)
        assert all(one["epoch"] == int(one["epoch"]) for one in reports.lines)
        assert all(one["seconds"] + one["train_loss"] is not None for one in reports.lines)
        reports.best(bigger=True)

    assert told_or_taken(tmp_path / "reports.jsonl", right, read, 300) == {"taken": 300}
    (tmp_path / "reports.jsonl").write_text(right.replace('"epoch": 2', '"epoch": "2"'))
    assert [one["epoch"] for one in Reports.read(tmp_path).lines] == [1]
