"""All items: no sampling, every negative of the user, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from recbole_hns.kernels import Vectors
from recbole_hns.losses import Loss
from recbole_hns.sampling.negatives import draw_places
from recbole_hns.sampling.pools.base import Pool, Source
from recbole_hns.sampling.query import DotQuery, Query, vectors_of
from recbole_hns.sampling.rules.uniform import Uniform
from recbole_hns.sampling.sampler import Sampler
from recbole_hns.sampling.scored import Rows
from recbole_hns.sampling.world import World
from recbole_hns.settings.registry import register

if TYPE_CHECKING:
    from recbole_hns.sampling.methods import Method

# AllPairsLoss works on rows of scores in chunks of this many numbers, some three such tensors at once.
# On a CPU they stay in its cache; elsewhere few large products are faster.
CHUNK_NUMBERS = {"cpu": 1 << 20, "other": 1 << 23}


class AllNegatives:
    """All negatives of each pair: :class:`~..negatives.Negatives` without a list of them."""

    def __init__(self, world: World, method: Method, users: torch.Tensor, query: Query):
        self.world, self.rule, self.users = world, method.rule, users
        self.query, self.pair_loss = query, method.loss
        self.n_neg = world.line.negatives_of(users).float()  # (B,)
        self.alike = isinstance(method.rule, Uniform)

    def taken(self, users: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Places in ``users`` and the items that the user there took, both (P,)."""
        return self.world.line.positives_of(users)

    def loss(self, query: DotQuery, loss: Loss) -> torch.Tensor:
        """The mean loss of the pairs, each with all negatives j of its context."""
        v, positives = query.vectors, query.positives.ids[:, 0].long()
        return _apply(v.context, v.items, v.rows, positives, self, loss)

    def over_all(
        self, loss: Loss, r_ci: torch.Tensor, scores: torch.Tensor, owner: torch.Tensor, n: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The loss of a chunk's pairs, and its gradients by r_ci (P,) and by the users' scores.

        Negatives that count alike have a faster way (:meth:`~..losses.Loss.over_all`); others are weighed
        by the rule user by user.
        """
        if self.alike and loss.in_closed_form():
            return loss.over_all(r_ci, scores, owner, n, self.world.backend)
        value = scores.new_zeros(())
        g_ci, G = torch.empty_like(r_ci), torch.zeros_like(scores)
        for u in range(len(scores)):
            pairs = (owner == u).nonzero()[:, 0]
            j = (scores[u] > -torch.inf).nonzero()[:, 0]
            r_cj = scores[u, j].expand(len(pairs), -1).contiguous()
            p = self.rule.weigh(Rows(r_ci[pairs], r_cj, loss))
            log_q = -n[u].log().expand(len(pairs), 1)
            at_hand = self.rule.keeps(len(j))
            if at_hand < len(j):
                p, kept = p.topk(at_hand, dim=1)
                r_cj, j = r_cj.gather(1, kept), j[kept]
            more, g_ci[pairs], g_cj = loss.value_and_gradients(r_ci[pairs], r_cj, p, at_hand, log_q)
            value = value + more
            each = g_cj.sum(dim=0) if j.dim() == 1 else g_cj.flatten()
            G[u].index_add_(0, j.flatten(), each)
        return value, g_ci, G

    def mass(self, n_items: int) -> torch.Tensor:
        """The weight that falls on each item, (n_items,)."""
        if not self.alike:
            total = torch.zeros(n_items, device=self.n_neg.device)
            for _, j, p in self.weighed():
                total.index_add_(0, j, p.sum(dim=0))
            return total
        weight = 1 / self.n_neg
        places, items = self.taken(self.users)
        total = weight.sum() - torch.zeros(n_items, device=weight.device).index_add_(
            0, items, weight[places]
        )
        total[: self.world.positives.first] = 0
        return total

    def draw_one(self, generator: torch.Generator) -> torch.Tensor:
        """One negative per pair, drawn from p, for a model that wants to see one."""
        if self.alike:
            drawn = self.world.backend.draw(self.world.line, self.users, 1, 1, generator)
            return drawn.ids[:, 0].long()
        chosen = torch.empty_like(self.users)
        for pairs, j, p in self.weighed():
            chosen[pairs] = j[draw_places(p, generator)[:, 0]]
        return chosen

    @torch.no_grad()
    def weighed(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Of each context: its pairs, the ids of its negatives, and p_cij (pairs, n₋)."""
        v = vectors_of(self.query)
        everyone, owner = torch.unique(v.rows, return_inverse=True)
        for number, row in enumerate(everyone.tolist()):
            pairs = (owner == number).nonzero()[:, 0]
            free = torch.ones(len(v.items), dtype=torch.bool, device=v.items.device)
            free[self.taken(self.users[pairs[:1]])[1]] = False
            free[: self.world.positives.first] = False
            j = free.nonzero()[:, 0]
            r_cj = (v.items[j] @ v.context[row]).expand(len(pairs), -1).contiguous()
            yield pairs, j, self.rule.weigh(Rows(self.query.r_ci[pairs], r_cj, self.pair_loss))


class AllPairsLoss(torch.autograd.Function):
    """1/|B| of the losses of pairs with every item j that the context's user did not take.

    A user's items are scored once for all pairs of the batch that are the user's. The gradient is found
    on the way, chunk by chunk, so that no (B, n_items) tensor is kept.
    """

    @staticmethod
    def forward(
        ctx: Any,
        context: torch.Tensor,
        items: torch.Tensor,
        rows: torch.Tensor,
        positives: torch.Tensor,
        negatives: AllNegatives,
        loss: Loss,
    ) -> torch.Tensor:
        B = len(rows)
        grads = Vectors(torch.zeros_like(context), rows, torch.zeros_like(items))
        total = context.new_zeros((), dtype=torch.float64)
        numbers = CHUNK_NUMBERS["cpu" if items.device.type == "cpu" else "other"]
        # Pairs of one context are of one user; the first of them stands for all.
        everyone, owner = torch.unique(rows, return_inverse=True)
        order = owner.argsort(stable=True)
        ends = owner.bincount().cumsum(0).tolist()
        step, begin = max(1, numbers // len(items)), 0
        for first in range(0, len(everyone), step):
            last = min(first + step, len(everyone))
            pairs, begin = order[begin : ends[last - 1]], ends[last - 1]
            own, contexts, i = owner[pairs] - first, everyone[first:last], positives[pairs]
            whose = rows.new_empty(last - first).scatter_(0, own, negatives.users[pairs])
            n = negatives.n_neg.new_empty(last - first).scatter_(0, own, negatives.n_neg[pairs])
            C = context[contexts]
            scores = C @ items.T  # (U, n_items)
            r_ci = scores[own, i]
            scores[negatives.taken(whose)] = -torch.inf
            scores[:, : negatives.world.positives.first] = -torch.inf
            value, g_ci, G = negatives.over_all(loss, r_ci, scores, own, n)
            total += value / B
            g_ci = g_ci[:, None]
            grads.context[contexts] = (G @ items).index_add_(0, own, g_ci * items[i]).div_(B)
            grads.items.addmm_(G.T, C)
            grads.items.index_add_(0, i, g_ci * C[own])
        ctx.gradients = grads.context, grads.items.div_(B)
        return total.to(context.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        gradients = [gradient.mul_(grads[0]) for gradient in ctx.gradients]
        ctx.gradients = None  # spent: a second backward pass fails instead of giving wrong numbers
        return (*gradients, *[None] * 4)


_apply: Callable[..., torch.Tensor] = AllPairsLoss.apply


class AllSampler(Sampler):
    """Chooses nothing."""

    def select(self, users: torch.Tensor, query: Query) -> AllNegatives:
        """All negatives."""
        return AllNegatives(self.world, self.method, users, query)


@register(name="all")
class Everything(Pool, frozen=True):
    """All n₋ negatives of the context: the loss itself, and its exact gradient.

    The paper's Non-Sampling strategy (section 1). A step costs matrix products of its users × items, so
    its batches hold all pairs of a user together: the more pairs a user has in one, the fewer users.
    """

    gives: ClassVar[frozenset[str]] = frozenset({"q"})
    needs_vectors: ClassVar[str] = "ranks against all items at once"
    needs_pair_loss: ClassVar[str] = "ranks against all items at once"
    dense_gradient: ClassVar[bool] = True
    by_user: ClassVar[bool] = True
    stands_for_all: ClassVar[bool] = True

    def open(self, world: World, block: int = 1) -> Source:
        """Nothing is drawn."""
        return Source(world)

    @classmethod
    def sampler(cls) -> type[Sampler]:
        """One of its own."""
        return AllSampler
