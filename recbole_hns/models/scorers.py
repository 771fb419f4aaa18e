"""How a RecBole model scores (context, items), and how it learns from weighted negatives."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import ClassVar

import torch
from recbole.data.dataset import Dataset
from recbole.data.interaction import Interaction
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.model.general_recommender import BPR, LightGCN

from recbole_hns.kernels import Candidates
from recbole_hns.losses import DEFAULT_LOSS, PairLoss
from recbole_hns.models.propagation import SymmetricPropagation
from recbole_hns.sampling.negatives import Negatives

# Candidates go through a model's predict in pieces of at most this many (context, item) rows.
PREDICT_ROWS = 1 << 18


class PairScores(torch.autograd.Function):
    """r_ci and r_cj of a batch, with gradients gathered by a kernel and no (B, n, d) tensor.

    Scores that the sampler has computed already are passed in and not computed again. With ``sparse``
    the gradients are sparse tensors of the rows that the batch touches, for ``torch.optim.SparseAdam``.
    """

    @staticmethod
    def forward(ctx, context, items, rows, positives, negatives, scores, kernels, sparse):
        ctx.save_for_backward(context, items, rows)
        ctx.positives, ctx.negatives, ctx.kernels, ctx.sparse = positives, negatives, kernels, sparse
        if scores is None:
            scores = kernels.score(context, rows, items, negatives)
        return kernels.score(context, rows, items, positives)[:, 0], scores

    @staticmethod
    def backward(ctx, grad_ci, grad_cj):
        context, items, rows = ctx.saved_tensors
        parts = [(ctx.positives, grad_ci[:, None]), (ctx.negatives, grad_cj)]
        if ctx.sparse:
            by_row = ctx.kernels.score_backward_rows(context, rows, items, parts)
            grads = [_sparse(table, *part) for table, part in zip((context, items), by_row)]
        else:
            grads = ctx.kernels.score_backward(context, rows, items, parts)
        return (*grads, None, None, None, None, None, None)


class SquaredNorms(torch.autograd.Function):
    """Σ_r mass_r ‖table_r‖², the squared norms of rows as often as they occur.

    Its gradient, 2 mass_r table_r, is one pass over the table, or over the rows that occur where the
    table takes sparse gradients.
    """

    @staticmethod
    def forward(ctx, table, mass, sparse):
        ctx.rows = mass.nonzero()[:, 0] if sparse else None
        values = table[ctx.rows] if sparse else table
        mass = mass[ctx.rows] if sparse else mass
        ctx.save_for_backward(table, values, mass)
        return torch.dot(mass, torch.linalg.vector_norm(values, dim=1).square_())

    @staticmethod
    def backward(ctx, grad):
        table, values, mass = ctx.saved_tensors
        gradient = values * (2 * grad * mass)[:, None]
        return gradient if ctx.rows is None else _sparse(table, ctx.rows, gradient), None, None


def _sparse(table: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A gradient of the table that is zero but for some rows."""
    return torch.sparse_coo_tensor(rows[None], values, table.shape, check_invariants=False)


class DotQuery:
    """A batch encoded by a dot-product model: r_cj = ⟨context[rows[b]], items[j]⟩."""

    def __init__(
        self,
        context: torch.Tensor,  # (n_contexts, d)
        rows: torch.Tensor,  # (B,) the context of each pair
        items: torch.Tensor,  # (n_items, d)
        positives: torch.Tensor,  # (B,) item ids
        kernels: ModuleType,
        sparse: bool = False,  # whether both tables take sparse gradients
    ):
        # Under mixed precision an encoder's output may be narrow; kernels and loss are of 32 bits.
        self.context, self.rows, self.items = context.float(), rows, items.float()
        self.positives = Candidates(positives[:, None].int())
        self.kernels, self.sparse = kernels, sparse

    def _tables(self):
        return self.context, self.rows, self.items

    def at(self, pairs: torch.Tensor) -> DotQuery:
        """The query of some of the pairs."""
        positives = self.positives.ids[pairs, 0]
        return DotQuery(self.context, self.rows[pairs], self.items, positives, self.kernels, self.sparse)

    def positive_scores(self) -> torch.Tensor:
        """r_ci, (B,), without gradient."""
        return self.kernels.score(*self._tables(), self.positives)[:, 0]

    def score(self, candidates: Candidates) -> torch.Tensor:
        """r_cj, (B, N), without gradient."""
        return self.kernels.score(*self._tables(), candidates)

    def top(self, candidates: Candidates, M: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The M hardest candidates and their scores, both (B, M), without gradient."""
        return self.kernels.top(*self._tables(), candidates, M)

    def pair_scores(self, negatives: Negatives) -> tuple[torch.Tensor, torch.Tensor]:
        """r_ci (B,) and r_cj (B, n), with gradient."""
        return PairScores.apply(
            self.context,
            self.items,
            self.rows,
            self.positives,
            negatives.candidates,
            negatives.scores,
            self.kernels,
            self.sparse,
        )


class PredictQuery:
    """A batch scored by any model, through the ``predict`` that RecBole asks of it."""

    def __init__(self, model: AbstractRecommender, batch: Interaction):
        self.model, self.positives = model, batch[model.ITEM_ID]
        # RecBole puts triples of a knowledge graph beside the pairs, as many as there happen to be.
        columns = {k: v for k, v in batch.interaction.items() if len(v) == len(self.positives)}
        self.batch = Interaction(columns)

    def at(self, pairs: torch.Tensor) -> PredictQuery:
        """The query of some of the pairs."""
        return PredictQuery(self.model, self.batch[pairs])

    def positive_scores(self) -> torch.Tensor:
        """r_ci, (B,)."""
        return self.score(Candidates(self.positives[:, None]))[:, 0]

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
        return self.model.predict(rows).view(-1, ids.shape[1])

    def top(self, candidates: Candidates, M: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The M hardest candidates and their scores, both (B, M)."""
        scores, positions = self.score(candidates).topk(M, dim=1)
        return candidates.ids.gather(1, positions), scores


class Scorer:
    """How one model encodes a batch and learns from it."""

    path: ClassVar[str]  # what `recbole-hns models` calls it
    # Whether a step's gradient is zero but for the rows of the embedding tables that its pairs name.
    sparse_gradient: ClassVar[bool] = False

    def __init__(
        self,
        model: AbstractRecommender,
        dataset: Dataset,
        kernels: ModuleType,
        pair_loss: PairLoss = DEFAULT_LOSS,
        reg_weight: float = 0.0,  # for a model that has none of its own
    ):
        self.model, self.dataset, self.kernels = model, dataset, kernels
        self.pair_loss, self.reg_weight = pair_loss, reg_weight

    def encode(self, batch: Interaction):
        """The batch's query: done once per step, used for choosing negatives and for the loss."""
        raise NotImplementedError

    def loss(self, batch: Interaction, query, negatives: Negatives, generator: torch.Generator):
        """The training loss of the batch."""
        raise NotImplementedError

    def own_loss(self, batch: Interaction, negatives: Negatives, generator: torch.Generator):
        """The model's own loss, which takes one negative per pair: one drawn from p_cij."""
        chosen = Interaction({self.dataset.iid_field: negatives.draw_one(generator).cpu()})
        chosen = self.dataset.join(chosen)  # its features come along
        chosen.add_prefix(self.dataset.config["NEG_PREFIX"])
        batch.update(chosen.to(self.model.device))
        return self.model.calculate_loss(batch)


class OwnLossScorer(Scorer):
    """Any pairwise model: scored by ``predict``, trained by its own ``calculate_loss``."""

    path = "own loss"

    def encode(self, batch: Interaction) -> PredictQuery:
        """Nothing to compute yet: ``predict`` encodes when it scores."""
        return PredictQuery(self.model, batch)

    def loss(self, batch, query, negatives, generator):
        """The model decides."""
        return self.own_loss(batch, negatives, generator)


class DotScorer(Scorer):
    """A model that scores by a dot product and learns by a pair loss: the fast path."""

    path = "fused"

    def encode(self, batch: Interaction) -> DotQuery:
        """All contexts and items as vectors."""
        context, items = self.vectors()
        users, positives = batch[self.model.USER_ID], batch[self.model.ITEM_ID]
        return DotQuery(context, users, items, positives, self.kernels, self.sparse)

    @property
    def sparse(self) -> bool:
        """Whether the model's tables are to be given sparse gradients."""
        return self.sparse_gradient and self.model.item_embedding.sparse

    def vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The vectors of all users and of all items."""
        raise NotImplementedError

    def sampled_loss(self, query: DotQuery, negatives: Negatives) -> torch.Tensor:
        """The pair loss over the weighted negatives, in 32 bits also under mixed precision."""
        with torch.autocast(query.items.device.type, enabled=False):
            return negatives.loss(query, self.pair_loss)

    def loss(self, batch, query, negatives, generator):
        """The pair loss and the model's regulariser."""
        loss = self.sampled_loss(query, negatives)
        regulariser = self.regulariser(batch, negatives)
        return loss if regulariser is None else loss + regulariser

    def regulariser(self, batch: Interaction, negatives: Negatives) -> torch.Tensor | None:
        """What the model adds to its pair loss; None for nothing."""
        return None

    def squared_norms(
        self, batch: Interaction, negatives: Negatives, apart: bool = False
    ) -> list[torch.Tensor]:
        """Σ ‖·‖² over the batch's users and items, a negative counting p_cij times.

        Positives and negatives are two sums where they are to be ``apart``. Summed per row of the
        embedding tables, so that no (B, n, d) copy is gathered.
        """
        users, items = self.model.user_embedding.weight, self.model.item_embedding.weight
        once = torch.ones(len(batch), device=users.device)
        of_users = _mass(users, batch[self.model.USER_ID], once)
        of_items = [_mass(items, batch[self.model.ITEM_ID], once), negatives.mass(len(items))]
        of_items = of_items if apart else [sum(of_items)]
        masses = [(users, of_users), *((items, mass) for mass in of_items)]
        return [SquaredNorms.apply(table, mass, self.sparse) for table, mass in masses]


class MFScorer(DotScorer):
    """Matrix factorisation, RecBole's ``BPR``, with the ``reg_weight`` that RecBole gives to LightGCN.

    A row is regularised as often as it occurs, where ``weight_decay`` pulls at all rows alike.
    """

    sparse_gradient = True

    def vectors(self):
        """The embedding tables themselves."""
        return self.model.user_embedding.weight, self.model.item_embedding.weight

    def regulariser(self, batch, negatives):
        """``reg_weight``/2 of a pair's squared norms."""
        if not self.reg_weight:
            return None
        return self.reg_weight * sum(self.squared_norms(batch, negatives)) / len(batch) / 2


class LightGCNScorer(DotScorer):
    """RecBole's ``LightGCN``, propagated once per step over a CSR matrix."""

    def __init__(self, model: LightGCN, *args):
        super().__init__(model, *args)
        with warnings.catch_warnings():  # "Sparse CSR tensor support is in beta state"
            warnings.simplefilter("ignore", UserWarning)
            self.A = model.norm_adj_matrix.coalesce().to_sparse_csr()

    def vectors(self):
        """The mean over layers, as ``LightGCN.forward``."""
        model = self.model
        # Evaluation keeps the propagated embeddings; training makes them stale.
        model.restore_user_e = model.restore_item_e = None
        with torch.autocast(self.A.device.type, enabled=False):  # no sparse product has fewer bits
            E = SymmetricPropagation.apply(model.get_ego_embeddings(), self.A, model.n_layers)
        return torch.split(E, [model.n_users, model.n_items])

    def regulariser(self, batch, negatives):
        """``EmbLoss`` of the layer-0 embeddings, a negative counting p_cij times."""
        model, B = self.model, len(batch)
        squares = self.squared_norms(batch, negatives, apart=not model.require_pow)
        if model.require_pow:
            return model.reg_weight * sum(squares) / B / 2
        return model.reg_weight * sum(square.sqrt() for square in squares) / B


def _mass(table: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The weight that falls on each row of a table."""
    return torch.zeros(len(table), device=table.device).index_add_(0, ids.int(), weights)


FAST_SCORERS: dict[type, type[DotScorer]] = {BPR: MFScorer, LightGCN: LightGCNScorer}


def make_scorer(
    model: AbstractRecommender,
    dataset: Dataset,
    kernels: ModuleType,
    pair_loss: PairLoss = DEFAULT_LOSS,
    reg_weight: float = 0.0,
) -> Scorer:
    """The fast scorer where the model is exactly one we know, its own loss otherwise."""
    scorer = FAST_SCORERS.get(type(model), OwnLossScorer)
    return scorer(model, dataset, kernels, pair_loss, reg_weight)
