"""Which RecBole models can be trained with a sampler, and how: ``recbole-hns models``."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import recbole
from recbole.data.dataloader import UserDataLoader
from recbole.data.utils import get_dataloader
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.utils import InputType, ModelType, get_model

from recbole_hns.models import composed, fused
from recbole_hns.models.scorer import OwnLossScorer, Scorer
from recbole_hns.settings.registry import table

RECBOLE_MODELS = Path(recbole.__file__).resolve().parent / "properties" / "model"
NOT_POSSIBLE = "not possible"
PATHS = {
    "fused": "encoded once, all n negatives scored and weighed, gradient gathered by kernels",
    "composed": "the same inside the model's own loss: only its ranking term is replaced",
    "own loss": "the sampler chooses one negative per pair, the model's own loss learns from it",
    NOT_POSSIBLE: "and why",
}

_KINDS = {
    ModelType.GENERAL: "general",
    ModelType.KNOWLEDGE: "knowledge",
    ModelType.SEQUENTIAL: "sequential",
    ModelType.CONTEXT: "context",
    ModelType.TRADITIONAL: "traditional",
    ModelType.DECISIONTREE: "decision tree",
}
_OWN_NEGATIVES = "masks items of the sequence and draws negatives of its own for them"
_ALL_ITEMS = "learns by cross-entropy over all items and uses no negatives"
_REASONS = {
    "BERT4Rec": _OWN_NEGATIVES,
    "CORE": _ALL_ITEMS,
    "GRU4RecCPR": _ALL_ITEMS,
    "SASRecCPR": _ALL_ITEMS,
    "RepeatNet": _ALL_ITEMS,
}
_PACKAGES = {"NCL": "faiss"}
_NOTES = {
    **{model: f"needs {package}" for model, package in _PACKAGES.items()},
    "S3Rec": "fine-tuning only",
    "LINE": "candidates scored by a dot product",
    "SimpleX": "candidates scored by a dot product",
    "HGN": "positives and negatives from one table, unlike RecBole's BPR",
}


@dataclass(frozen=True)
class Support:
    """How a model is trained; ``note`` says why not, or what to know."""

    model: str
    kind: str
    path: str
    note: str


_SCORERS: dict[str, type[Scorer]] = {
    name: scorer
    for module in (fused, composed)
    for scorer in vars(module).values()
    if isinstance(scorer, type) and issubclass(scorer, Scorer)
    for name in scorer.models
    if isinstance(name, str)
}


def scorer_of(model_class: type[AbstractRecommender]) -> type[Scorer]:
    """The scorer that a model of exactly this class gets: a registered one, ours, or its own loss."""
    registered: dict[str, type[Scorer]] = table("scorer")
    for scorer in registered.values():
        if model_class in scorer.models or model_class.__name__ in scorer.models:
            return scorer
    of_recbole = model_class.__module__.startswith("recbole.model.")
    return _SCORERS.get(model_class.__name__, OwnLossScorer) if of_recbole else OwnLossScorer


def has_vectors(model_class: type[AbstractRecommender]) -> bool:
    """Whether candidates are scored by a dot product."""
    return scorer_of(model_class).scores_by != "predict"


def has_pair_loss(model_class: type[AbstractRecommender]) -> bool:
    """Whether ``pair_loss``, with all weighted negatives, is what the model learns by."""
    return scorer_of(model_class).learns_by == "pair_loss"


def why_not(
    model_class: type[AbstractRecommender], name: str, kind: ModelType, input_type: InputType
) -> str:
    """Why a model cannot be trained on pairs; empty if it can."""
    if model_class.__module__.startswith("recbole.model.") and name in _REASONS:
        return _REASONS[name]
    if kind == ModelType.TRADITIONAL:
        return "is computed from the data and not trained on pairs"
    if get_dataloader({"model": name, "MODEL_TYPE": kind}, "train") is UserDataLoader:
        return "learns to rebuild whole user histories and uses no negatives"
    if input_type != InputType.PAIRWISE:
        return "learns from single items (pointwise), so it cannot rank a positive above its negatives"
    return ""


def missing_package(name: str) -> str | None:
    """The package that a model imports when it is built, RecBole does not install and is not here."""
    package = _PACKAGES.get(name)
    return package if package and importlib.util.find_spec(package) is None else None


def support_of(name: str) -> Support:
    """How RecBole's model of that name is trained."""
    try:
        model_class = get_model(name)
    except ImportError:  # of decision trees, whose packages RecBole does not install
        return Support(name, "decision tree", NOT_POSSIBLE, "grows trees and ranks no pairs")
    # Sequential models say by loss_type what they take; here that is BPR.
    input_type = getattr(model_class, "input_type", InputType.PAIRWISE)
    why = why_not(model_class, name, model_class.type, input_type)
    path = NOT_POSSIBLE if why else scorer_of(model_class).path
    return Support(name, _KINDS[model_class.type], path, why or _NOTES.get(name, ""))


def all_support() -> Iterator[Support]:
    """Every model of RecBole, best path first."""
    rows = [support_of(file.stem) for file in RECBOLE_MODELS.glob("*.yaml")]
    order, kinds = list(PATHS), list(_KINDS.values())
    return iter(sorted(rows, key=lambda r: (order.index(r.path), kinds.index(r.kind), r.model.lower())))


def support_table(markdown: bool = False) -> str:
    """The models of a path and kind on one line each; those that are not possible by their reason."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for row in all_support():
        reason = row.note if row.path == NOT_POSSIBLE else ""
        note = f" ({row.note})" if row.note and not reason else ""
        groups.setdefault((row.path, row.kind, reason), []).append(row.model + note)
    lines = [("path", "kind", "models")]
    for (path, kind, reason), models in groups.items():
        lines.append((path, kind, ", ".join(models) + (f": {reason}" if reason else "")))
    if markdown:
        rows = [f"| {' | '.join(line)} |" for line in lines]
        return "\n".join([rows[0], "| --- | --- | --- |", *rows[1:]])
    width = [max(len(line[column]) for line in lines) for column in range(2)]
    return "\n".join(f"{path:<{width[0]}}  {kind:<{width[1]}}  {rest}" for path, kind, rest in lines)
