"""The files of a report."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from recbole_hns.files import make_folder, write_text
from recbole_hns.report.figures import plot_effect, plot_strategies
from recbole_hns.report.groups import collect
from recbole_hns.report.page import make_page
from recbole_hns.report.sections import Section, make_sections
from recbole_hns.report.tables import latex, markdown, markdown_text, one_line


def make_report(
    paths: Sequence[Path],
    output: Path,
    metrics: Sequence[str] | None = None,
    title: str = "Samplers",
    ours: Collection[str] = (),
) -> list[Path]:
    """Write tables, figures and the page; returns the files.

    Runs are compared only with runs of the same model, data set and protocol. ``ours`` are methods that
    are no baselines of each other.
    """
    sections = make_sections(collect(paths), metrics, ours)
    make_folder(output)
    files = [write_text(_markdown(sections), output / "table.md")]
    if any(section.table for section in sections):
        files.append(write_text(_latex(sections), output / "table.tex"))
    strategies = [one for section in sections for one in section.strategies]
    for n, one in enumerate(strategies, 1):
        files.append(output / ("strategies.png" if len(strategies) == 1 else f"strategies-{n}.png"))
        plot_strategies(one.groups, one.metrics, one.title, files[-1])
    for sweep, curves in (effect for section in sections for effect in section.effects):
        what = (sweep.first.model, sweep.first.dataset, sweep.first.sampler, sweep.key)
        files.append(_free(output, "-".join(["effect", *what]), files))
        plot_effect(sweep, curves, files[-1])
    files.append(write_text(make_page(title, sections), output / "report.html"))
    return files


def _free(folder: Path, name: str, files: Sequence[Path]) -> Path:
    """A figure's file: a name that any file system takes, and that no other figure has."""
    name = re.sub(r"[^\w.-]+", "_", name)
    ends = ("", *(f"-{n}" for n in range(2, len(files) + 2)))
    return next(file for end in ends if (file := folder / f"{name}{end}.png") not in files)


def _markdown(sections: Sequence[Section]) -> str:
    parts = []
    for section in sections:
        if len(sections) > 1 or section.table is None:
            parts.append(f"### {markdown_text(section.heading)}\n")
        if section.table:
            parts.append(markdown(section.table))
        parts += [markdown_text(remark) + "\n" for remark in section.remarks]
    if len(sections) > 1:
        parts.append(
            "Each part was measured in its own way: its numbers compare with no other part's.\n"
        )
    return "\n".join(parts)


def _latex(sections: Sequence[Section]) -> str:
    parts = []
    for section in sections:
        if section.table:
            remarks = [section.heading, *section.remarks] if len(sections) > 1 else section.remarks
            parts.append(latex(section.table) + "".join(f"% {one_line(line)}\n" for line in remarks))
    return "\n".join(parts)
