"""RecBole's other dot-product models: their own loss, with its ranking term replaced.

A model here scores by the dot product of a context's vector with an item's and learns by a sum of
terms, one of which is BPR. Its encoder runs once per step; its vectors choose the negatives and make the
ranking term, and all other terms (contrastive, knowledge, regularising) stay the model's.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any, Callable, ClassVar

import torch
import torch.nn.functional as F
from recbole.data.interaction import Interaction
from recbole.model import general_recommender as general
from recbole.model import knowledge_aware_recommender as knowledge
from recbole.model import sequential_recommender as sequential
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.model.loss import BPRLoss

from recbole_hns.models.scorers import FAST_SCORERS, DotQuery, DotScorer


class RankingTerm(BPRLoss):
    """Stands where a model has its ``BPRLoss`` and gives the sampled loss of the step instead."""

    def __init__(self):
        super().__init__()
        self.sampled: Callable[[], torch.Tensor] | None = None

    def forward(self, r_ci: torch.Tensor, r_cj: torch.Tensor) -> torch.Tensor:
        """The sampled loss once, where a step has set it; BPR otherwise."""
        sampled, self.sampled = self.sampled, None
        return super().forward(r_ci, r_cj) if sampled is None else sampled()


class RememberedForward:
    """A model's ``forward`` that is not run again for arguments that it has just been run for.

    What is remembered is given out once: a second call is meant as one, with a drop-out of its own.
    """

    def __init__(self, model: AbstractRecommender, on_graph: bool = False):
        self.forward, self.listening, self.call = model.forward, False, None
        # torch's sparse products have no backward pass in the narrow types of mixed precision.
        self.precision = contextlib.nullcontext
        if on_graph:
            self.precision = partial(torch.autocast, model.device.type, enabled=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.call is not None and self._is_last_call(args, kwargs):
            return self.forget()
        with self.precision():
            output = self.forward(*args, **kwargs)
        if self.listening:
            self.call, self.listening = (args, kwargs, output), False
        return output

    def remember(self, function: Callable, *args: Any) -> Any:
        """The output of the ``forward`` that ``function(*args)`` calls."""
        self.listening = True
        function(*args)
        return self.call[2]

    def forget(self) -> Any:
        """The remembered output, for the last time."""
        (*_, output), self.call = self.call or (None,), None
        return output

    def _is_last_call(self, args, kwargs):
        known_args, known_kwargs, _ = self.call
        return (
            len(args) == len(known_args)
            and all(a is b for a, b in zip(args, known_args))
            and kwargs == known_kwargs
        )


class ComposedScorer(DotScorer):
    """A model's own ``calculate_loss`` around the sampled ranking term."""

    path = "composed"
    term_name: ClassVar[str] = ""  # of the ranking loss, where the model has more than one BPRLoss
    on_graph: ClassVar[bool] = False  # whether ``forward`` multiplies sparse matrices

    def __init__(self, model: AbstractRecommender, *args):
        super().__init__(model, *args)
        if not isinstance(model.forward, RememberedForward):
            model.forward = RememberedForward(model, self.on_graph)
        self.forward, self.term = model.forward, RankingTerm()
        self.put_ranking_term()

    def put_ranking_term(self) -> None:
        """Put the term where the model has its ``BPRLoss``."""
        names = [name for name, part in self.model.named_children() if isinstance(part, BPRLoss)]
        (name,) = [self.term_name] if self.term_name else names
        setattr(self.model, name, self.term)

    def loss(self, batch, query, negatives, generator):
        """The model's own loss; its terms other than the ranking see one negative, drawn from p_cij."""
        self.term.sampled = partial(self.sampled_loss, query, negatives)
        loss = self.own_loss(batch, negatives, generator)
        self.forward.forget()
        return loss


class TableScorer(ComposedScorer):
    """Graph models whose ``forward()`` gives the vectors of all users and of all items."""

    on_graph = True

    def vectors(self):
        """What ``forward`` gives first; entities behind the items are no items."""
        users, items, *_ = self.forward.remember(self.model.forward)
        return users, items[: self.dataset.item_num]


class SGLScorer(TableScorer):
    """SGL sums its BPR term over the batch, inside a method that also regularises."""

    def vectors(self):
        """The whole graph's, not those of the two contrasted ones."""
        return self.forward.remember(self.model.forward, self.model.train_graph)

    def put_ranking_term(self):
        """``calc_bpr_loss`` with the sum of the sampled losses in it."""
        model, term = self.model, self.term

        def calc_bpr_loss(user_emd, item_emd, users, positives, negatives):
            tables = (model.user_embedding(users), model.item_embedding(positives))
            penalty = model.reg_loss(*tables, model.item_embedding(negatives))
            u, i, j = user_emd[users], item_emd[positives], item_emd[negatives]
            ranking = term((u * i).sum(dim=1), (u * j).sum(dim=1))
            return len(users) * ranking + model.reg_weight * penalty

        model.calc_bpr_loss = calc_bpr_loss


class CKEScorer(ComposedScorer):
    """CKE: an item is its own vector and that of its entity."""

    term_name = "rec_loss"  # kg_loss is another

    def vectors(self):
        """Plain tables."""
        model = self.model
        items = model.item_embedding.weight + model.entity_embedding.weight[: model.n_items]
        return model.user_embedding.weight, items


class MCCLKScorer(ComposedScorer):
    """MCCLK: the vectors of two views side by side."""

    on_graph = True

    def vectors(self):
        """As ``predict`` joins them."""
        semantic, user_light, item_light, user_gcn, item_gcn = self.forward.remember(self.model.forward)
        users = torch.cat((user_gcn, user_light), dim=-1)
        items = torch.cat((item_gcn[: len(semantic)], semantic + item_light), dim=-1)
        return users, items[: self.dataset.item_num]  # other entities follow, and are no candidates


class SequenceScorer(ComposedScorer):
    """Sequential models: the context is the sequence, and ``forward`` makes its vector."""

    def encode(self, batch: Interaction) -> DotQuery:
        """One context per pair. ``predict`` knows what its model's ``forward`` takes."""
        context = self.context(batch, self.forward.remember(self.model.predict, batch))
        rows = torch.arange(len(context), device=context.device)
        items = self.items()[: self.dataset.item_num]
        return DotQuery(context, rows, items, batch[self.model.ITEM_ID], self.kernels)

    def context(self, batch: Interaction, output: torch.Tensor) -> torch.Tensor:
        """The sequences' vectors, (B, d)."""
        return output

    def items(self) -> torch.Tensor:
        """The items' vectors, (n_items, d)."""
        return self.model.item_embedding.weight


class HGNScorer(SequenceScorer):
    """HGN predicts with a table of its own (RecBole's loss takes negatives from the other one)."""

    def items(self):
        """The table of ``predict``, for positives and negatives alike."""
        return self.model.item_embedding_for_prediction.weight


class NPEScorer(SequenceScorer):
    """NPE rectifies the items' vectors."""

    def items(self):
        """max(0, ·)."""
        return F.relu(self.model.item_embedding.weight)


class KSRScorer(SequenceScorer):
    """KSR joins an item's vector with that of its entity."""

    def items(self):
        """Of all items."""
        return self.model._get_item_comb_embedding(
            torch.arange(self.dataset.item_num, device=self.model.device)
        )


class S3RecScorer(SequenceScorer):
    """S3Rec, when it is fine-tuned: ``forward`` gives a vector per place of the sequence."""

    def context(self, batch, output):
        """That of the last place."""
        return self.model.gather_indexes(output, batch[self.model.ITEM_SEQ_LEN] - 1)


class FPMCScorer(ComposedScorer):
    """FPMC: ⟨user, item⟩ + ⟨last item, item⟩ is one product of vectors side by side."""

    def encode(self, batch):
        """One context per pair."""
        model = self.model
        place = batch[model.ITEM_SEQ_LEN][:, None] - 1
        last = batch[model.ITEM_SEQ].gather(1, place)[:, 0]
        context = torch.cat((model.UI_emb(batch[model.USER_ID]), model.LI_emb(last)), dim=1)
        items = torch.cat((model.IU_emb.weight, model.IL_emb.weight), dim=1)
        rows = torch.arange(len(context), device=context.device)
        return DotQuery(context, rows, items, batch[model.ITEM_ID], self.kernels)


class VectorChoiceScorer(DotScorer):
    """Models that score by a dot product and learn by a loss that is no ranking: vectors only choose."""

    path = "own loss"

    def loss(self, batch, query, negatives, generator):
        """The model decides."""
        return self.own_loss(batch, negatives, generator)


class LINEScorer(VectorChoiceScorer):
    """LINE: first-order proximity scores, its own loss contrasts."""

    def vectors(self):
        """Plain tables."""
        return self.model.user_embedding.weight, self.model.item_embedding.weight


class SimpleXScorer(VectorChoiceScorer):
    """SimpleX: cosines of items and of users joined with their histories."""

    def encode(self, batch):
        """One context per pair, without the drop-out that the loss has."""
        model, users = self.model, batch[self.model.USER_ID]
        history = model.item_emb(model.history_item_id[users])
        lengths = model.history_item_len[users]
        joined = model.get_UI_aggregation(model.user_emb(users), history, lengths)
        items = F.normalize(model.item_emb.weight, dim=1)
        rows = torch.arange(len(users), device=users.device)
        context = F.normalize(joined, dim=1)
        return DotQuery(context, rows, items, batch[model.ITEM_ID], self.kernels)


SCORERS: dict[type[DotScorer], tuple[type[AbstractRecommender], ...]] = {
    TableScorer: (
        *(general.NGCF, general.DGCF, general.SpectralCF, general.NCL),
        *(knowledge.KGAT, knowledge.KGIN),
    ),
    SGLScorer: (general.SGL,),
    CKEScorer: (knowledge.CKE,),
    MCCLKScorer: (knowledge.MCCLK,),
    SequenceScorer: (
        *(sequential.GRU4Rec, sequential.NARM, sequential.STAMP, sequential.SASRec, sequential.Caser),
        *(sequential.NextItNet, sequential.SRGNN, sequential.GCSAN, sequential.SINE, sequential.HRM),
        *(sequential.LightSANs, sequential.FOSSIL, sequential.SHAN, sequential.FEARec),
        *(sequential.GRU4RecF, sequential.SASRecF, sequential.FDSA, sequential.GRU4RecKG),
    ),
    HGNScorer: (sequential.HGN,),
    NPEScorer: (sequential.NPE,),
    KSRScorer: (sequential.KSR,),
    S3RecScorer: (sequential.S3Rec,),
    FPMCScorer: (sequential.FPMC,),
    LINEScorer: (general.LINE,),
    SimpleXScorer: (general.SimpleX,),
}

FAST_SCORERS.update({model: scorer for scorer, models in SCORERS.items() for model in models})
