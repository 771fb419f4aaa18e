"""Whatever is typed ends in a clean run, or in one line and exit code 2 with nothing written."""

import pytest
from fuzzing import Lines, run_here, run_process, tally, train_one, write_data

SEED = 2023


def outcomes(place, n, run, seed=SEED):
    data = place / "data"
    write_data(data)
    train_one(place / "trained", data)
    lines = Lines(seed, data)
    return [run(lines.draw(), place / f"run{number}", data) for number in range(n)]


def assert_clean(ended, least_runs):
    """No fault, and not for want of lines that train or of lines that are refused."""
    faults = [str(outcome) for outcome in ended if outcome.fault]
    assert not faults, "\n".join(faults[:3])
    counts = tally(ended)
    print(dict(counts), f"longest {max(outcome.seconds for outcome in ended):.1f} s")
    assert counts["ran"] >= least_runs
    assert counts["refused"] >= least_runs


def test_120_generated_lines_end_in_a_run_or_in_one_sentence(tmp_path):
    assert_clean(outcomes(tmp_path, 120, run_here), least_runs=12)


@pytest.mark.slow
def test_500_generated_lines_end_in_a_run_or_in_one_sentence(tmp_path):
    assert_clean(outcomes(tmp_path, 500, run_here), least_runs=50)


def test_generated_lines_end_the_same_as_real_processes(tmp_path):
    write_data(tmp_path / "data")
    lines = Lines(SEED, tmp_path / "data")
    drawn = [lines.settings(), lines.plausible()]
    ended = [
        run_process(line, tmp_path / f"run{number}", tmp_path / "data")
        for number, line in enumerate(drawn)
    ]
    assert_clean(ended, least_runs=0)


@pytest.mark.slow
def test_a_larger_sample_ends_the_same_as_real_processes(tmp_path):
    assert_clean(outcomes(tmp_path, 30, run_process, seed=5), least_runs=3)
