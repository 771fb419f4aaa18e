"""Does a scorer keep its contract?"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from recbole_hns.kernels import Candidates, get_kernels
from recbole_hns.losses import BPR, Hinge, Loss
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.sampling.query import DotQuery
from recbole_hns.testing.say import failing_as, require, require_close, require_finite, require_shape
from recbole_hns.testing.worlds import BACKENDS

if TYPE_CHECKING:  # loaded by check_scorer alone: all else here does without RecBole
    from recbole.data.interaction import Interaction

    from recbole_hns.models.scorer import Scorer

B, N = 40, 6
DATA = "made"


def check_scorer(
    scorer: type[Scorer], model: str | type | None = None, *, same_loss: bool = True, **settings: Any
) -> None:
    """The scores and gradients are those of the model's ``predict``; with one negative, the loss is its own.

    Args:
        scorer: a subclass of Scorer.
        model: one of its ``models``, a class or RecBole's name; the first by default.
        same_loss: whether with one negative the loss is to be the model's ``calculate_loss``.
        settings: of the model; with ``dataset`` and ``data_path``, on data of your own.

    Raises:
        AssertionError: with what is broken, in a sentence.
    """
    _check_class(scorer, model)
    with tempfile.TemporaryDirectory() as folder:
        case = _made_case(scorer, model or scorer.models[0], Path(folder), settings)
    for backend in BACKENDS:
        _check_scores(case, backend)
        for loss in (BPR(), Hinge()) if scorer.learns_by == "pair_loss" else ():
            _check_gradient(case, backend, loss)
    _check_step(case)
    if same_loss:
        _check_own_loss(case)
    if scorer.sparse_gradient:
        _check_sparse(case)


def _check_class(scorer: type[Scorer], model: str | type | None) -> None:
    """What is told without trying it."""
    from recbole_hns.models.scorer import Scorer

    is_scorer = isinstance(scorer, type) and issubclass(scorer, Scorer)
    require(is_scorer, f"{scorer!r} is no subclass of Scorer: derive it from Scorer.")
    require((scorer.__doc__ or "").strip(), f"scorer {scorer.__name__} has no docstring.")
    require(model or scorer.models, f"scorer {scorer.__name__} names no models: models = (MyModel,).")


@dataclass
class Case:
    """A scorer's class, with a model, data and a batch to try it on."""

    scorer: type[Scorer]
    model: Any
    dataset: Any
    rows: Interaction
    what: str

    def make(self, backend: str = "numba", loss: Loss | None = None) -> Scorer:
        """The scorer of a model with the same parameters, so that gradients do not mix."""
        with failing_as(self.what):
            kernels = get_kernels(backend, torch.device("cpu"))
            return self.scorer(copy.deepcopy(self.model), self.dataset, kernels, loss, 0.0)

    def batch(self) -> Interaction:
        """The pairs; a step may write into them."""
        return copy.deepcopy(self.rows)

    def negatives(self, n: int = N, only: int | None = None) -> Negatives:
        """n weighted items for each pair; all weight on one column where it is given."""
        generator = torch.Generator().manual_seed(8)
        ids = torch.randint(1, self.dataset.item_num, (len(self.rows), n), generator=generator).int()
        weights = torch.rand(len(self.rows), n, generator=generator).softmax(dim=1)
        if only is not None:
            weights = torch.zeros_like(weights).index_fill_(1, torch.tensor([only]), 1.0)
        return Negatives(Candidates(ids), weights)

    def predicted(self, ids: torch.Tensor, model: Any = None) -> torch.Tensor:
        """The model's own scores of the pairs' contexts with these items, with gradient, (B, n)."""
        model = model or copy.deepcopy(self.model)
        rows = self.batch().repeat_interleave(ids.shape[1])
        rows[model.ITEM_ID] = ids.flatten().long()
        scores: torch.Tensor = model.predict(rows).view(ids.shape)
        return scores


def _made_case(
    scorer: type[Scorer], model: str | type, folder: Path, settings: Mapping[str, Any]
) -> Case:
    """The model as RecBole builds it, on made data unless the settings name others."""
    from recbole.data import create_dataset
    from recbole.data.transform import construct_transform
    from recbole.utils import init_seed

    from recbole_hns.runs.config import HNSConfig

    write_interactions(folder)
    quiet = {"state": "ERROR", "show_progress": False, "use_gpu": False}
    given = {"data_path": str(folder), **quiet, **settings}
    config = HNSConfig(model, given.pop("dataset", DATA), config_dict=given)
    init_seed(7, True)
    train, *_ = create_dataset(config).build()
    transform = construct_transform(config)  # writes what the model reads
    built = config.model_class(config, train)
    built.eval()  # so that drop-out does not make two passes differ
    with torch.no_grad():
        for parameter in built.parameters():
            # Not the zeros that biases begin with; small, for RecBole's BPRLoss ends at a loss of 23.
            parameter.mul_(0.5).add_(0.02 * torch.randn_like(parameter))
    rows = train[torch.randperm(len(train), generator=torch.Generator().manual_seed(1))[:B]]
    rows = transform(train, rows)
    return Case(scorer, built, train, rows, f"scorer {scorer.__name__} of {type(built).__name__}")


def write_interactions(folder: Path, n_users: int = 20, n_items: int = 30, each: int = 8) -> None:
    """A data set of users, items and times, as RecBole's atomic file."""
    rng = np.random.default_rng(0)
    lines = ["user_id:token\titem_id:token\ttimestamp:float"]
    for user in range(n_users):
        for time, item in enumerate(rng.choice(n_items, each, replace=False)):
            lines.append(f"u{user}\ti{item}\t{time}")
    (folder / DATA).mkdir()
    (folder / DATA / f"{DATA}.inter").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _encoded(case: Case, scorer: Scorer, batch: Interaction) -> Any:
    with failing_as(f"{case.what}: encode"):
        return scorer.encode(batch)


def _check_scores(case: Case, backend: str) -> None:
    """Positives, candidates and the hardest of them are scored as the model predicts."""
    scorer, batch, ids = case.make(backend), case.batch(), case.negatives().ids
    what = f"{case.what} (hns_backend={backend})"
    with torch.no_grad():
        query = _encoded(case, scorer, batch)
        if isinstance(query, DotQuery):
            rows, there = len(query.vectors.items), case.dataset.item_num
            require(rows == there, f"{what}: vectors of {rows} items are given, and there are {there}.")
        with failing_as(f"{what}: score"):
            r_ci, r_cj, top = query.r_ci, query.score(Candidates(ids)), query.top(Candidates(ids), 3)
        expected = case.predicted(ids)
        positives = case.predicted(batch[case.model.ITEM_ID][:, None])[:, 0]
    require_shape(r_cj, tuple(ids.shape), f"{what}: the candidates' scores")
    require_close(r_ci, positives, f"{what}: a positive's score, against predict")
    require_close(r_cj, expected, f"{what}: a candidate's score, against predict")
    require_close(
        top[1], expected.topk(3, dim=1).values, f"{what}: the 3 hardest scores, against predict"
    )


def _check_gradient(case: Case, backend: str, loss: Loss) -> None:
    """Of Σ_j p_cij ℓ by all parameters, against autograd through the model's ``predict``."""
    scorer, batch, negatives = case.make(backend, loss), case.batch(), case.negatives()
    what = f"{case.what} (hns_backend={backend}, {type(loss).__name__})"
    with failing_as(f"{what}: sampled_loss"):
        value = scorer.sampled_loss(_encoded(case, scorer, batch), negatives)
        torch.autograd.backward(value)
    slow = copy.deepcopy(case.model)
    r_ci = case.predicted(batch[slow.ITEM_ID][:, None], slow)[:, 0]
    expected = loss.pair(r_ci, case.predicted(negatives.ids, slow), negatives.weights, None).mean()
    torch.autograd.backward(expected)
    require_close(value, expected, f"{what}: the sampled loss, against predict")
    for (name, ours), (_, theirs) in zip(
        scorer.model.named_parameters(), slow.named_parameters(), strict=True
    ):
        found, wanted = _gradient(ours), _gradient(theirs)
        require_close(found, wanted, f"{what}: the gradient by {name}, against autograd", 1e-4)


def _gradient(parameter: torch.Tensor) -> torch.Tensor:
    gradient = parameter.grad
    return torch.zeros_like(parameter) if gradient is None else gradient.to_dense()


def _step(case: Case, scorer: Scorer, negatives: Negatives, batch: Interaction) -> torch.Tensor:
    """The training loss of the batch; models give it with different shapes, or in parts."""
    _seed()
    with failing_as(f"{case.what}: loss"):
        generator = torch.Generator().manual_seed(4)
        loss = scorer.loss(batch, _encoded(case, scorer, batch), negatives, generator)
    return _summed(loss)


def _seed() -> None:
    from recbole.utils import init_seed

    init_seed(3, True)  # torch's, NumPy's and Python's: models draw by all three


def _summed(loss: Any) -> torch.Tensor:
    parts = loss if isinstance(loss, tuple) else (loss,)
    return torch.stack([part.reshape(()) for part in parts]).sum()


def _check_step(case: Case) -> None:
    """The loss is finite and teaches; a model's own loss is given the negatives that the weights draw."""
    scorer, batch, negatives = case.make(), case.batch(), case.negatives(only=4)
    loss = _step(case, scorer, negatives, batch)
    require_finite(loss, f"{case.what}: loss")
    require(loss.requires_grad, f"{case.what}: loss has no gradient.")
    torch.autograd.backward(loss)
    moved = [_gradient(p) for p in scorer.model.parameters()]
    for gradient in moved:
        require_finite(gradient, f"{case.what}: the gradient of loss")
    require(
        any(bool((g != 0).any()) for g in moved), f"{case.what}: the gradient of loss is 0 everywhere."
    )
    if scorer.learns_by == "pair_loss":
        return
    field = case.dataset.config["NEG_PREFIX"] + case.dataset.iid_field
    wrong = int((batch[field] != negatives.ids[:, 4]).sum())
    require(
        wrong == 0,
        f"{case.what}: {wrong} of {len(batch)} negatives are not those that the weights choose.",
    )


def _check_own_loss(case: Case) -> None:
    """With one negative that weighs 1, and BPR, the loss is what the model's ``calculate_loss`` gives."""
    negatives, batch = case.negatives(n=1, only=0), case.batch()
    found = _step(case, case.make(), negatives, case.batch())
    model = copy.deepcopy(case.model)
    batch[case.dataset.config["NEG_PREFIX"] + case.dataset.iid_field] = negatives.ids[:, 0].long()
    _seed()
    expected = _summed(model.calculate_loss(batch))
    require_close(
        found,
        expected,
        f"{case.what}: the loss with one negative, against calculate_loss (or say same_loss=False)",
    )


def _check_sparse(case: Case) -> None:
    """The gradients of single rows are those of whole tables."""
    found = []
    for sparse in (False, True):
        scorer = case.make()
        for part in scorer.model.modules():
            if isinstance(part, torch.nn.Embedding):
                part.sparse = sparse
        torch.autograd.backward(_step(case, scorer, case.negatives(), case.batch()))
        for name, parameter in scorer.model.named_parameters():
            is_sparse = parameter.grad is not None and parameter.grad.is_sparse
            require(
                is_sparse == sparse,
                f"{case.what}: sparse={sparse}, and the gradient of {name} is not so.",
            )
        found.append({name: _gradient(p) for name, p in scorer.model.named_parameters()})
    for name, dense in found[0].items():
        require_close(
            found[1][name], dense, f"{case.what}: the sparse gradient by {name}, against the dense one"
        )
