"""Rules: how candidates' scores become the weights p_cij of the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from recbole_hns.errors import Error
from recbole_hns.kernels import Candidates
from recbole_hns.losses import DEFAULT_LOSS, PairLoss
from recbole_hns.sampling.method import Method
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.settings.checks import setting


class Rule(Method):
    """Turns a pool's candidates into weighted negatives.

    Most rules say only how scores become weights and write :meth:`weigh`; one that needs no scores, or
    only the best of them, writes :meth:`choose`.
    """

    def choose(self, candidates: Candidates, query, pair_loss: PairLoss = DEFAULT_LOSS) -> Negatives:
        """The negatives of every pair; ``query`` scores candidates (see :mod:`..scorer`)."""
        r_cj = query.score(candidates)  # (B, N)
        L = pair_loss.ell(query.positive_scores(), r_cj)
        return Negatives(candidates, self.weigh(r_cj, L, candidates.log_q), r_cj, L)

    def weigh(self, r_cj: torch.Tensor, L: torch.Tensor, log_q: torch.Tensor | None) -> torch.Tensor:
        """p_cij from the candidates' scores r_cj and losses L = ℓ(r_ci, r_cj), all (B, N)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Uniform(Rule):
    """p_cij = 1/N: plain BPR with N negatives (Rendle et al. 2009), no scores needed."""

    def beta(self, N: int) -> float:
        """1: BPR with uniform negatives optimises AUC."""
        return 1.0

    def choose(self, candidates: Candidates, query, pair_loss: PairLoss = DEFAULT_LOSS) -> Negatives:
        """All candidates alike."""
        B, N = candidates.ids.shape
        return Negatives(candidates, torch.full((B, N), 1 / N, device=candidates.ids.device))


@dataclass(frozen=True)
class DNS(Rule):
    """p_cij = 1/M for the M highest-scored of N candidates, else 0 (eq. 2, Algorithm 1).

    M = 1 is the original DNS (Zhang et al. 2013). The smaller M, the harder the negatives.
    """

    M: int = setting("how many of the hardest candidates are kept; smaller is harder")

    def check(self, N: int) -> None:
        """M of N."""
        if self.M > N:
            raise Error(
                f"M={self.M} is not allowed: a whole number from 1 to {N} is needed (the M hardest of "
                f"N={N} candidates are kept)."
            )

    def beta(self, N: int) -> float:
        """M/N: the top M of the pool stand for the top M/N of all negatives (theorem 1)."""
        return self.M / N

    def choose(self, candidates: Candidates, query, pair_loss: PairLoss = DEFAULT_LOSS) -> Negatives:
        """The M hardest."""
        ids, scores = query.top(candidates, self.M)
        return Negatives(Candidates(ids), torch.full_like(scores, 1 / self.M), scores)


@dataclass(frozen=True)
class Softmax(Rule):
    """p_cij ∝ exp(r_cj/τ − log q_cj) over the candidates (eq. 3, with the pool's q corrected for).

    The smaller τ, the harder the negatives.
    """

    tau: float = setting("the temperature of the softmax; smaller is harder")

    def weigh(self, r_cj, L, log_q):
        """Self-normalised importance weights of the softmax distribution."""
        logits = r_cj if self.tau == 1 else r_cj / self.tau
        return torch.softmax(logits if log_q is None else logits - log_q, dim=1)


@dataclass(frozen=True)
class SoftmaxV(Rule):
    """p_cij ∝ exp(ℓ(r_ci − r_cj)/τ), τ = √(Var_j ℓ / 2ρ) (eq. 17, Algorithm 2).

    ℓ is that of ``pair_loss``, the variance the population's, over the pool; τ adapts so that β = e^−ρ
    stays the same while training goes on. The larger ρ, the harder the negatives. Where all losses are
    equal no candidate is harder than another and the weights are uniform.
    """

    rho: float = setting("the hardness, β = e^−ρ; larger is harder")

    def beta(self, N: int) -> float:
        """e^−ρ (theorem 2)."""
        return math.exp(-self.rho)

    def weigh(self, r_cj, L, log_q):
        """Softmax of the losses at the adaptive temperature."""
        centred = L - L.mean(dim=1, keepdim=True)
        # √Var_j as a norm: torch.var would take five times as long.
        deviation = torch.linalg.vector_norm(centred, dim=1, keepdim=True) / L.shape[1] ** 0.5
        inverse_tau = torch.where(deviation > 0, (2 * self.rho) ** 0.5 / deviation, 0.0)
        return torch.softmax(centred.mul_(inverse_tau), dim=1)
