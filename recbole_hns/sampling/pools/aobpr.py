"""AOBPR: items that rank high in a factor that matters to the context."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

import torch

from recbole_hns.kernels import Candidates
from recbole_hns.sampling.pools.base import Pool, Source, items_of
from recbole_hns.sampling.query import Query, vectors_of
from recbole_hns.sampling.world import World
from recbole_hns.settings.kinds import Positive, setting
from recbole_hns.settings.registry import register

# A draw that hits one of the user's positives is drawn again, this often at most.
REDRAWS = 100


@register
class AOBPR(Pool, frozen=True):
    """p(j | c) = Σ_f p(f | c) p(r_f(j)), p(f | c) ∝ |w_cf| σ_f, p(r) ∝ e^(−r/λ).

    Rendle and Freudenthaler 2014. A factor f is drawn that matters to the context, then a rank r; the
    negative is the r-th item from the top of factor f, or from its bottom where w_cf is negative. σ_f is
    the deviation of factor f among items. Draws that hit a positive of the user are repeated. λ = 500 is
    LibRec's.
    """

    needs_vectors: ClassVar[str] = "ranks items by the factors of the model"

    lam: Annotated[
        Positive, setting("λ of the geometric rank; smaller is harder", "λ", (50, 500, 5000))
    ] = 500.0

    def open(self, world: World, block: int = 1) -> AOBPRSource:
        """Without an order of the items yet."""
        return AOBPRSource(self, world)


class AOBPRSource(Source):
    """Keeps the items' order in each factor, renewed every |I| log |I| draws."""

    def __init__(self, pool: AOBPR, world: World):
        super().__init__(world)
        self.pool, self.line, self.first = pool, world.line, world.positives.first
        self.order: torch.Tensor | None = None
        self.sigma = torch.empty(0)
        self.drawn = 0

    def start_epoch(self, epoch: int) -> None:
        """The order is renewed with every epoch too, so that none is saved between two."""
        self.order = None

    def draw(self, users: torch.Tensor, N: int, query: Query | None = None) -> Candidates:
        """N items for each pair."""
        v = vectors_of(query)
        n_items = self.world.n_items - self.first
        order = self.order
        if order is None or self.drawn >= n_items * math.log(n_items):
            order = self.renew(v.items)
        B = len(users)
        self.drawn += B * N
        users = users.repeat_interleave(N)
        importance = v.context[v.rows].repeat_interleave(N, dim=0) * self.sigma  # (B N, d)
        ids = self._items(order, importance)
        for _ in range(REDRAWS):
            hit = self.line.is_positive(users, ids).nonzero()[:, 0]
            if len(hit) == 0:
                break
            ids[hit] = self._items(order, importance[hit])
        else:  # what is left ranks below hundreds of the user's own positives
            hit = self.line.is_positive(users, ids).nonzero()[:, 0]
            own = self.world.backend.draw(self.line, users[hit], 1, 1, self.generator)
            ids[hit] = own.ids[:, 0].long()
        return Candidates(ids.view(B, N).int())

    def renew(self, items: torch.Tensor) -> torch.Tensor:
        """Order the items, without the padding, in each factor."""
        factors = items[self.first :].T.contiguous()  # (d, |I|)
        self.order = factors.argsort(dim=1, descending=True) + self.first
        self.sigma = factors.std(dim=1, unbiased=False)
        self.drawn = 0
        return self.order

    def _items(self, order: torch.Tensor, importance: torch.Tensor) -> torch.Tensor:
        """An item for each row of w_cf σ_f, (n, d)."""
        n, n_items = len(importance), order.shape[1]
        edges = importance.abs().cumsum(dim=1)
        point = self._uniform(n)[:, None].float() * edges[:, -1:]
        f = torch.searchsorted(edges, point, right=True).clamp(max=edges.shape[1] - 1)[:, 0]
        rank = self.draw_ranks(n, n_items)
        positive = importance.gather(1, f[:, None])[:, 0] > 0
        return order[f, torch.where(positive, rank, n_items - 1 - rank)]

    def draw_ranks(self, n: int, n_items: int) -> torch.Tensor:
        """Ranks 0, 1, … with p(r) ∝ e^(−r/λ): the floor of a truncated exponential variable."""
        lam = self.pool.lam
        rank = torch.floor(-lam * torch.log1p(self._uniform(n) * math.expm1(-n_items / lam)))
        return rank.long().clamp(max=n_items - 1)

    def _uniform(self, n: int) -> torch.Tensor:
        device = self.world.device
        return torch.rand(n, generator=self.generator, device=device, dtype=torch.float64)

    def state_dict(self) -> dict[str, Any]:
        """The order of the items, if the epoch has one."""
        if self.order is None:
            return {}
        return {"order": self.order, "sigma": self.sigma, "drawn": self.drawn}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the saved order."""
        if state:
            self.order = items_of(state["order"], self.world).to(self.world.device)
            self.sigma, self.drawn = state["sigma"].to(self.world.device), state["drawn"]
