"""A batch scored by any model, through the ``predict`` that RecBole asks of it."""

from __future__ import annotations

from functools import cached_property

import torch
from recbole.data.interaction import Interaction
from recbole.model.abstract_recommender import AbstractRecommender

from recbole_hns.kernels import Candidates

# Candidates go through a model's predict in pieces of at most this many (context, item) rows.
PREDICT_ROWS = 1 << 18


class PredictQuery:
    """Candidates' scores are what the model predicts for the batch's contexts with these items."""

    def __init__(self, model: AbstractRecommender, batch: Interaction):
        self.model, self.positives = model, batch[model.ITEM_ID]
        # RecBole puts triples of a knowledge graph beside the pairs, as many as there happen to be.
        columns = {k: v for k, v in batch.interaction.items() if len(v) == len(self.positives)}
        self.batch = Interaction(columns)

    def at(self, pairs: torch.Tensor) -> PredictQuery:
        """The query of some of the pairs."""
        return PredictQuery(self.model, self.batch[pairs])

    @cached_property
    def r_ci(self) -> torch.Tensor:
        """The scores of the positives, (B,)."""
        return self.score(Candidates(self.positives[:, None]))[:, 0]

    @torch.no_grad()
    def score(self, candidates: Candidates) -> torch.Tensor:
        """r_cj, (B, N), as in evaluation: no drop-out."""
        B, N = candidates.ids.shape
        step = max(1, PREDICT_ROWS // N)
        was_training = self.model.training
        self.model.eval()
        try:
            scores = [self._predict(candidates.ids, slice(b, b + step)) for b in range(0, B, step)]
        finally:
            self.model.train(was_training)
        return torch.cat(scores)

    def _predict(self, ids: torch.Tensor, part: slice) -> torch.Tensor:
        rows = Interaction({k: v[part] for k, v in self.batch.interaction.items()})
        rows = rows.repeat_interleave(ids.shape[1])
        rows[self.model.ITEM_ID] = ids[part].flatten().long()
        scores: torch.Tensor = self.model.predict(rows).view(-1, ids.shape[1])
        return scores

    def top(self, candidates: Candidates, M: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The M hardest candidates and their scores, both (B, M)."""
        scores, positions = self.score(candidates).topk(M, dim=1)
        return candidates.ids.gather(1, positions), scores
