"""Which negatives a sampler really draws (the paper's figure Cumulative_Probability).

The draws come from the pools and rules that train, so what the figure shows is what training does.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from scipy.stats import binom
from tqdm import tqdm

from recbole_hns.errors import Error
from recbole_hns.models.scorers import DotQuery
from recbole_hns.sampling import DNS, NegativeSampler, Rule, SoftmaxV, Uniform, UniformPool

SETTINGS: dict[str, list[tuple[Rule, int]]] = {
    "M": [(DNS(M), 200) for M in (1, 5, 20)],
    "N": [(DNS(5), N) for N in (50, 200, 800)],
    "ρ": [(SoftmaxV(rho), 200) for rho in (0.1, 1.0, 10.0)],
}


@dataclass
class Pair:
    """One context c with its positive i, and the vectors and pool to draw its negatives with."""

    context: torch.Tensor  # (n_contexts, d)
    items: torch.Tensor  # (n_items, d)
    pool: UniformPool
    user: int
    positive: int

    @property
    def ranks(self) -> np.ndarray:
        """The rank of every item among the user's negatives, 1 the hardest; 0 for all others."""
        scores = (self.items @ self.context[self.user]).detach().numpy()
        negatives = np.setdiff1d(np.arange(1, len(scores)), self.pool.used_ids.row(self.user))
        ranks = np.zeros(len(scores), dtype=np.int64)
        ranks[negatives[np.argsort(-scores[negatives], kind="stable")]] = np.arange(
            1, len(negatives) + 1
        )
        return ranks


@dataclass
class Curve:
    """Cumulative sampling probability by rank under one setting."""

    label: str
    panel: str
    simulated: np.ndarray  # (n₋,)
    exact: np.ndarray | None  # (n₋,) where there is a closed form


def generated_pair(n_users: int = 200, n_items: int = 5000, d: int = 32, seed: int = 0) -> Pair:
    """A pair over generated embeddings, whose scores spread as a trained model's do."""
    rng = np.random.default_rng(seed)
    # Popular items have longer vectors that point where most users do.
    direction = rng.normal(size=d) / d**0.5
    lengths = rng.lognormal(sigma=0.35, size=(n_items + 1, 1))
    items = lengths * (0.6 * direction + rng.normal(size=(n_items + 1, d)) / d**0.5)
    users = direction + rng.normal(size=(n_users + 1, d)) / d**0.5
    scores = users @ items.T
    taken = np.argsort(-(scores + rng.gumbel(size=scores.shape))[1:, 1:], axis=1)[:, :30] + 1
    data = {
        "user_id": np.repeat(np.arange(1, n_users + 1), taken.shape[1]),
        "item_id": taken.ravel(),
    }
    dataset = SimpleNamespace(
        uid_field="user_id",
        iid_field="item_id",
        user_num=n_users + 1,
        item_num=n_items + 1,
        inter_feat={name: torch.from_numpy(column) for name, column in data.items()},
        config={"LIST_SUFFIX": "_list"},
    )
    tables = [torch.tensor(table, dtype=torch.float32) for table in (users, items)]
    return choose_pair(*tables, dataset, seed)


def choose_pair(
    context, items, dataset, seed: int, user: int | None = None, positive: int | None = None
) -> Pair:
    """A (user, positive) pair of a training set, drawn by seed where it is not named."""
    pool = UniformPool("train", dataset, generator=torch.Generator()).set_phase("train")
    rng = np.random.default_rng(seed)
    if user is None:
        user = int(rng.choice(np.flatnonzero(pool.used_ids.counts)))
    taken = pool.used_ids.row(user)
    if positive is None:
        positive = int(rng.choice(taken))
    elif positive not in taken:
        raise Error(
            "that item is not among that user's training items: name a pair of the training set."
        )
    return Pair(context.detach(), items.detach(), pool, user, positive)


def cumulative_probability(
    pair: Pair, rule: Rule, N: int, draws: int = 10_000, seed: int = 0, chunk: int = 1000
) -> np.ndarray:
    """The mean of p_cij over simulated draws for one pair, summed up by score rank, (n₋,)."""
    ranks = pair.ranks
    sampler = NegativeSampler(pair.pool, rule, N, seed)
    total = np.zeros(ranks.max() + 1)
    for first in range(0, draws, chunk):
        users = torch.full((min(chunk, draws - first),), pair.user)
        positives = torch.full_like(users, pair.positive)
        query = DotQuery(pair.context, users, pair.items, positives, pair.pool.kernels)
        negatives = sampler.select(users, query)
        weights = negatives.weights.double().numpy().ravel()
        total += np.bincount(ranks[negatives.ids.numpy().ravel()], weights, minlength=len(total))
    return np.cumsum(total[1:]) / draws


def exact_probability(rule: Rule, N: int, n_neg: int) -> np.ndarray | None:
    """The closed form where there is one, (n₋,).

    Uniform: k/n₋. DNS(M, N): 1/M Σ_m P(Binomial(N, k/n₋) ≥ m), since the m-th hardest of N
    independent draws has rank k or better exactly if m of them have.
    """
    share = np.arange(1, n_neg + 1) / n_neg
    if isinstance(rule, Uniform):
        return share
    if isinstance(rule, DNS):
        return np.mean([binom.sf(m - 1, N, share) for m in range(1, rule.M + 1)], axis=0)
    return None


def sampling_curves(
    pair: Pair,
    settings: dict[str, list[tuple[Rule, int]]] | None = None,
    draws: int = 10_000,
    seed: int = 0,
    progress: bool = True,
) -> list[Curve]:
    """A curve for every setting, and uniform sampling in every panel for comparison."""
    settings = SETTINGS if settings is None else settings
    jobs = [
        (panel, rule, N) for panel, rules in settings.items() for rule, N in [(Uniform(), 1), *rules]
    ]
    curves = []
    for panel, rule, N in tqdm(jobs, desc="simulating", disable=not progress):
        simulated = cumulative_probability(pair, rule, N, draws, seed)
        exact = exact_probability(rule, N, len(simulated))
        curves.append(Curve(_label(rule, N), panel, simulated, exact))
    return curves


def write_csv(curves: list[Curve], path: Path) -> None:
    """Rank, simulated and exact cumulative probability of every curve."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "setting", "rank", "simulated", "exact"])
        for curve in curves:
            for k, value in enumerate(curve.simulated):
                exact = "" if curve.exact is None else f"{curve.exact[k]:.6f}"
                writer.writerow([curve.panel, curve.label, k + 1, f"{value:.6f}", exact])


def plot(curves: list[Curve], path: Path) -> None:
    """One panel per parameter; the exact form as a thin dashed line over the simulation."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys(curve.panel for curve in curves))
    figure = Figure(figsize=(4 * len(panels), 4.4))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for axis, panel in zip(axes[0], panels):
        own = [curve for curve in curves if curve.panel == panel]
        colours = colormaps["viridis"](np.linspace(0.2, 0.9, max(1, len(own) - 1)))
        for n, curve in enumerate(own):
            rank = np.arange(1, len(curve.simulated) + 1)
            colour = "grey" if curve.label == "uniform" else colours[n - 1]
            axis.plot(rank, curve.simulated, color=colour, lw=2.5, label=curve.label)
            if curve.exact is not None:
                label = "exact" if n == len(own) - 1 or own[n + 1 :][0].exact is None else None
                axis.plot(rank, curve.exact, color="black", lw=0.9, ls="--", label=label)
        axis.set_xscale("log")
        axis.set_title(f"the effect of {panel}", fontsize=12)
        axis.set_xlabel("rank of the negative, hardest first", fontsize=11)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=10, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncol=2, frameon=False)
    axes[0][0].set_ylabel("cumulative sampling probability", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def _label(rule: Rule, N: int) -> str:
    if isinstance(rule, Uniform):
        return "uniform"
    name = {"DNS": "DNS", "SoftmaxV": "Softmax-v"}[type(rule).__name__]
    values = ", ".join(f"{getattr(rule, field.name):g}" for field in fields(rule))
    return f"{name}({values}, {N})"
