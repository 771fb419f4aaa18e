"""A checkpoint, tested again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recbole.evaluator.base_metric import TopkMetric
from recbole.evaluator.register import metrics_dict
from recbole.model.abstract_recommender import AbstractRecommender

from recbole_hns.bridge.collector import evaluate_counts
from recbole_hns.bridge.metrics import DEFAULTS as METRIC_DEFAULTS
from recbole_hns.bridge.metrics import METRICS, metric_keys
from recbole_hns.errors import Error
from recbole_hns.runs.artifact import Artifact, open_artifact, settings_of
from recbole_hns.runs.pipeline import make_loaders
from recbole_hns.runs.tester import Tester
from recbole_hns.settings.kinds import convert, whole
from recbole_hns.settings.words import nearest
from recbole_hns.theory import Interval, recall_interval

# What an evaluation may have otherwise than the run: nothing of these changes model or split; where
# eval_args does, the training set is not the checkpoint's, which is noticed.
FREE = {"metrics", "topk", "valid_metric", "valid_metric_bigger", "metric_decimal_place", "hns_backend"}
FREE |= {"eval_args", "eval_batch_size", "eval_neg_sample_args", *METRIC_DEFAULTS}


def evaluate(
    checkpoint: str | Path,
    settings: dict[str, Any] | None = None,
    trust_checkpoint: bool = False,
    model: type[AbstractRecommender] | None = None,
) -> dict[str, Any]:
    """``best_valid_result`` and ``test_result`` of a checkpoint, on the split of its run.

    ``settings`` replace the run's ``metrics``, ``topk`` and whatever else an evaluation depends on;
    ``model`` is the class where RecBole does not know it.
    """
    artifact = open_artifact(checkpoint, None, frozenset(), trust_checkpoint, model)
    return evaluate_artifact(with_settings(artifact, settings) if settings else artifact)


def theorem_interval(
    checkpoint: str | Path,
    k: int,
    trust_checkpoint: bool = False,
    model: type[AbstractRecommender] | None = None,
) -> Interval:
    """Recall@K on the test set, and the bounds that the paper's theorem draws from OPAUC(K/N₋)."""
    convert("theorem", k, whole(1), why="the K of Recall@K")
    artifact = open_artifact(checkpoint, None, frozenset(), trust_checkpoint, model)
    artifact = with_settings(artifact, {"metrics": ["OPAUC"]})
    loaders = make_loaders(artifact.config, artifact.parts)
    if loaders.test is None:
        raise Error("there is no test set.")
    tester = Tester(artifact.config, artifact.model)
    tester.eval_collector.data_collect(loaders.train)
    return recall_interval(*evaluate_counts(tester, loaders.test).by_user(), k)


def with_settings(artifact: Artifact, settings: dict[str, Any]) -> Artifact:
    """The same model under other settings of evaluation."""
    given = _as_lists(dict(settings))
    given.setdefault("valid_metric", _some_metric({**settings_of(artifact.state), **given}))
    return Artifact(
        artifact.file,
        artifact.state,
        given,
        FREE,
        artifact._model_class,
        dataset_class=artifact.dataset_class,
    )


def evaluate_artifact(artifact: Artifact) -> dict[str, Any]:
    """``best_valid_result`` and ``test_result`` on the split of the run."""
    loaders = make_loaders(artifact.config, artifact.parts)
    tester = Tester(artifact.config, artifact.model)
    tester.eval_collector.data_collect(loaders.train)
    progress = bool(artifact.config["show_progress"])
    valid, test = (
        tester.evaluate(data, load_best_model=False, show_progress=progress)
        for data in (loaders.valid, loaders.test)
    )
    return {"best_valid_result": valid, "test_result": test}


def _as_lists(given: dict[str, Any]) -> dict[str, Any]:
    """``--metrics=A,B`` and ``--topk=5,10`` as RecBole wants them."""
    for key in {"metrics", "topk"} & set(given):
        value = given[key]
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")]
        given[key] = list(value) if isinstance(value, (list, tuple)) else [value]
    if "topk" in given:
        given["topk"] = [int(k) if isinstance(k, str) and k.isdecimal() else k for k in given["topk"]]
    for k in given.get("topk", ()):
        convert("topk", k, whole(1), why="the K of the metrics")
    return given


def _some_metric(settings: dict[str, Any]) -> str:
    """A metric that is evaluated: the run's own valid_metric may not be, and decides nothing here."""
    name = str(settings["metrics"][0]).lower()
    if name in METRICS:
        return next(iter(metric_keys({**METRIC_DEFAULTS, **settings}, name)))
    if name not in metrics_dict:
        raise Error(
            f"metrics={settings['metrics'][0]} is unknown{nearest(name, metrics_dict)}: RecBole has "
            f"{', '.join(sorted(metrics_dict))}."
        )
    is_topk = issubclass(metrics_dict[name], TopkMetric)
    return f"{name}@{settings['topk'][0]}" if is_topk else name
