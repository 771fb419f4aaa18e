"""The paper's central claim on real data, from the searches of MF on Gowalla: python results/claim.py

A point per sampler: its NDCG@50 against its AUC, and against its OPAUC(β). The rank correlation over the
samplers says which of them NDCG@50 follows.
"""

from __future__ import annotations

from matplotlib.figure import Figure
from scipy.stats import spearmanr
from tables import HERE, OPAUC, PAPER, summaries

STUDY = "gowalla-mf"
PANELS = dict(reversed(OPAUC.items()))


def main() -> None:
    """Draw the panels and print their correlations."""
    names = {name: label for name, (label, *_) in PAPER[STUDY].items()}
    tests = {names[name]: found["refit"]["test"] for name, found in summaries(STUDY, names).items()}
    ndcg = [test["ndcg@50"]["mean"] for test in tests.values()]
    figure = Figure(figsize=(3.3 * len(PANELS) + 2, 3.8))
    axes = figure.subplots(1, len(PANELS), sharey=True)
    for axis, (metric, title) in zip(axes, PANELS.items()):
        values = [test[metric]["mean"] for test in tests.values()]
        rank = spearmanr(values, ndcg).statistic
        for n, (label, x, y) in enumerate(zip(tests, values, ndcg)):
            own = label.startswith(("DNS(M", "Softmax-v"))
            marker = "*" if own else "os^vDP<>Xdhp"[n % 12]
            axis.plot(
                x, y, marker, color=f"C{n % 10}", ms=14 if own else 7, mec="black", mew=0.5, label=label
            )
        axis.set_title(f"{title}: rank correlation {rank:.2f}", fontsize=10)
        axis.set_xlabel(title)
        axis.locator_params(axis="x", nbins=4)
        axis.margins(x=0.12)
        axis.grid(alpha=0.3)
        print(f"{title:<13} {rank:+.3f}")
    axes[0].set_ylabel("NDCG@50")
    axes[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.suptitle(
        "What NDCG@50 follows: MF on Gowalla, test, after the refit, a point per sampler", fontsize=11
    )
    figure.tight_layout()
    figure.savefig(HERE / STUDY / "report" / "claim.png", dpi=130)


if __name__ == "__main__":
    main()
