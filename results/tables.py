"""The tables of results/README.md, from the summaries of the searches: python results/tables.py"""

from __future__ import annotations

import json
from pathlib import Path

from recbole_hns.report.collect import metric_name

HERE = Path(__file__).parent
PAPER = {  # NDCG@50, Recall@50 on Gowalla: the tables of Shi et al., WWW 2023
    "gowalla-mf": {
        "uniform": ("BPR", 0.1216, 0.2048),
        "aobpr": ("AOBPR", 0.1385, 0.2417),
        "warp": ("WARP", 0.1248, 0.2240),
        "irgan": ("IRGAN", 0.1443, 0.2242),
        "kernel": ("Kernel", 0.1399, 0.2264),
        "dns1": ("DNS (M = 1)", 0.1412, 0.1839),
        "pris_u": ("PRIS(U)", 0.1334, 0.2217),
        "pris_p": ("PRIS(P)", 0.1385, 0.2282),
        "adasir_u": ("AdaSIR(U)", 0.1489, 0.2500),
        "adasir_p": ("AdaSIR(P)", 0.1519, 0.2516),
        "non_sampling": ("Non-Sampling", None, None),
        "dns": ("DNS(M, N)", 0.1811, 0.2989),
        "softmax_v": ("Softmax-v(ρ, N)", 0.1837, 0.2993),
    },
    "gowalla-lightgcn": {
        "uniform": ("BPR", 0.1469, 0.2470),
        "dns": ("DNS(M, N)", 0.1954, 0.3176),
        "softmax_v": ("Softmax-v(ρ, N)", 0.1991, 0.3209),
    },
}
PAPER["gowalla-mf-reg"] = {name: PAPER["gowalla-mf"][name] for name in ("dns", "softmax_v")}
YELP = {"uniform": "BPR", "dns": "DNS(M, N)", "softmax_v": "Softmax-v(ρ, N)"}  # not the paper's Yelp
OPAUC = {
    "opauc@0.001": "OPAUC(0.001)",
    "opauc@0.01": "OPAUC(0.01)",
    "opauc@0.1": "OPAUC(0.1)",
    "opauc@1": "AUC",
}
SHOWN = ("M", "N", "rho", "tau", "lam", "max_trials", "reg_weight")
MODELS = {
    "gowalla-mf": "MF",
    "gowalla-mf-reg": "MF with `reg_weight`",
    "gowalla-lightgcn": "LightGCN",
}


def summaries(study: str, names) -> dict[str, dict]:
    """What the searches of a study found; those that were run."""
    files = {name: HERE / study / name / "summary.json" for name in names}
    return {name: json.loads(file.read_text("utf-8")) for name, file in files.items() if file.exists()}


def chosen(summary: dict) -> str:
    """What the search chose, of the sampler's own settings."""
    return ", ".join(f"{key} {summary['best'][key]:g}" for key in SHOWN if key in summary["best"])


def cell(test: dict, metric: str, digits: int = 4) -> str:
    """Mean ± standard deviation over the seeds."""
    return f"{test[metric]['mean']:.{digits}f} ± {test[metric]['std']:.{digits}f}"


def rows(*lines) -> str:
    """Markdown, the first line being the head."""
    lines = [*lines[:1], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def beside_the_paper(study: str) -> str:
    """The paper's numbers, ours before and ours after the refit."""
    table = [["method", "chosen"]]
    for metric in ("NDCG@50", "Recall@50"):
        table[0] += [f"{metric}, paper", "ours", "ours, refit"]
    names = PAPER[study]
    for name, summary in summaries(study, names).items():
        label, *published = names[name]
        line = [label, chosen(summary)]
        for metric, number in zip(("ndcg@50", "recall@50"), published):
            line += ["" if number is None else f"{number:.4f}", *before_and_after(summary, metric)]
        table.append(line)
    return rows(*table)


def before_and_after(summary: dict, metric: str) -> list[str]:
    """A metric before and after the refit."""
    return [cell(test, metric) for test in (summary["test"], summary["refit"]["test"])]


def in_short() -> str:
    """The README's table: NDCG@50 / Recall@50 of everything on Gowalla."""

    def pair(numbers) -> str:
        return " / ".join("–" if number is None else f"{number:.4f}" for number in numbers)

    table = [["NDCG@50 / Recall@50", "paper", "ours", "ours, refit"]]
    for study, model in MODELS.items():
        for name, summary in summaries(study, PAPER[study]).items():
            label, *published = PAPER[study][name]
            tests = (summary["test"], summary["refit"]["test"])
            ours = [pair(test[m]["mean"] for m in ("ndcg@50", "recall@50")) for test in tests]
            table.append([f"{model}, {label}", pair(published), *ours])
    return rows(*table)


def on_yelp(study: str) -> str:
    """What was chosen on yelp2018, and both of its usual metrics."""
    metrics = ("recall@20", "ndcg@20")
    table = [["method", "chosen"]]
    for metric in metrics:
        table[0] += [metric_name(metric), "refit"]
    for name, summary in summaries(study, YELP).items():
        cells = [cell for metric in metrics for cell in before_and_after(summary, metric)]
        table.append([YELP[name], chosen(summary), *cells])
    return rows(*table)


def after_refit(study: str, names: dict[str, str], metrics, digits: int = 4) -> str:
    """Any metrics, after the refit."""
    table = [["method", *(OPAUC.get(metric) or metric_name(metric) for metric in metrics)]]
    for name, summary in summaries(study, names).items():
        test = summary["refit"]["test"]
        table.append([names[name], *(cell(test, metric, digits) for metric in metrics)])
    return rows(*table)


def main() -> None:
    """Print every table."""
    print(f"README\n\n{in_short()}")
    for study, published in PAPER.items():
        names = {name: label for name, (label, *_) in published.items()}
        print(f"{study}\n\n{beside_the_paper(study)}")
        print(after_refit(study, names, ("ndcg@5", "recall@5", "ndcg@20", "recall@20")))
        print(after_refit(study, names, OPAUC, digits=6))
    for study in ("yelp2018-mf", "yelp2018-mf-reg"):
        print(f"{study}\n\n{on_yelp(study)}")
        print(after_refit(study, YELP, OPAUC, digits=6))


if __name__ == "__main__":
    main()
