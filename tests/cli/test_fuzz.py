"""Whatever is typed ends in a clean run, or in one line and exit code 2 with nothing written.

And what is right runs: a fuzz that only looks for tracebacks would pass if every line were refused.
"""

from collections import Counter

import pytest
from drawn_settings import fates
from fuzzing import Lines, run_here, run_process, tally, train_one, write_data

from recbole_hns.bridge.install import install

SEED = 2023
RUN, REFUSED = 0.3, 0.25  # the least shares of all lines that are accepted, and that are refused
PLAUSIBLE = 0.5  # of the lines whose values look right, some of which do not fit the model


def outcomes(place, n, run, seed=SEED):
    data = place / "data"
    write_data(data)
    train_one(place / "trained", data)
    lines = Lines(seed, data)
    return [run(lines.draw(), place / f"run{number}", data, lines.kind) for number in range(n)]


def assert_clean(ended):
    """No fault, every right line accepted, and enough of both fates."""
    faults = [str(outcome) for outcome in ended if outcome.fault]
    assert not faults, "\n".join(faults[:3])
    counts = tally(ended)
    print(dict(counts), f"longest {max(outcome.seconds for outcome in ended):.1f} s")
    assert counts["ran"] >= RUN * len(ended)
    assert counts["refused"] >= REFUSED * len(ended)
    plausible = [outcome.code == 0 for outcome in ended if outcome.kind == "plausible"]
    assert sum(plausible) >= PLAUSIBLE * len(plausible)
    assert [outcome.code for outcome in ended if outcome.kind == "right"].count(0) >= 0.1 * len(ended)


def test_120_generated_lines_end_in_a_run_or_in_one_sentence(tmp_path):
    assert_clean(outcomes(tmp_path, 120, run_here))


@pytest.mark.slow
def test_1000_generated_lines_end_in_a_run_or_in_one_sentence(tmp_path):
    assert_clean(outcomes(tmp_path, 1000, run_here))


def test_generated_lines_end_the_same_as_real_processes(tmp_path):
    write_data(tmp_path / "data")
    lines = Lines(SEED, tmp_path / "data")
    drawn = [lines.settings(), lines.right()]
    ended = [
        run_process(line, tmp_path / f"run{number}", tmp_path / "data", kind)
        for number, (line, kind) in enumerate(zip(drawn, ("settings", "right"), strict=True))
    ]
    assert not [str(outcome) for outcome in ended if outcome.fault]
    assert ended[1].code == 0


@pytest.mark.slow
def test_a_larger_sample_ends_the_same_as_real_processes(tmp_path):
    assert_clean(outcomes(tmp_path, 30, run_process, seed=5))


# ----------------------------------------------------------------------------------- both kinds


def assert_right(found):
    """What is right is accepted, what is wrong is refused by its name, and RecBole agrees where it judges."""
    faults = [fate for fate in found if fate.fault]
    counts = Counter(fate.fault or ("refused" if fate.ours else "accepted") for fate in found)
    recboles = sum(fate.recboles is not None for fate in found)
    print(dict(counts), f"{recboles} of them refused by RecBole")
    assert not faults, "\n".join(f"{fate.fault}: {fate}" for fate in faults[:5])
    assert counts["accepted"] >= 0.4 * len(found)
    assert counts["refused"] >= 0.4 * len(found)
    assert recboles >= 0.03 * len(found)


@pytest.fixture
def no_arguments(monkeypatch):
    """RecBole's Config reads the command line of whoever makes it."""
    monkeypatch.setattr("sys.argv", ["run"])
    install()


def test_100_drawn_settings_are_accepted_or_refused_as_they_deserve(tmp_path, no_arguments):
    assert_right(fates(SEED, 100, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_1000_drawn_settings_are_accepted_or_refused_as_they_deserve(tmp_path, no_arguments, seed):
    assert_right(fates(seed, 1000, tmp_path))
