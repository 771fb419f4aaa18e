"""OPAUC and its family, from the counts of one pass: each a mean over users of a mean over positives."""

from __future__ import annotations

import numpy as np

from recbole_hns.errors import Error
from recbole_hns.metrics.counts import Numbers, RankCounts


def opauc(counts: RankCounts, beta: float, alpha: float = 0.0) -> float:
    """One-way partial AUC, OPAUC(α, β), with FPR in [α, β] and α = 0 by default.

    mean_c mean_i max(0, β − x_ci), less the same with α: equation 8 of Shi et al. (WWW 2023) for every
    real β, where x_ci is the share of the context's negatives that score above positive i. It is the area
    under the ROC curve, which passes ties in a straight line: see :func:`areas`.
    """
    check_beta(beta)
    if not 0 <= alpha < beta:
        raise Error(f"alpha={alpha} is not allowed: OPAUC(α, β) needs 0 ≤ α < β={beta}.")
    return _mean_over_users(counts, areas(counts, beta) - areas(counts, alpha))


def opauc_at_k(counts: RankCounts, k: int) -> float:
    """OPAUC(β) with β = K/n₋ of each context, the one that bounds Recall@K and Precision@K."""
    beta = np.minimum(1, k / counts.n_neg)
    return _mean_over_users(counts, areas(counts, beta))


def nopauc(counts: RankCounts, beta: float) -> float:
    """Normalised OPAUC(β), ½ (1 + (A − β²/2) / (β − β²/2)): 1 at best, ½ by chance, AUC at β = 1.

    McClish (1989); the minimum is the area under the diagonal. For one user it is scikit-learn's
    ``roc_auc_score(…, max_fpr=β)``, ties and all.
    """
    area, chance = opauc(counts, beta), beta**2 / 2
    return (1 + (area - chance) / (beta - chance)) / 2


def llpauc(counts: RankCounts, alpha: float, beta: float) -> float:
    """Lower-left partial AUC: the area with TPR ≤ α and FPR ≤ β.

    mean_c 1/n₊ Σ max(0, β − x_ci) over the ⌈α n₊⌉ best-ranked positives of c.
    """
    check_beta(beta)
    if not 0 < alpha <= 1:
        raise Error(f"llpauc_alpha={alpha} is not allowed: a true positive rate is in (0, 1].")
    kept = counts.place < np.ceil(np.round(alpha * counts.n_pos, 9))
    return _mean_over_users(counts, np.where(kept, areas(counts, beta), 0))


def areas(counts: RankCounts, beta: float | Numbers) -> Numbers:
    """What each positive adds to the area under the ROC curve left of the false positive rate β, (P,).

    max(0, β − x); where t negatives tie with the positive, its mean over all x that the straight line
    through the ties passes, those from x − t/2n₋ to x + t/2n₋.
    """
    x, half = counts.above / counts.n_neg, counts.tied / counts.n_neg / 2
    area = np.maximum(0, beta - x)
    cut = np.abs(beta - x) < half  # β falls among the ties
    into = np.broadcast_to(beta, x.shape)[cut] - (x - half)[cut]
    area[cut] = into**2 / (4 * half[cut])
    return area


def check_beta(beta: float) -> None:
    """A false positive rate must be in (0, 1]."""
    if isinstance(beta, bool) or not isinstance(beta, (int, float)) or not 0 < beta <= 1:
        raise Error(f"opauc_beta={beta} is not allowed: a false positive rate is in (0, 1].")


def _mean_over_users(counts: RankCounts, values: Numbers) -> float:
    weights = 1 / counts.n_pos
    return float((weights * values).sum() / weights.sum()) if len(values) else 0.0
