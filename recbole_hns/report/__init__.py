"""``recbole-hns report``: the paper's table and figures from finished runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from recbole_hns.bridge.allowed import FOLDER
from recbole_hns.errors import Error
from recbole_hns.report.collect import Group, best_settings, collect, metrics_of, sweeps
from recbole_hns.report.figures import effect_curves, plot_effect, plot_strategies
from recbole_hns.report.page import make_page
from recbole_hns.report.tables import latex, make_tables, markdown

__all__ = ["main", "make_report"]

FEW = 4  # metrics that a table or a figure of bars shows unless told otherwise


def make_report(
    paths: Sequence[Path], output: Path, metrics: Sequence[str] | None = None, title: str = "Samplers"
) -> list[Path]:
    """Write tables, figures and the page; returns the files."""
    groups = collect(paths)
    available = metrics_of(groups)
    shown = _shown(metrics, available)
    best = best_settings(groups)
    tables = make_tables(best, shown)
    output.mkdir(parents=True, exist_ok=True)
    files = []
    if tables:
        files.append(_write(output / "table.md", "\n".join(markdown(table) for table in tables)))
        files.append(_write(output / "table.tex", "\n".join(latex(table) for table in tables)))
    strategies = _strategies(best)
    for n, (heading, compared) in enumerate(strategies, 1):
        file = output / ("strategies.png" if len(strategies) == 1 else f"strategies-{n}.png")
        plot_strategies(compared, shown, heading, file)
        files.append(file)
    effects = []
    for sweep in sweeps(groups):
        curves = effect_curves(sweep, available)
        if curves:
            effects.append((sweep, curves))
            name = f"effect-{sweep.model}-{sweep.dataset}-{sweep.sampler}-{sweep.key}.png"
            plot_effect(sweep, curves, output / name)
            files.append(output / name)
    page = make_page(title, tables, effects, strategies, shown, groups)
    files.append(_write(output / "report.html", page))
    return files


def _shown(metrics: Sequence[str] | None, available: Sequence[str]) -> list[str]:
    if metrics is None:
        Ks = sorted({int(K) for name in available for K in [name.partition("@")[2]] if K.isdigit()})
        ends = dict.fromkeys([*Ks[:1], *Ks[-1:]])
        preferred = [f"{family}@{K}" for K in ends for family in ("ndcg", "recall")]
        return [name for name in preferred if name in available] or list(available[:FEW])
    wanted = [name.strip().lower() for name in metrics]
    for name in wanted:
        if name not in available:
            raise Error(f"metric {name} is not in every run: they have {', '.join(available)}.")
    return wanted


def _strategies(best: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Samplers that were tested on the same model and data set.

    Runs before and after a refit are not compared: where all were refitted, the refits are.
    """
    compared = []
    for model, dataset in dict.fromkeys((group.model, group.dataset) for group in best):
        here = [group for group in best if (group.model, group.dataset) == (model, dataset)]
        refits = [group for group in here if group.refit]
        heading = f"Sampling strategies: {model} on {dataset}"
        compared.append((heading, refits if 2 * len(refits) == len(here) else here))
    return [(heading, groups) for heading, groups in compared if len(groups) > 1]


def _write(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def main(arguments: Sequence[str], parser_class: type[argparse.ArgumentParser]) -> None:
    """Run ``recbole-hns report …``."""
    parser = parser_class(
        prog="recbole-hns report",
        description="Tables, figures and a page from the result.json of runs and searches.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="RUNS", help="folders of runs or searches"
    )
    parser.add_argument("--output", type=Path, default=Path("report"), help="folder (report)")
    parser.add_argument("--metrics", help="of tables and bars, e.g. ndcg@50,recall@50")
    parser.add_argument("--title", default="Samplers", help="of the page")
    options = parser.parse_args(arguments)
    FOLDER.check("output", str(options.output))
    metrics = options.metrics.split(",") if options.metrics else None
    files = make_report(options.paths, options.output, metrics, options.title)
    tables = [file for file in files if file.name == "table.md"]
    if tables:
        print(tables[0].read_text("utf-8"))
    print(f"written: {', '.join(str(file) for file in files)}")
