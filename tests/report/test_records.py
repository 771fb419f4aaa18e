"""Records in single files and in a study's runs.jsonl, and names that would break out of a file."""

import json
import sys
from pathlib import Path

import pytest
from report_runs import record, write_run

from recbole_hns.cli.main import main
from recbole_hns.errors import Error
from recbole_hns.report import make_report
from recbole_hns.report.groups import collect
from recbole_hns.report.tables import markdown_text, tex

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def records(monkeypatch):
    """results/records.py, with the test's folder for its studies."""
    monkeypatch.syspath_prepend(str(RESULTS))
    monkeypatch.delitem(sys.modules, "records", raising=False)
    import records

    monkeypatch.setattr(records, "HERE", Path("studies").absolute())
    Path("studies").mkdir()
    yield records
    del sys.modules["records"]


def write_search(folder, sampler, **settings):
    """A search's folder with two trials, two tests and two refits."""
    for seed, M in ((0, 5), (0, 7)):
        write_run(folder / "trials", sampler, seed, None, M=M, **settings)
    for seed in (0, 1):
        test = {"ndcg@10": 0.3 + seed / 10, "recall@10": 0.1}
        write_run(folder / "runs", sampler, seed, test, M=5, **settings)
        write_run(folder / "refit", sampler, seed, test, config={"refit": True}, M=5, **settings)
    plan = {"settings": {"sampler": sampler}, "space": {"M": ["grid", [5, 7]]}}
    (folder / "search.json").write_text(json.dumps(plan))
    (folder / "summary.json").write_text(json.dumps({"best": {"M": 5}}))
    (folder / "best.yaml").write_text(f"# The best.\nsampler: {sampler}\nM: 5\n")
    (folder / "trials.csv").write_text("M,seconds,reason\n5,1e-07,\n7,12.50,so\n")


def test_a_study_gives_the_same_report_as_its_folders(records):
    write_search(Path("tuning/a"), "dns", N=200)
    write_search(Path("tuning/b"), "uniform")
    records.add(Path("tuning"), "study")
    assert len(Path("studies/study/runs.jsonl").read_text().splitlines()) == 2 * (4 + 6)
    for source in ("tuning", "studies/study", "studies/study/runs.jsonl"):
        make_report([Path(source)], Path("out") / source)
    files = sorted(path.name for path in Path("out/tuning").iterdir())
    assert files == ["report.html", "strategies.png", "table.md", "table.tex"]
    for name in files:
        for source in ("studies/study", "studies/study/runs.jsonl"):
            assert (Path("out") / source / name).read_bytes() == Path("out/tuning", name).read_bytes()


def test_a_search_is_read_back_as_it_was_and_put_in_again(records, capsys):
    write_search(Path("tuning/a"), "dns", N=200)
    records.add(Path("tuning/a"), "study")
    records.add(Path("tuning/a"), "study")
    lines = [json.loads(line) for line in Path("studies/study/runs.jsonl").read_text().splitlines()]
    assert len(lines) == 4 + 6
    assert records.best("study", "a") == Path("tuning/a/best.yaml").read_text()
    (trials,) = [line for line in lines if line["kind"] == "trials"]
    assert trials["rows"] == [[5, 1e-07, ""], [7, "12.50", "so"]]
    (first, *_) = [line for line in lines if line["kind"] == "run" and line["part"] == "refit"]
    assert first["result"] == json.loads(Path("tuning/a/refit/run-000/result.json").read_text())


def test_only_the_lines_of_runs_are_runs():
    name = Path("runs.jsonl")
    runs = [record("dns", seed, {"ndcg@10": 0.1}, M=5, N=9) for seed in (2, 1)]
    lines = [{"kind": "plan"}, *({"kind": "run", "result": run} for run in runs)]
    name.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (group,) = collect([name])
    assert [run.seed for run in group.runs] == [1, 2]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2 of runs.jsonl cannot be read"),
        ("[" * 10_000, "line 2 of runs.jsonl cannot be read"),
        ("[]", "line 2 of runs.jsonl does not say its kind"),
        ('{"kind": "run"}', "line 2 of runs.jsonl cannot be read as a result"),
        ('{"kind": "run", "result": {"format": 2}}', "line 2 of runs.jsonl cannot be read as a result"),
    ],
    ids=["json", "deep", "list", "nothing", "format"],
)
def test_a_line_that_is_no_record_is_named(line, words, capsys):
    Path("runs.jsonl").write_text(f'{{"kind": "plan"}}\n{line}\n')
    assert main(["report", "runs.jsonl"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


WRONG = {
    "a number of text": ("test", {"ndcg@10": "0.3"}),
    "a list of metrics": ("test", [0.3]),
    "a sampler of text": ("sampler", "dns"),
    "a sampler without a name": ("sampler", {"M": 5}),
    "a seed of text": ("seed", "1"),
    "no best": ("best", None),
    "settings in a list": ("config", []),
    "a model of a number": ("model", 7),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_record_of_the_wrong_kind_is_refused_in_a_line(name):
    key, value = WRONG[name]
    Path("result.json").write_text(json.dumps({**record("dns", 0, {"ndcg@10": 0.3}, M=5), key: value}))
    with pytest.raises(Error, match=r"result\.json cannot be read as a result: [^\n]+$"):
        collect([Path("result.json")])


HOSTILE = "a\nb|c%_<script>alert(1)</script>"


def test_names_stay_inside_what_they_stand_in():
    for sampler in ("uniform", "dns"):
        for M in (1, 2, 3):
            write_run("runs", sampler, 0, {"ndcg@10": 0.3}, dataset=HOSTILE, M=M, N=200)
    files = make_report([Path("runs")], Path("out"), title=HOSTILE)
    assert {file.parent for file in files} == {Path("out")}
    latex = Path("out/table.tex").read_text().splitlines()
    after = latex[latex.index("\\end{tabular}") + 1 :]
    assert after
    assert all(line.startswith("%") for line in after)
    assert "a b|c\\%\\_<script>alert(1)</script>" in Path("out/table.tex").read_text()
    rows = [line for line in Path("out/table.md").read_text().splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert rows[0] == "| method | a b\\|c%_&lt;script>alert(1)&lt;/script> NDCG@10 |"
    page = Path("out/report.html").read_text()
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\\b", "a\\textbackslash{}b"),
        ("50 % & $x_1^2$", "50 \\% \\& \\$x\\_1\\textasciicircum{}2\\$"),
        ("{~#}\u2028\r\nx\0", "\\{\\textasciitilde{}\\#\\} x "),
    ],
)
def test_latex_is_escaped(text, expected):
    assert tex(text) == expected


def test_markdown_is_escaped():
    assert markdown_text("DNS(5, 200) p < 0.05") == "DNS(5, 200) p < 0.05"
    assert markdown_text("a*b`[c]\n<b>&amp;") == "a\\*b\\`\\[c\\] &lt;b>&amp;amp;"
