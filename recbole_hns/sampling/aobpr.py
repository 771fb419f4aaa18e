"""AOBPR: items that rank high in a factor that matters to the context."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from recbole_hns.kernels import Candidates
from recbole_hns.sampling.method import Method
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.sampler import NegativeSampler
from recbole_hns.settings.checks import setting

# A draw that hits one of the user's positives is drawn again, this often at most.
REDRAWS = 100


@dataclass(frozen=True)
class AOBPR(Method):
    """p(j | c) = Σ_f p(f | c) p(r_f(j)), p(f | c) ∝ |w_cf| σ_f, p(r) ∝ e^(−r/λ).

    Rendle and Freudenthaler 2014. A factor f is drawn that matters to the context, then a rank r; the
    negative is the r-th item from the top of factor f, or from its bottom where w_cf is negative. σ_f is
    the deviation of factor f among items. Draws that hit a positive of the user are repeated.
    """

    takes = ("N",)
    needs_vectors = "ranks items by the factors of the model"
    knows_q = False

    lam: float = setting("λ of the geometric rank; smaller is harder")


class AOBPRSampler(NegativeSampler):
    """N negatives alike; the items' order in each factor is renewed every |I| log |I| draws."""

    def start_epoch(self, epoch: int) -> None:
        """The order is renewed with every epoch too, so that none is saved between two."""
        super().start_epoch(epoch)
        self.order = None

    @torch.no_grad()
    def select(self, users: torch.Tensor, query) -> Negatives:
        """Draw N negatives for each pair."""
        n_items = self.pool.item_num - 1
        if self.order is None or self.drawn >= n_items * math.log(n_items):
            self.renew(query.items)
        B, N = len(users), self.N
        self.drawn += B * N
        users = users.repeat_interleave(N)
        importance = query.context[query.rows].repeat_interleave(N, dim=0) * self.sigma  # (B N, d)
        ids = self.draw(importance)
        for _ in range(REDRAWS):
            hit = self.pool.tables.is_positive(users, ids).nonzero()[:, 0]
            if len(hit) == 0:
                break
            ids[hit] = self.draw(importance[hit])
        else:  # what is left ranks below hundreds of the user's own positives
            hit = self.pool.tables.is_positive(users, ids).nonzero()[:, 0]
            ids[hit] = self.pool.draw(users[hit], 1).ids[:, 0].long()
        weights = torch.full((B, N), 1 / N, device=ids.device)
        return Negatives(Candidates(ids.view(B, N).int()), weights)

    def renew(self, items: torch.Tensor) -> None:
        """Order the items, without the padding, in each factor."""
        factors = items[1:].T.contiguous()  # (d, |I|)
        self.order = factors.argsort(dim=1, descending=True) + 1
        self.sigma = factors.std(dim=1, unbiased=False)
        self.drawn = 0

    def draw(self, importance: torch.Tensor) -> torch.Tensor:
        """An item for each row of w_cf σ_f, (n, d)."""
        n, n_items = len(importance), self.order.shape[1]
        edges = importance.abs().cumsum(dim=1)
        point = self._uniform(n)[:, None].float() * edges[:, -1:]
        f = torch.searchsorted(edges, point, right=True).clamp(max=edges.shape[1] - 1)[:, 0]
        rank = self.draw_ranks(n, n_items)
        positive = importance.gather(1, f[:, None])[:, 0] > 0
        return self.order[f, torch.where(positive, rank, n_items - 1 - rank)]

    def draw_ranks(self, n: int, n_items: int) -> torch.Tensor:
        """Ranks 0, 1, … with p(r) ∝ e^(−r/λ): the floor of a truncated exponential variable."""
        lam = self.method.lam
        rank = torch.floor(-lam * torch.log1p(self._uniform(n) * math.expm1(-n_items / lam)))
        return rank.long().clamp(max=n_items - 1)

    def _uniform(self, n: int) -> torch.Tensor:
        device = self.order.device
        return torch.rand(n, generator=self.generator, device=device, dtype=torch.float64)

    def state_dict(self) -> dict[str, Any]:
        """The order of the items, if the epoch has one."""
        if self.order is None:
            return {}
        return {"order": self.order, "sigma": self.sigma, "drawn": self.drawn}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the saved order."""
        if state:
            device = self.pool.tables.mass.device
            self.order, self.sigma = state["order"].to(device), state["sigma"].to(device)
            self.drawn = state["drawn"]
