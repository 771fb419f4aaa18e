"""The models whose whole loss is a pair loss and a regulariser."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import torch
from recbole.data.interaction import Interaction

from recbole_hns.models.propagation import propagate
from recbole_hns.models.scorer import Scorer
from recbole_hns.sampling.negatives import Chosen


class MFScorer(Scorer):
    """Matrix factorisation, RecBole's ``BPR``, with the ``reg_weight`` that RecBole gives to LightGCN.

    A row is regularised as often as it occurs, where ``weight_decay`` pulls at all rows alike.
    """

    models: ClassVar[tuple[str | type, ...]] = ("BPR",)
    sparse_gradient: ClassVar[bool] = True
    takes_reg_weight: ClassVar[bool] = True

    def vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The embedding tables themselves."""
        return self.model.user_embedding.weight, self.model.item_embedding.weight

    def regulariser(self, batch: Interaction, negatives: Chosen) -> torch.Tensor | None:
        """``reg_weight``/2 of a pair's squared norms."""
        if not self.reg_weight:
            return None
        users, items = self.squared_norms(batch, negatives)
        return self.reg_weight * (users + items) / len(batch) / 2


class LightGCNScorer(Scorer):
    """RecBole's ``LightGCN``, propagated once per step over a CSR matrix."""

    models: ClassVar[tuple[str | type, ...]] = ("LightGCN",)
    takes_reg_weight: ClassVar[bool] = True

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        with warnings.catch_warnings():  # "Sparse CSR tensor support is in beta state"
            warnings.simplefilter("ignore", UserWarning)
            self.A = self.model.norm_adj_matrix.coalesce().to_sparse_csr()

    def vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean over layers, as ``LightGCN.forward``."""
        model = self.model
        # Evaluation keeps the propagated embeddings; training makes them stale.
        model.restore_user_e = model.restore_item_e = None
        with torch.autocast(self.A.device.type, enabled=False):  # no sparse product has fewer bits
            E = propagate(model.get_ego_embeddings(), self.A, model.n_layers)
        users, items = torch.split(E, [model.n_users, model.n_items])
        return users, items

    def regulariser(self, batch: Interaction, negatives: Chosen) -> torch.Tensor:
        """``EmbLoss`` of the layer-0 embeddings, a negative counting p_cij times."""
        model, B = self.model, len(batch)
        squares = self.squared_norms(batch, negatives, apart=not model.require_pow)
        weight = float(model.reg_weight)
        if model.require_pow:
            return weight * (squares[0] + squares[1]) / B / 2
        return weight * sum((square.sqrt() for square in squares), torch.zeros_like(squares[0])) / B
