"""IRGAN: a generator learns to pick the negatives that the model ranks wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch

from recbole_hns.errors import Error
from recbole_hns.kernels import Candidates, Vectors
from recbole_hns.sampling.negatives import Negatives, draw_places
from recbole_hns.sampling.query import Query
from recbole_hns.sampling.rules.base import Rule
from recbole_hns.sampling.rules.softmax import softmax_weights
from recbole_hns.sampling.sampler import Sampler
from recbole_hns.sampling.seeding import derive_seed
from recbole_hns.sampling.world import World
from recbole_hns.settings.kinds import Count, Positive, setting
from recbole_hns.settings.registry import register

if TYPE_CHECKING:
    from recbole_hns.sampling.methods import Method


class IRGANSampler(Sampler):
    """One negative per pair, drawn by the generator, which learns from it at once."""

    def __init__(self, method: Method, world: World):
        super().__init__(method, world)
        if not isinstance(method.rule, IRGAN):
            raise Error("a generator belongs to the rule IRGAN.")
        self.rule = method.rule
        source = torch.Generator().manual_seed(derive_seed(world.seed, world.rank))
        sizes = (world.n_users, world.n_items)
        self.tables = [
            (0.1 * torch.randn(n, self.rule.generator_size, generator=source)).to(world.device)
            for n in sizes
        ]
        fused = world.device.type == "cpu" or None
        rate = self.rule.generator_learning_rate
        self.optimizer = torch.optim.Adam(self.tables, lr=rate, fused=fused)

    @torch.no_grad()
    def select(self, users: torch.Tensor, query: Query) -> Negatives:
        """Draw a negative for each pair, and let the generator learn from the reward."""
        backend, v = self.world.backend, Vectors(self.tables[0], users, self.tables[1])
        candidates = self.source.draw(users, self.method.N or 1, query)
        g = backend.score(v, candidates)  # (B, N)
        p = softmax_weights(g, self.rule.tau, candidates.log_q)
        place = draw_places(p, self.generator)
        drawn = Candidates(candidates.ids.gather(1, place))
        r_cj = query.score(drawn)
        reward = self.method.loss.ell(query.r_ci, r_cj)[:, 0]
        ascent = policy_gradient(p, place, reward, self.rule.tau)
        for table, gradient in zip(self.tables, backend.score_backward(v, [(candidates, -ascent)])):
            table.grad = gradient
        self.optimizer.step()
        return Negatives(drawn, torch.ones_like(r_cj), r_cj)

    def state_dict(self) -> dict[str, Any]:
        """The generator and its optimiser."""
        own = {"tables": self.tables, "optimizer": self.optimizer.state_dict()}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the saved generator."""
        super().load_state_dict(state)
        for table, saved in zip(self.tables, state["tables"]):
            table.copy_(saved)
        self.optimizer.load_state_dict(state["optimizer"])


@register
class IRGAN(Rule, frozen=True):
    """j ~ p_θ(j | c) ∝ exp(g_θ(c, j)/τ − log q_cj) over N candidates, θ ascends E_j[ℓ(r_ci, r_cj)].

    Wang et al. 2017, in the pairwise form: the model is the discriminator and minimises the loss
    that the generator, a matrix factorisation of its own, maximises by policy gradient. The reward of a
    drawn negative is the model's loss on it, the baseline the mean reward of the batch's other pairs.
    τ and the learning rate are those of the authors' code.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"ids"})
    hides_q: ClassVar[bool] = True

    tau: Annotated[
        Positive, setting("the temperature of the generator; smaller is harder", "τ", (0.2, 0.5, 1.0))
    ] = 0.2
    generator_size: Annotated[Count, setting("the length of the generator's vectors")] = 32
    generator_learning_rate: Annotated[Positive, setting("of the generator's Adam")] = 0.001

    @classmethod
    def sampler(cls) -> type[Sampler]:
        """One of its own."""
        return IRGANSampler


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
