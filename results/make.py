"""All tables and figures of results/ and of the README from the studies' records: python results/make.py

The tables stand in README.md here and in the one above, each between ``<!-- table: NAME -->`` and
``<!-- end -->``; ``tables.md`` and ``tables.tex`` have each study as ``recbole-hns report`` writes it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure
from records import lines_of, of_kind
from scipy.stats import spearmanr

from recbole_hns.report.figures import plot_effect, plot_strategies
from recbole_hns.report.groups import collect, make_groups, metrics_of
from recbole_hns.report.measures import metric_name
from recbole_hns.report.records import as_record
from recbole_hns.report.sections import make_sections
from recbole_hns.report.sweeps import effect_curves, sweeps
from recbole_hns.report.tables import Table, latex, markdown
from recbole_hns.sampling import methods

HERE = Path(__file__).parent
PAPER = {  # NDCG@50, Recall@50 on Gowalla by search: the tables of Shi et al., WWW 2023
    "gowalla-mf": {
        "uniform": (0.1216, 0.2048),
        "aobpr": (0.1385, 0.2417),
        "warp": (0.1248, 0.2240),
        "irgan": (0.1443, 0.2242),
        "kernel": (0.1399, 0.2264),
        "dns1": (0.1412, 0.1839),
        "pris_u": (0.1334, 0.2217),
        "pris_p": (0.1385, 0.2282),
        "adasir_u": (0.1489, 0.2500),
        "adasir_p": (0.1519, 0.2516),
        "non_sampling": (None, None),
        "dns": (0.1811, 0.2989),
        "softmax_v": (0.1837, 0.2993),
    },
    "gowalla-mf-reg": {"dns": (0.1811, 0.2989), "softmax_v": (0.1837, 0.2993)},
    "gowalla-lightgcn": {
        "uniform": (0.1469, 0.2470),
        "dns": (0.1954, 0.3176),
        "softmax_v": (0.1991, 0.3209),
    },
}
MODELS = {
    "gowalla-mf": "MF",
    "gowalla-mf-reg": "MF with `reg_weight`",
    "gowalla-lightgcn": "LightGCN",
}
METRICS = {  # of each study's table
    **dict.fromkeys(PAPER, ("ndcg@50", "recall@50")),
    "yelp2018-mf": ("recall@20", "ndcg@20"),
    "yelp2018-mf-reg": ("recall@20", "ndcg@20"),
}
OURS = ("dns", "softmax_v")  # what the paper proposes; the original DNS, M = 1, is a baseline
OPAUC = {
    "opauc@0.001": "OPAUC(0.001)",
    "opauc@0.01": "OPAUC(0.01)",
    "opauc@0.1": "OPAUC(0.1)",
    "opauc@1": "AUC",
}
DAGGER = "†"
SHOWN = ("M", "N", "rho", "tau", "lam", "max_trials", "reg_weight")  # as chosen


def summaries(study: str) -> dict[str, dict]:
    """What the searches of a study found, in the order of the paper's table."""
    found = {search: line["summary"] for search, line in of_kind(study, "summary").items()}
    order = PAPER.get(study) or sorted(found, key=methods.place)
    return {search: found[search] for search in order if search in found}


def name_of(study: str, search: str) -> str:
    """The method of a search as the paper writes it."""
    sampler = of_kind(study, "plan")[search]["plan"]["settings"]["sampler"]
    if search == "dns1":
        return f"{methods.title(sampler)} (M = 1)"
    return methods.label(sampler, {key: methods.symbol(key) for key in ("M", "N", "rho")})


def tested_early(study: str) -> dict[str, tuple[int, int]]:
    """Of each search whose tests never saw the epoch that won: the last that they saw, and that one.

    A trial validated its last epoch, a run only every ``eval_step``: 5 of 8. The refit trains all of them.
    """
    found = {}
    for search, summary in summaries(study).items():
        won = summary["refit"]["epochs"]
        runs = [one for one in lines_of(study) if (one["search"], one.get("part")) == (search, "runs")]
        epochs = [epoch for run in runs for epoch in run["result"]["epochs"] if epoch.get("valid")]
        validated = {epoch["epoch"] + 1 for epoch in epochs}
        if won not in validated:
            found[search] = (max(validated), won)
    return found


def marked(study: str, search: str) -> str:
    """The method of a search, with a dagger where it is to be run again."""
    return name_of(study, search) + (f" {DAGGER}" if search in tested_early(study) else "")


def remark(studies: Iterable[str]) -> str:
    """What the daggers mean; nothing where there are none."""
    early = [
        f"{name_of(study, search)} after {last} of {won} epochs"
        for study in studies
        for search, (last, won) in tested_early(study).items()
    ]
    return (
        f"{DAGGER} To be run again: before the refit it was tested at an earlier epoch than the one that won "
        f"the search ({', '.join(early)})."
        if early
        else ""
    )


def chosen(summary: Mapping) -> str:
    """What the search chose, of the sampler's own settings."""
    return ", ".join(f"{key} {summary['best'][key]:g}" for key in SHOWN if key in summary["best"])


def cell(test: Mapping, metric: str, digits: int = 4) -> str:
    """Mean ± standard deviation over the seeds."""
    return f"{test[metric]['mean']:.{digits}f} ± {test[metric]['std']:.{digits}f}"


def before_and_after(summary: Mapping, metric: str) -> list[str]:
    """A metric before and after the refit."""
    return [cell(test, metric) for test in (summary["test"], summary["refit"]["test"])]


def rows(*lines: list[str], below: str = "") -> str:
    """Markdown, the first line being the head, and a sentence below the table."""
    lines = (lines[0], ["---"] * len(lines[0]), *lines[1:])
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{text}\n\n{below}" if below else text


def in_short() -> str:
    """NDCG@50 / Recall@50 of everything on Gowalla."""

    def pair(numbers: Iterable[float | None]) -> str:
        return " / ".join("–" if number is None else f"{number:.4f}" for number in numbers)

    table = [["NDCG@50 / Recall@50", "paper", "ours", "ours, refit"]]
    for study, model in MODELS.items():
        for search, summary in summaries(study).items():
            tests = (summary["test"], summary["refit"]["test"])
            ours = [pair(test[metric]["mean"] for metric in METRICS[study]) for test in tests]
            table.append([f"{model}, {marked(study, search)}", pair(PAPER[study][search]), *ours])
    return rows(*table, below=remark(MODELS))


def beside_the_paper(study: str) -> str:
    """The paper's numbers, ours before and ours after the refit."""
    table = [["method", "chosen"]]
    for metric in METRICS[study]:
        table[0] += [f"{metric_name(metric)}, paper", "ours", "ours, refit"]
    for search, summary in summaries(study).items():
        line = [marked(study, search), chosen(summary)]
        for metric, published in zip(METRICS[study], PAPER[study][search]):
            line += ["" if published is None else f"{published:.4f}", *before_and_after(summary, metric)]
        table.append(line)
    return rows(*table, below=remark([study]))


def without_paper(study: str) -> str:
    """The same where the paper has nothing to compare with."""
    table = [["method", "chosen"]]
    for metric in METRICS[study]:
        table[0] += [metric_name(metric), "refit"]
    for search, summary in summaries(study).items():
        cells = [cell for metric in METRICS[study] for cell in before_and_after(summary, metric)]
        table.append([marked(study, search), chosen(summary), *cells])
    return rows(*table, below=remark([study]))


def after_refit(study: str, metrics: Iterable[str], digits: int = 4) -> str:
    """Any metrics, after the refit."""
    table = [["method", *(OPAUC.get(metric) or metric_name(metric) for metric in metrics)]]
    for search, summary in summaries(study).items():
        test = summary["refit"]["test"]
        table.append([name_of(study, search), *(cell(test, metric, digits) for metric in metrics)])
    return rows(*table)


def tables() -> dict[str, str]:
    """Every table of the READMEs, by its name there."""
    return {
        "in short": in_short(),
        **{study: beside_the_paper(study) for study in PAPER},
        **{study: without_paper(study) for study in METRICS if study not in PAPER},
        "other K": after_refit("gowalla-mf", ("ndcg@5", "recall@5", "ndcg@20", "recall@20")),
        "opauc": after_refit("gowalla-mf", OPAUC, digits=6),
    }


def put(file: Path, found: Mapping[str, str]) -> None:
    """Write every table between its ``<!-- table: NAME -->`` and the next ``<!-- end -->``."""
    text = re.sub(
        r"(<!-- table: (.*?) -->\n).*?(\n<!-- end -->)",
        lambda place: place[1] + found[place[2]] + place[3],
        file.read_text("utf-8"),
        flags=re.DOTALL,
    )
    file.write_text(text, "utf-8")


def with_daggers(study: str, table: Table) -> Table:
    """A report's table, with the rows marked that are to be run again."""
    early = [
        as_record(line["result"], study)
        for line in lines_of(study)
        if line["search"] in tested_early(study) and line.get("part") == "runs"
    ]
    names = {name: name for name in table.methods}
    names |= {group.label: f"{group.label} {DAGGER}" for group in make_groups(early)}
    cells = {(names[name], *column): cell for (name, *column), cell in table.cells.items()}
    return replace(table, methods=[names[name] for name in table.methods], cells=cells)


def reports() -> None:
    """``tables.md`` and ``tables.tex``: each study as ``recbole-hns report`` has it, with its tests."""
    parts: dict[str, list[str]] = {"md": [], "tex": []}
    for study, metrics in METRICS.items():
        groups = collect([HERE / study / "runs.jsonl"])
        baselines = any(group.sampler not in OURS for group in groups)
        ours = OURS if baselines else ()  # without them, the two are compared with each other
        (section,) = make_sections(groups, metrics, ours)
        table, below = with_daggers(study, section.table), remark([study])
        parts["md"].append(f"## {study}\n\n{markdown(table)}" + (f"\n{below}\n" if below else ""))
        parts["tex"].append(f"% {study}\n{latex(table)}" + (f"% {below}\n" if below else ""))
        for one in section.strategies:
            plot_strategies(one.groups, one.metrics, one.title, HERE / study / "strategies.png")
    (HERE / "tables.md").write_text("# Every study with its tests\n\n" + "\n".join(parts["md"]), "utf-8")
    (HERE / "tables.tex").write_text("\n".join(parts["tex"]), "utf-8")


def claim() -> None:
    """The paper's central claim on real data: what NDCG@50 follows, AUC or OPAUC(β).

    A point per sampler, its NDCG@50 against its AUC and against its OPAUC(β), with the rank correlation
    over the samplers.
    """
    study = "gowalla-mf"
    tests = {name_of(study, name): found["refit"]["test"] for name, found in summaries(study).items()}
    ndcg = [test["ndcg@50"]["mean"] for test in tests.values()]
    figure = Figure(figsize=(3.3 * len(OPAUC) + 2, 3.8))
    axes = figure.subplots(1, len(OPAUC), sharey=True)
    for axis, (metric, title) in zip(axes, reversed(OPAUC.items())):
        values = [test[metric]["mean"] for test in tests.values()]
        rank = spearmanr(values, ndcg).statistic
        for n, (label, x, y) in enumerate(zip(tests, values, ndcg)):
            own = n >= len(tests) - len(OURS)  # the last rows of the paper's table
            look = {"marker": "*", "ms": 14} if own else {"marker": "os^vDP<>Xdhp"[n % 12], "ms": 7}
            axis.plot(x, y, color=f"C{n % 10}", ls="", mec="black", mew=0.5, label=label, **look)
        axis.set_title(f"{title}: rank correlation {rank:.2f}", fontsize=10)
        axis.set_xlabel(title)
        axis.locator_params(axis="x", nbins=4)
        axis.margins(x=0.12)
        axis.grid(alpha=0.3)
        print(f"NDCG@50 follows {title}: rank correlation {rank:+.3f}")
    axes[0].set_ylabel("NDCG@50")
    axes[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.suptitle(
        "What NDCG@50 follows: MF on Gowalla, test, after the refit, a point per sampler", fontsize=11
    )
    figure.tight_layout()
    figure.savefig(HERE / study / "claim.png", dpi=130)


def effects() -> None:
    """The curves of M, N and ρ, and those of N over a wide range of K."""
    runs = [line for line in lines_of("effects") if line["kind"] == "run"]
    wide = [line for line in runs if line["search"].endswith("-N")]
    for name, lines in (("effect", runs), ("wide", wide)):
        for sweep in sweeps(make_groups(as_record(line["result"], "effects") for line in lines)):
            file = f"{name}-{sweep.first.dataset}-{sweep.key}.png"
            plot_effect(sweep, effect_curves(sweep, metrics_of(sweep.groups)), HERE / "effects" / file)


def time_to_quality() -> str:
    """The benchmark's figure and table, from what it measured."""
    sys.path.insert(0, str(HERE.parent / "benchmarks"))
    import time_to_quality as benchmark

    curves = json.loads((HERE / "time-to-quality" / "curves.json").read_text("utf-8"))["curves"]
    benchmark.plot(curves, HERE / "time-to-quality" / "quality.png")
    return benchmark.table(curves)


def main() -> None:
    """Rebuild everything."""
    found = {**tables(), "time to quality": time_to_quality()}
    for file in (HERE / "README.md", HERE.parent / "README.md"):
        put(file, found)
    reports()
    claim()
    effects()


if __name__ == "__main__":
    main()
