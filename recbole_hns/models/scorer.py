"""Scorers: how a model scores (context, items), and how it learns from weighted negatives."""

from __future__ import annotations

from typing import ClassVar

import torch
from recbole.data.dataset import Dataset
from recbole.data.interaction import Interaction
from recbole.model.abstract_recommender import AbstractRecommender

from recbole_hns.kernels import Backend
from recbole_hns.losses import BPR, Loss
from recbole_hns.models.predict import PredictQuery
from recbole_hns.models.regulariser import mass_of, squared_norms
from recbole_hns.sampling.negatives import Chosen
from recbole_hns.sampling.query import DotQuery, Query, dot_query
from recbole_hns.settings.parts import small

BatchLoss = torch.Tensor | tuple[torch.Tensor, ...]  # a model's loss may have parts


class Scorer:
    """A model that scores by a dot product and learns by a pair loss: the fast path.

    A subclass names its ``models``, classes or names of classes, and writes :meth:`vectors`; one whose
    contexts are not users writes :meth:`encode`. It is for exactly these classes: a subclass of a model may
    learn by another loss.
    """

    kind: ClassVar[str] = "scorer"
    path: ClassVar[str] = "fused"  # what `recbole-hns models` calls it
    models: ClassVar[tuple[str | type, ...]] = ()
    scores_by: ClassVar[str] = "a dot product"
    learns_by: ClassVar[str] = "pair_loss"  # "own loss" where the model decides
    # Whether a step's gradient is zero but for the rows of the embedding tables that its pairs name.
    sparse_gradient: ClassVar[bool] = False
    takes_reg_weight: ClassVar[bool] = False  # whether reg_weight of ours is its regulariser

    def __init__(
        self,
        model: AbstractRecommender,
        dataset: Dataset,
        backend: Backend,
        loss: Loss | None = None,
        reg_weight: float | None = 0.0,  # for a model that has none of its own
    ):
        self.model, self.dataset, self.backend = model, dataset, backend
        self.pair_loss, self.reg_weight = loss or BPR(), reg_weight

    @classmethod
    def part_name(cls) -> str:
        """The class's name in small letters."""
        return small(cls.__name__)

    # ------------------------------------------------------------- what a subclass writes

    def vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The vectors of all users, (n_users, d), and of all items, (n_items, d)."""
        raise NotImplementedError

    def encode(self, batch: Interaction) -> Query:
        """The batch's query: done once a step, for choosing negatives and for the loss."""
        context, items = self.vectors()
        users, positives = batch[self.model.USER_ID], batch[self.model.ITEM_ID]
        return DotQuery(context, items, positives, users, self.backend, self.sparse)

    def regulariser(self, batch: Interaction, negatives: Chosen) -> torch.Tensor | None:
        """What the model adds to its pair loss; None for nothing."""
        return None

    # ------------------------------------------------------------- a step

    def loss(
        self, batch: Interaction, query: Query, negatives: Chosen, generator: torch.Generator
    ) -> BatchLoss:
        """The training loss of the batch: the pair loss and the model's regulariser."""
        loss = self.sampled_loss(dot_query(query), negatives)
        regulariser = self.regulariser(batch, negatives)
        return loss if regulariser is None else loss + regulariser

    def sampled_loss(self, query: DotQuery, negatives: Chosen) -> torch.Tensor:
        """The pair loss over the weighted negatives, in 32 bits also under mixed precision."""
        with torch.autocast(query.vectors.items.device.type, enabled=False):
            return negatives.loss(query, self.pair_loss)

    def own_loss(self, batch: Interaction, negatives: Chosen, generator: torch.Generator) -> BatchLoss:
        """The model's own loss, which takes one negative per pair: one drawn from p_cij."""
        chosen = Interaction({self.dataset.iid_field: negatives.draw_one(generator).cpu()})
        chosen = self.dataset.join(chosen)  # its features come along
        chosen.add_prefix(self.dataset.config["NEG_PREFIX"])
        batch.update(chosen.to(self.model.device))
        loss: BatchLoss = self.model.calculate_loss(batch)
        return loss

    @property
    def sparse(self) -> bool:
        """Whether the model's tables are to be given sparse gradients."""
        return self.sparse_gradient and bool(self.model.item_embedding.sparse)

    def squared_norms(
        self, batch: Interaction, negatives: Chosen, apart: bool = False
    ) -> list[torch.Tensor]:
        """Σ ‖·‖² over the batch's users and items, a negative counting p_cij times.

        Positives and negatives are two sums where they are to be ``apart``. Summed per row of the
        embedding tables, so that no (B, n, d) copy is gathered.
        """
        users, items = self.model.user_embedding.weight, self.model.item_embedding.weight
        once = torch.ones(len(batch), device=users.device)
        of_users = mass_of(users, batch[self.model.USER_ID], once)
        of_items = [mass_of(items, batch[self.model.ITEM_ID], once), negatives.mass(len(items))]
        of_items = of_items if apart else [of_items[0] + of_items[1]]
        masses = [(users, of_users), *((items, mass) for mass in of_items)]
        return [squared_norms(table, mass, self.sparse) for table, mass in masses]


class OwnLossScorer(Scorer):
    """Any pairwise model: scored by ``predict``, trained by its own ``calculate_loss``."""

    path: ClassVar[str] = "own loss"
    scores_by: ClassVar[str] = "predict"
    learns_by: ClassVar[str] = "own loss"

    def encode(self, batch: Interaction) -> PredictQuery:
        """Nothing to compute yet: ``predict`` encodes when it scores."""
        return PredictQuery(self.model, batch)

    def loss(
        self, batch: Interaction, query: Query, negatives: Chosen, generator: torch.Generator
    ) -> BatchLoss:
        """The model decides."""
        return self.own_loss(batch, negatives, generator)
