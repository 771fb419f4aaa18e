"""Which negatives a sampler really draws (the paper's figure Cumulative_Probability).

The draws come from the pools and rules that train, so what the figure shows is what training does.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binom
from tqdm import tqdm

from recbole_hns.errors import Error
from recbole_hns.files import whole_file
from recbole_hns.kernels import Candidates
from recbole_hns.sampling import Method, Negatives, Positives, World, pools, rules
from recbole_hns.sampling.methods import label, title
from recbole_hns.settings.registry import name_of

Floats = NDArray[np.float64]
Ranks = NDArray[np.int64]

BATCH = 1000  # draws that are simulated at a time, fewer of them ...
CANDIDATES = 1 << 22  # ... where N is so large that they would have more candidates than these
SETTINGS: dict[str, list[Method]] = {  # the paper's
    "M": [Method(rule=rules.DNS(M=M), N=200) for M in (1, 5, 20)],
    "N": [Method(rule=rules.DNS(M=5), N=N) for N in (50, 200, 800)],
    "ρ": [Method(rule=rules.SoftmaxV(rho=rho), N=200) for rho in (0.1, 1.0, 10.0)],
}


@dataclass(frozen=True)
class Pair:
    """A context c with its positive i, a user's, and the scores that a model gives all items for c."""

    world: World
    user: int
    positive: int
    scores: torch.Tensor  # (n_items,)

    @cached_property
    def ranks(self) -> Ranks:
        """The rank of every item among the user's negatives, 1 the hardest; 0 for all others."""
        scores, positives = self.scores.numpy(), self.world.positives
        free = np.setdiff1d(np.arange(positives.first, len(scores)), positives.row(self.user))
        ranks = np.zeros(len(scores), dtype=np.int64)
        ranks[free[np.argsort(-scores[free], kind="stable")]] = np.arange(1, len(free) + 1)
        return ranks


class PairQuery:
    """A batch of draws for one pair: the candidates' scores are looked up."""

    def __init__(self, pair: Pair, positives: torch.Tensor):
        self.pair, self.positives, self.ranks = pair, positives, torch.from_numpy(pair.ranks)

    @property
    def r_ci(self) -> torch.Tensor:
        """The scores of the positives, (B,)."""
        return self.pair.scores[self.positives]

    def score(self, candidates: Candidates) -> torch.Tensor:
        """r_cj, (B, N)."""
        return self.pair.scores[candidates.ids.long()]

    def top(self, candidates: Candidates, M: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The M hardest candidates and their scores, both (B, M); equal scores are told apart by rank."""
        ids = candidates.ids.long()
        best = ids.gather(1, self.ranks[ids].topk(M, dim=1, largest=False).indices)
        return best, self.pair.scores[best]

    def at(self, pairs: torch.Tensor) -> PairQuery:
        """The query of some of the draws."""
        return PairQuery(self.pair, self.positives[pairs])


@dataclass
class Curve:
    """Cumulative sampling probability by rank under one setting."""

    label: str
    panel: str
    simulated: Floats  # (n₋,)
    exact: Floats | None  # (n₋,) where there is a closed form
    reference: bool = False  # uniform sampling, with which the others are compared


def generated_pair(n_users: int = 200, n_items: int = 5000, d: int = 32, seed: int = 0) -> Pair:
    """A pair over generated embeddings, whose scores spread as a trained model's do.

    Ids begin with 1, as RecBole's do.
    """
    rng = np.random.default_rng(seed)
    # Popular items have longer vectors that point where most users do.
    direction = rng.normal(size=d) / d**0.5
    lengths = rng.lognormal(sigma=0.35, size=(n_items + 1, 1))
    items = lengths * (0.6 * direction + rng.normal(size=(n_items + 1, d)) / d**0.5)
    users = direction + rng.normal(size=(n_users + 1, d)) / d**0.5
    scores = users @ items.T
    taken = np.argsort(-(scores + rng.gumbel(size=scores.shape))[1:, 1:], axis=1)[:, :30] + 1
    who = np.repeat(np.arange(1, n_users + 1), taken.shape[1])
    positives = Positives(who, taken.ravel(), n_users + 1, n_items + 1)
    user, positive = choose_pair(positives, seed)
    context, table = (torch.tensor(array, dtype=torch.float32) for array in (users[user], items))
    return Pair(World(positives, seed=seed), user, positive, table @ context)


def choose_pair(
    positives: Positives, seed: int, user: int | None = None, positive: int | None = None
) -> tuple[int, int]:
    """A (user, positive) of a training set, drawn by seed where it is not named."""
    rng = np.random.default_rng(seed)
    if user is None:
        user = int(rng.choice(np.flatnonzero(positives.counts)))
    taken = positives.row(user)
    if positive is None and len(taken):
        positive = int(rng.choice(taken))
    if positive is None or positive not in taken:
        raise Error("that user has no such training item: name a pair of the training set.")
    return user, positive


def cumulative_probability(pair: Pair, method: Method, draws: int = 10_000) -> Floats:
    """The mean of p_cij over simulated draws for one pair, summed up by score rank, (n₋,)."""
    ranks = pair.ranks
    sampler = method.open(pair.world)
    total = np.zeros(ranks.max() + 1)
    batch = max(1, min(BATCH, CANDIDATES // (method.N or 1)))
    for first in range(0, draws, batch):
        users = torch.full((min(batch, draws - first),), pair.user)
        query = PairQuery(pair, torch.full_like(users, pair.positive))
        negatives = sampler.select(users, query)
        if not isinstance(negatives, Negatives):
            raise Error("there are no draws to simulate: the pool is all items, and p_cij is exact.")
        weights = negatives.weights.double().numpy().ravel()
        drawn = ranks[negatives.ids.numpy().ravel()]
        total += np.bincount(drawn, weights, minlength=len(total))
    return np.asarray(np.cumsum(total[1:]) / draws)


def exact_probability(method: Method, n_neg: int) -> Floats | None:
    """The closed form where there is one, (n₋,).

    Uniform: k/n₋. DNS(M, N): 1/M Σ_m P(Binomial(N, k/n₋) ≥ m), since the m-th hardest of N
    independent draws has rank k or better exactly if m of them have.
    """
    share = np.arange(1, n_neg + 1) / n_neg
    if not isinstance(method.pool, pools.Uniform):
        return None
    if isinstance(method.rule, rules.Uniform):
        return share
    if isinstance(method.rule, rules.DNS):
        above = [binom.sf(m - 1, method.N, share) for m in range(1, method.rule.M + 1)]
        return np.asarray(np.mean(above, axis=0))
    return None


def sampling_curves(
    pair: Pair,
    settings: Mapping[str, Sequence[Method]] | None = None,
    draws: int = 10_000,
    progress: bool = True,
) -> list[Curve]:
    """A curve for every setting, and uniform sampling in every panel for comparison."""
    uniform = Method(rule=rules.Uniform(), N=1)
    jobs = [
        (panel, method)
        for panel, methods in (SETTINGS if settings is None else settings).items()
        for method in (uniform, *methods)
    ]
    curves = []
    for panel, method in tqdm(jobs, desc="simulating", disable=not progress):
        simulated = cumulative_probability(pair, method, draws)
        exact = exact_probability(method, len(simulated))
        curves.append(Curve(label_of(method), panel, simulated, exact, method is uniform))
    return curves


def label_of(method: Method) -> str:
    """The rule with what it is set to, as reports write it: DNS(5, 200); ``uniform`` has nothing to set."""
    name, values = name_of(method.rule), [*method.rule.settings.values(), method.N]
    if isinstance(method.rule, rules.Uniform):
        return name
    text = label(name, method.settings)
    shown = ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)
    return f"{text}({shown})" if text == title(name) else text


def write_csv(curves: Sequence[Curve], path: Path) -> None:
    """Rank, simulated and exact cumulative probability of every curve."""
    with whole_file(path, newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "setting", "rank", "simulated", "exact"])
        for curve in curves:
            for k, value in enumerate(curve.simulated):
                exact = "" if curve.exact is None else f"{curve.exact[k]:.6f}"
                writer.writerow([curve.panel, curve.label, k + 1, f"{value:.6f}", exact])
