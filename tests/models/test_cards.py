"""Which of RecBole's models can be trained with a sampler, and by which scorer."""

from pathlib import Path

import pytest
from recbole.model.general_recommender import BPR, LightGCN
from recbole.utils import InputType, ModelType, get_model

from recbole_hns import Scorer, register
from recbole_hns.models import cards, composed, fused
from recbole_hns.models.cards import (
    NOT_POSSIBLE,
    PATHS,
    RECBOLE_MODELS,
    all_support,
    has_pair_loss,
    has_vectors,
    scorer_of,
    support_of,
    support_table,
    why_not,
)
from recbole_hns.models.scorer import OwnLossScorer
from recbole_hns.settings import registry


@pytest.fixture(autouse=True)
def no_trace(monkeypatch):
    """What a test registers is forgotten."""
    monkeypatch.setattr(registry, "_TABLES", {k: dict(v) for k, v in registry._TABLES.items()})
    monkeypatch.setattr(registry, "_OWNERS", dict(registry._OWNERS))


def test_every_model_of_recbole_is_listed_once_the_best_path_first():
    rows = list(all_support())
    assert sorted(row.model for row in rows) == sorted(
        file.stem for file in RECBOLE_MODELS.glob("*.yaml")
    )
    places = [list(PATHS).index(row.path) for row in rows]
    assert places == sorted(places)
    assert all(row.note for row in rows if row.path == NOT_POSSIBLE)


@pytest.mark.parametrize(
    ("name", "kind", "path", "note"),
    [
        ("BPR", "general", "fused", ""),
        ("NCL", "general", "composed", "needs faiss"),
        ("SASRec", "sequential", "composed", ""),
        ("KGAT", "knowledge", "composed", ""),
        ("ConvNCF", "general", "own loss", ""),
        ("SimpleX", "general", "own loss", "candidates scored by a dot product"),
        ("NeuMF", "general", NOT_POSSIBLE, "learns from single items (pointwise)"),
        ("MultiVAE", "general", NOT_POSSIBLE, "learns to rebuild whole user histories"),
        ("BERT4Rec", "sequential", NOT_POSSIBLE, "draws negatives of its own"),
        ("CORE", "sequential", NOT_POSSIBLE, "cross-entropy over all items"),
        ("DeepFM", "context", NOT_POSSIBLE, "learns from single items (pointwise)"),
        ("EASE", "traditional", NOT_POSSIBLE, "is computed from the data"),
        ("xgboost", "decision tree", NOT_POSSIBLE, "grows trees"),
    ],
)
def test_how_a_model_is_trained_or_why_it_is_not(name, kind, path, note):
    row = support_of(name)
    assert (row.model, row.kind, row.path) == (name, kind, path)
    assert note in row.note
    assert bool(note) == bool(row.note)


@pytest.mark.parametrize(
    ("name", "scorer", "vectors", "pair_loss"),
    [
        ("BPR", fused.MFScorer, True, True),
        ("LightGCN", fused.LightGCNScorer, True, True),
        ("NGCF", composed.TableScorer, True, True),
        ("SGL", composed.SGLScorer, True, True),
        ("SASRec", composed.SequenceScorer, True, True),
        ("LINE", composed.LINEScorer, True, False),
        ("ConvNCF", OwnLossScorer, False, False),
    ],
)
def test_a_scorer_is_for_the_models_that_it_names(name, scorer, vectors, pair_loss):
    model = get_model(name)
    assert scorer_of(model) is scorer
    assert (has_vectors(model), has_pair_loss(model)) == (vectors, pair_loss)


def test_no_model_has_two_scorers():
    scorers = {s for m in (fused, composed) for s in vars(m).values() if isinstance(s, type)}
    named = [name for s in scorers if issubclass(s, Scorer) for name in vars(s).get("models", ())]
    assert len(named) == len(set(named)) == len(cards._SCORERS)
    assert {name: get_model(name).__name__ for name in named} == {name: name for name in named}


def test_a_model_of_ones_own_has_its_own_loss_whatever_its_name():
    mine = type("LightGCN", (BPR,), {"__module__": "elsewhere"})
    assert scorer_of(mine) is OwnLossScorer
    assert scorer_of(type("Mine", (LightGCN,), {})) is OwnLossScorer


def test_a_registered_scorer_is_for_exactly_its_models_also_for_recboles():
    class Mine(BPR):
        """Mine."""

    @register
    class MineToo(Scorer):
        """By class, and by name."""

        models = (Mine, "NGCF")

    assert scorer_of(Mine) is MineToo
    assert scorer_of(get_model("NGCF")) is MineToo
    assert scorer_of(type("Younger", (Mine,), {})) is OwnLossScorer
    assert support_of("NGCF").path == MineToo.path


@pytest.mark.parametrize(
    ("kind", "input_type", "words"),
    [
        (ModelType.GENERAL, InputType.PAIRWISE, ""),
        (ModelType.GENERAL, InputType.POINTWISE, "learns from single items"),
        (ModelType.TRADITIONAL, InputType.PAIRWISE, "is computed from the data"),
    ],
)
def test_a_model_of_ones_own_is_refused_for_what_it_declares(kind, input_type, words):
    mine = type("CORE", (BPR,), {"__module__": "elsewhere"})  # not RecBole's
    reason = why_not(mine, "CORE", kind, input_type)
    assert words in reason
    assert bool(words) == bool(reason)


def test_the_table_has_a_line_for_each_path_kind_and_reason():
    lines = support_table(markdown=True).splitlines()
    assert lines[:2] == ["| path | kind | models |", "| --- | --- | --- |"]
    rows = {(r.path, r.kind, r.note if r.path == NOT_POSSIBLE else "") for r in all_support()}
    assert len(lines) == 2 + len(rows)
    plain = support_table().splitlines()
    assert len(plain) == 1 + len(rows)
    assert len({line.index(kind) for line, kind in zip(plain[1:3], ("general", "general"))}) == 1


def test_the_readme_has_the_list_of_models():
    readme = Path(__file__).parents[2] / "README.md"
    assert support_table(markdown=True) in readme.read_text("utf-8")
