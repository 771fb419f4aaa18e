"""IRGAN: a generator learns to pick the negatives that the model ranks wrongly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from recbole_hns.kernels import Candidates
from recbole_hns.models.optim import fuse
from recbole_hns.sampling.negatives import Negatives, draw_places
from recbole_hns.sampling.rules import Softmax
from recbole_hns.sampling.sampler import NegativeSampler
from recbole_hns.sampling.seeding import derive_seed
from recbole_hns.settings.checks import setting


@dataclass(frozen=True)
class IRGAN(Softmax):
    """j ~ p_θ(j | c) ∝ exp(g_θ(c, j)/τ − log q_cj) over N candidates, θ ascends E_j[ℓ(r_ci, r_cj)].

    Wang et al. 2017, in the pairwise form: the model is the discriminator and minimises the loss
    that the generator, a matrix factorisation of its own, maximises by policy gradient. The reward of a
    drawn negative is the model's loss on it, the baseline the mean reward of the batch's other pairs.
    """

    knows_q = False

    generator_size: int = setting("the length of the generator's vectors")
    generator_learning_rate: float = setting("of the generator's Adam")


class IRGANSampler(NegativeSampler):
    """One negative per pair, drawn by the generator, which learns from it at once."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        device = self.pool.tables.mass.device
        source = torch.Generator().manual_seed(derive_seed(self.seed, self.rank))
        sizes = (self.pool.user_num, self.pool.item_num)
        self.tables = [
            (0.1 * torch.randn(n, self.method.generator_size, generator=source)).to(device)
            for n in sizes
        ]
        self.optimizer = fuse(torch.optim.Adam(self.tables, lr=self.method.generator_learning_rate))

    @torch.no_grad()
    def select(self, users: torch.Tensor, query) -> Negatives:
        """Draw a negative for each pair, and let the generator learn from the reward."""
        kernels, (user_table, item_table) = self.pool.kernels, self.tables
        candidates = self.candidates(users, query)
        g = kernels.score(user_table, users, item_table, candidates)  # (B, N)
        p = self.method.weigh(g, None, candidates.log_q)
        place = draw_places(p, self.generator)
        drawn = Candidates(candidates.ids.gather(1, place))
        r_cj = query.score(drawn)
        reward = self.pair_loss.ell(query.positive_scores(), r_cj)[:, 0]
        ascent = policy_gradient(p, place, reward, self.method.tau)
        for table, gradient in zip(
            self.tables, kernels.score_backward(user_table, users, item_table, [(candidates, -ascent)])
        ):
            table.grad = gradient
        self.optimizer.step()
        return Negatives(drawn, torch.ones_like(r_cj), r_cj)

    def state_dict(self) -> dict[str, Any]:
        """The generator and its optimiser."""
        return {"tables": self.tables, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the saved generator."""
        for table, saved in zip(self.tables, state["tables"]):
            table.copy_(saved)
        self.optimizer.load_state_dict(state["optimizer"])


def policy_gradient(
    p: torch.Tensor, place: torch.Tensor, reward: torch.Tensor, tau: float
) -> torch.Tensor:
    """An unbiased estimate of ∇_g 1/|B| Σ_b E_{j ~ p_b}[reward], (B, N) (REINFORCE).

    (reward − baseline) ∇_g log p_bj for the drawn place, ∇_g log p_bj = (1{j} − p_b)/τ. The baseline of
    a pair is the mean reward of the others, which its own draw does not touch.
    """
    B = len(p)
    baseline = (reward.sum() - reward) / max(1, B - 1)
    advantage = ((reward - baseline) / (tau * B))[:, None]
    return (-p * advantage).scatter_add_(1, place, advantage)
