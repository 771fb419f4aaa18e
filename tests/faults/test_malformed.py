"""Whatever a file holds, a command ends well or in one line, soon, and in a bounded memory."""

from __future__ import annotations

import resource
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from fuzzing import Outcome, run_here
from mutants import Mutant, all_yaml, beginnings, bomb, drawn, wrong_kinds

from recbole_hns.errors import Error
from recbole_hns.settings.dialect import MOST_LETTERS, parse_value, read_yaml

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
