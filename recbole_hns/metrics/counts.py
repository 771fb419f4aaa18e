"""What partial AUCs are made of: how many negatives stand above each positive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from recbole_hns.errors import Error
from recbole_hns.kernels import Backend

Numbers = npt.NDArray[np.float64]


def can_count(scores: torch.Tensor, positive_u: torch.Tensor, positive_i: torch.Tensor) -> bool:
    """Whether counting finds the top K of a batch, and sooner than sorting.

    It does not know positives that are named twice or take no part, and users without any.
    """
    if scores.device.type != "cpu":
        return False
    keys = positive_u * scores.shape[1] + positive_i
    return (
        len(torch.unique(keys)) == len(keys)
        and len(torch.unique(positive_u)) == len(scores)
        and bool(scores[positive_u, positive_i].isfinite().all())
    )


@dataclass
class RankCounts:
    """One entry per positive, grouped by user and ascending within a user.

    ``above`` is the number of the user's negatives that score higher, a tie counting one half, ``tied``
    that of ties; the user's n₊ and n₋ stand beside them. x = above / n₋ is the false positive rate at the
    positive; where there are ties, the middle of the rates that the straight line through them passes.
    """

    above: Numbers  # (P,)
    place: Numbers  # (P,) 0 for the user's best-ranked positive, 1 for the next, …
    n_pos: Numbers  # (P,)
    n_neg: Numbers  # (P,)
    tied: Numbers  # (P,)

    @classmethod
    def from_scores(
        cls,
        scores: torch.Tensor,
        positive_u: torch.Tensor,
        positive_i: torch.Tensor,
        kernels: Backend,
    ) -> RankCounts:
        """Count in a (users, items) matrix in which −inf marks items that do not take part.

        No items are sorted: each positive costs one pass over its user's row.

        Raises:
            Error: if a score is NaN.
        """
        users, order = positive_u.to(scores.device).sort(stable=True)
        values = scores[users, positive_i.to(scores.device)[order]]
        n_pos = torch.bincount(users, minlength=len(scores))
        first = F.pad(n_pos.cumsum(0), (1, 0))
        above, tied, n_items = kernels.negatives_above(scores, first, values)
        if (n_items < 0).any():
            raise Error("the model's scores are NaN: it has diverged, try a smaller learning rate.")
        order = (users * (scores.shape[1] + 1.0) + above).argsort()  # ascending within each user
        place = torch.arange(len(users), device=scores.device) - first[users]
        columns = (above[order], place, n_pos[users], (n_items - n_pos)[users], tied[order])
        return cls(*(column.double().cpu().numpy() for column in columns))

    @classmethod
    def concatenate(cls, parts: list[RankCounts]) -> RankCounts:
        """The counts of several batches of users."""
        columns = zip(*(part._columns() for part in parts))
        return cls(*(np.concatenate(column) for column in columns))

    def _columns(self) -> tuple[Numbers, ...]:
        return self.above, self.place, self.n_pos, self.n_neg, self.tied

    def by_user(self) -> tuple[Numbers, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """``above`` of all positives, and n₊ and n₋ once per user: what the theory's bounds take."""
        first = self.place == 0
        return self.above, self.n_pos[first].astype(int), self.n_neg[first].astype(int)

    def hits(self, k: int) -> torch.Tensor:
        """RecBole's ``rec.topk``: which of a user's first k places hold positives, and n₊ behind them.

        A positive that ties with negatives stands in the middle of them.
        """
        user = np.cumsum(self.place == 0) - 1
        rank = (np.ceil(self.above) + self.place).astype(int)
        found = np.zeros((user[-1] + 1, k + 1), dtype=np.int64)
        found[user[rank < k], rank[rank < k]] = 1
        found[user, k] = self.n_pos
        return torch.from_numpy(found)

    def with_negatives(self) -> tuple[RankCounts, int]:
        """Without the users who have no negative, and how many those are."""
        kept = self.n_neg > 0
        left_out = round((1 / self.n_pos[~kept]).sum())
        return RankCounts(*(column[kept] for column in self._columns())), left_out
