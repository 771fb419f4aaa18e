"""A batch scored by any model, through the ``predict`` that RecBole asks of it."""

from __future__ import annotations

from functools import cached_property

import torch
from recbole.data.interaction import Interaction
from recbole.model.abstract_recommender import AbstractRecommender

from recbole_hns.kernels import Candidates
from recbole_hns.models.cost import rows_of_a_piece

# Candidates go through a model's predict in pieces of at most this many (context, item) rows, fewer where a
# row costs much. So few as FREE_ROWS cost no more than a step of training.
PREDICT_ROWS, FREE_ROWS = 1 << 18, 1 << 10


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
        was_training = self.model.training
        self.model.eval()
        try:
            return self._in_pieces(candidates.ids)
        finally:
            self.model.train(was_training)

    def _in_pieces(self, ids: torch.Tensor) -> torch.Tensor:
        """Whole pairs where they fit, else parts of a pair's candidates."""
        B, N = ids.shape
        most = PREDICT_ROWS
        if B * N > FREE_ROWS:
            most = rows_of_a_piece(self.model, self._try, PREDICT_ROWS)
        width = max(1, min(N, most))
        height = max(1, most // width)
        bands = (slice(b, b + height) for b in range(0, B, height))
        return torch.cat([self._band(ids, band, width) for band in bands])

    def _band(self, ids: torch.Tensor, pairs: slice, width: int) -> torch.Tensor:
        parts = [slice(n, n + width) for n in range(0, ids.shape[1], width)]
        scores = [self._predict(pairs, ids[pairs, part]) for part in parts]
        return scores[0] if len(scores) == 1 else torch.cat(scores, dim=1)

    def _predict(self, pairs: slice, ids: torch.Tensor) -> torch.Tensor:
        rows = Interaction({k: v[pairs] for k, v in self.batch.interaction.items()})
        rows = rows.repeat_interleave(ids.shape[1])
        rows[self.model.ITEM_ID] = ids.flatten().long()
        scores: torch.Tensor = self.model.predict(rows).view(-1, ids.shape[1])
        return scores

    def _try(self, rows: int) -> torch.Tensor:
        """So many rows of the first pair, with its positive."""
        return self._predict(slice(0, 1), self.positives[:1, None].expand(1, rows))

    def top(self, candidates: Candidates, M: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The M hardest candidates and their scores, both (B, M)."""
        scores, positions = self.score(candidates).topk(M, dim=1)
        return candidates.ids.gather(1, positions), scores
