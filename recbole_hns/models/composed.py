"""RecBole's other dot-product models: their own loss, with its ranking term replaced.

A model here scores by the dot product of a context's vector with an item's and learns by a sum of
terms, one of which is BPR. Its encoder runs once per step; its vectors choose the negatives and make the
ranking term, and all other terms (contrastive, knowledge, regularising) stay the model's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from recbole.data.interaction import Interaction
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.model.loss import BPRLoss

from recbole_hns.models.scorer import BatchLoss, Scorer
from recbole_hns.sampling.negatives import Chosen
from recbole_hns.sampling.query import DotQuery, Query, dot_query


class RankingTerm(BPRLoss):
    """Stands where a model has its ``BPRLoss`` and gives the sampled loss of the step instead."""

    def __init__(self) -> None:
        super().__init__()
        self.sampled: Callable[[], torch.Tensor] | None = None

    def forward(self, r_ci: torch.Tensor, r_cj: torch.Tensor) -> torch.Tensor:
        """The sampled loss once, where a step has set it; BPR otherwise."""
        sampled, self.sampled = self.sampled, None
        return super().forward(r_ci, r_cj) if sampled is None else sampled()


class Call(NamedTuple):
    """What a ``forward`` was called with, and what it gave."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any


class RememberedForward:
    """A model's ``forward`` that is not run again for arguments that it has just been run for.

    What is remembered is given out once: a second call is meant as one, with a drop-out of its own.
    """

    def __init__(self, model: AbstractRecommender, on_graph: bool = False):
        self.forward, self.listening = model.forward, False
        self.call: Call | None = None
        # torch's sparse products have no backward pass in the narrow types of mixed precision.
        self.precision: Callable[[], AbstractContextManager[Any]] = nullcontext
        if on_graph:
            self.precision = partial(torch.autocast, model.device.type, enabled=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.call is not None and _is_same(self.call, args, kwargs):
            return self.forget()
        with self.precision():
            output = self.forward(*args, **kwargs)
        if self.listening:
            self.call, self.listening = Call(args, kwargs, output), False
        return output

    def remember(self, function: Callable[..., Any], *args: Any) -> Any:
        """The output of the ``forward`` that ``function(*args)`` calls."""
        self.listening = True
        function(*args)
        if self.call is None:
            raise RuntimeError("nothing to remember: the function did not call the model's forward.")
        return self.call.output

    def forget(self) -> Any:
        """The remembered output, for the last time."""
        output = None if self.call is None else self.call.output
        self.call = None
        return output


def _is_same(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    same = len(args) == len(call.args) and all(a is b for a, b in zip(args, call.args))
    return same and kwargs == call.kwargs


class ComposedScorer(Scorer):
    """A model's own ``calculate_loss`` around the sampled ranking term."""

    path: ClassVar[str] = "composed"
    term_name: ClassVar[str] = ""  # of the ranking loss, where the model has more than one BPRLoss
    on_graph: ClassVar[bool] = False  # whether ``forward`` multiplies sparse matrices

    def __init__(self, model: AbstractRecommender, *args: Any, **options: Any):
        super().__init__(model, *args, **options)
        if not isinstance(model.forward, RememberedForward):
            model.forward = RememberedForward(model, self.on_graph)
        self.forward, self.term = model.forward, RankingTerm()
        self.put_ranking_term()

    def put_ranking_term(self) -> None:
        """Put the term where the model has its ``BPRLoss``."""
        names = [name for name, part in self.model.named_children() if isinstance(part, BPRLoss)]
        (name,) = [self.term_name] if self.term_name else names
        setattr(self.model, name, self.term)

    def loss(
        self, batch: Interaction, query: Query, negatives: Chosen, generator: torch.Generator
    ) -> BatchLoss:
        """The model's own loss; its terms other than the ranking see one negative, drawn from p_cij."""
        self.term.sampled = partial(self.sampled_loss, dot_query(query), negatives)
        loss = self.own_loss(batch, negatives, generator)
        self.forward.forget()
        return loss


class TableScorer(ComposedScorer):
    """Graph models whose ``forward()`` gives the vectors of all users and of all items."""

    models: ClassVar[tuple[str | type, ...]] = ("NGCF", "DGCF", "SpectralCF", "NCL", "KGAT", "KGIN")

    on_graph: ClassVar[bool] = True

    def vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """What ``forward`` gives first; entities behind the items are no items."""
        users, items, *_ = self.forward.remember(self.model.forward)
        return users, items[: self.dataset.item_num]


class SGLScorer(TableScorer):
    """SGL sums its BPR term over the batch, inside a method that also regularises."""

    models: ClassVar[tuple[str | type, ...]] = ("SGL",)

    def vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The whole graph's, not those of the two contrasted ones."""
        users, items = self.forward.remember(self.model.forward, self.model.train_graph)
        return users, items

    def put_ranking_term(self) -> None:
        """``calc_bpr_loss`` with the sum of the sampled losses in it."""
        model, term = self.model, self.term

        def calc_bpr_loss(
            user_emd: torch.Tensor,
            item_emd: torch.Tensor,
            users: torch.Tensor,
            positives: torch.Tensor,
            negatives: torch.Tensor,
        ) -> Any:
            tables = (model.user_embedding(users), model.item_embedding(positives))
            penalty = model.reg_loss(*tables, model.item_embedding(negatives))
            u, i, j = user_emd[users], item_emd[positives], item_emd[negatives]
            ranking = term((u * i).sum(dim=1), (u * j).sum(dim=1))
            return len(users) * ranking + model.reg_weight * penalty

        model.calc_bpr_loss = calc_bpr_loss


class CKEScorer(ComposedScorer):
    """CKE: an item is its own vector and that of its entity."""

    models: ClassVar[tuple[str | type, ...]] = ("CKE",)

    term_name: ClassVar[str] = "rec_loss"  # kg_loss is another

    def vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Plain tables."""
        model = self.model
        items = model.item_embedding.weight + model.entity_embedding.weight[: model.n_items]
        return model.user_embedding.weight, items


class MCCLKScorer(ComposedScorer):
    """MCCLK: the vectors of two views side by side."""

    models: ClassVar[tuple[str | type, ...]] = ("MCCLK",)

    on_graph: ClassVar[bool] = True

    def vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """As ``predict`` joins them."""
        semantic, user_light, item_light, user_gcn, item_gcn = self.forward.remember(self.model.forward)
        users = torch.cat((user_gcn, user_light), dim=-1)
        items = torch.cat((item_gcn[: len(semantic)], semantic + item_light), dim=-1)
        return users, items[: self.dataset.item_num]  # other entities follow, and are no candidates


class SequenceScorer(ComposedScorer):
    """Sequential models: the context is the sequence, and ``forward`` makes its vector."""

    models: ClassVar[tuple[str | type, ...]] = (
        *("GRU4Rec", "NARM", "STAMP", "SASRec", "Caser", "NextItNet", "SRGNN", "GCSAN", "SINE"),
        *("HRM", "LightSANs", "FOSSIL", "SHAN", "FEARec", "GRU4RecF", "SASRecF", "FDSA", "GRU4RecKG"),
    )

    def encode(self, batch: Interaction) -> DotQuery:
        """One context per pair. ``predict`` knows what its model's ``forward`` takes."""
        context = self.context(batch, self.forward.remember(self.model.predict, batch))
        items = self.items()[: self.dataset.item_num]
        return DotQuery(context, items, batch[self.model.ITEM_ID], backend=self.backend)

    def context(self, batch: Interaction, output: torch.Tensor) -> torch.Tensor:
        """The sequences' vectors, (B, d)."""
        return output

    def items(self) -> torch.Tensor:
        """The items' vectors, (n_items, d)."""
        table: torch.Tensor = self.model.item_embedding.weight
        return table


class HGNScorer(SequenceScorer):
    """HGN predicts with a table of its own (RecBole's loss takes negatives from the other one)."""

    models: ClassVar[tuple[str | type, ...]] = ("HGN",)

    def items(self) -> torch.Tensor:
        """The table of ``predict``, for positives and negatives alike."""
        table: torch.Tensor = self.model.item_embedding_for_prediction.weight
        return table


class NPEScorer(SequenceScorer):
    """NPE rectifies the items' vectors."""

    models: ClassVar[tuple[str | type, ...]] = ("NPE",)

    def items(self) -> torch.Tensor:
        """max(0, ·)."""
        return F.relu(self.model.item_embedding.weight)


class KSRScorer(SequenceScorer):
    """KSR joins an item's vector with that of its entity."""

    models: ClassVar[tuple[str | type, ...]] = ("KSR",)

    def items(self) -> torch.Tensor:
        """Of all items."""
        everything = torch.arange(self.dataset.item_num, device=self.model.device)
        vectors: torch.Tensor = self.model._get_item_comb_embedding(everything)
        return vectors


class S3RecScorer(SequenceScorer):
    """S3Rec, when it is fine-tuned: ``forward`` gives a vector per place of the sequence."""

    models: ClassVar[tuple[str | type, ...]] = ("S3Rec",)

    def context(self, batch: Interaction, output: torch.Tensor) -> torch.Tensor:
        """That of the last place."""
        last: torch.Tensor = self.model.gather_indexes(output, batch[self.model.ITEM_SEQ_LEN] - 1)
        return last


class FPMCScorer(ComposedScorer):
    """FPMC: ⟨user, item⟩ + ⟨last item, item⟩ is one product of vectors side by side."""

    models: ClassVar[tuple[str | type, ...]] = ("FPMC",)

    def encode(self, batch: Interaction) -> DotQuery:
        """One context per pair."""
        model = self.model
        place = batch[model.ITEM_SEQ_LEN][:, None] - 1
        last = batch[model.ITEM_SEQ].gather(1, place)[:, 0]
        context = torch.cat((model.UI_emb(batch[model.USER_ID]), model.LI_emb(last)), dim=1)
        items = torch.cat((model.IU_emb.weight, model.IL_emb.weight), dim=1)
        return DotQuery(context, items, batch[model.ITEM_ID], backend=self.backend)


class VectorChoiceScorer(Scorer):
    """Models that score by a dot product and learn by a loss that is no ranking: vectors only choose."""

    path: ClassVar[str] = "own loss"
    learns_by: ClassVar[str] = "own loss"

    def loss(
        self, batch: Interaction, query: Query, negatives: Chosen, generator: torch.Generator
    ) -> BatchLoss:
        """The model decides."""
        return self.own_loss(batch, negatives, generator)


class LINEScorer(VectorChoiceScorer):
    """LINE: first-order proximity scores, its own loss contrasts."""

    models: ClassVar[tuple[str | type, ...]] = ("LINE",)

    def vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Plain tables."""
        return self.model.user_embedding.weight, self.model.item_embedding.weight


class SimpleXScorer(VectorChoiceScorer):
    """SimpleX: cosines of items and of users joined with their histories."""

    models: ClassVar[tuple[str | type, ...]] = ("SimpleX",)

    def encode(self, batch: Interaction) -> DotQuery:
        """One context per pair, without the drop-out that the loss has."""
        model, users = self.model, batch[self.model.USER_ID]
        history = model.item_emb(model.history_item_id[users])
        lengths = model.history_item_len[users]
        joined = model.get_UI_aggregation(model.user_emb(users), history, lengths)
        items = F.normalize(model.item_emb.weight, dim=1)
        context = F.normalize(joined, dim=1)
        return DotQuery(context, items, batch[model.ITEM_ID], backend=self.backend)
