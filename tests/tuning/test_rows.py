"""The trials of a search as a file."""

import csv
from pathlib import Path

from recbole_hns.tuning.trials import write_rows


def test_words_that_a_spreadsheet_would_run_get_an_apostrophe():
    row = {"M": 5, "learning_rate": -0.5, "status": "failed", "changes": "", "reason": "=HYPERLINK(1)"}
    write_rows([row, {**row, "reason": "-M is odd", "M": "-5"}], ["M"], Path("trials.csv"))
    with open("trials.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["reason"] for row in rows] == ["'=HYPERLINK(1)", "'-M is odd"]
    assert [row["M"] for row in rows] == ["5", "-5"]
    assert rows[0]["learning_rate"] == "-0.5"
