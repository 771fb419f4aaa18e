"""``recbole-hns evaluate``: a checkpoint, tested again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recbole.evaluator.base_metric import TopkMetric
from recbole.evaluator.register import metrics_dict
from recbole.model.abstract_recommender import AbstractRecommender

from recbole_hns.bridge.config import read_command_line
from recbole_hns.bridge.metrics import DEFAULTS as METRIC_DEFAULTS
from recbole_hns.bridge.metrics import METRICS, metric_keys
from recbole_hns.cli.parser import add_trust, result_table
from recbole_hns.errors import Error
from recbole_hns.runs.artifact import Tester, find_model, load_trained, settings_of
from recbole_hns.settings import checks
from recbole_hns.settings.checks import nearest

# What an evaluation may have otherwise than the run: nothing of these changes model or split; where
# eval_args does, the training set is not the checkpoint's, which is noticed.
FREE = {"metrics", "topk", "valid_metric", "valid_metric_bigger", "metric_decimal_place"}
FREE |= {"eval_args", "eval_batch_size", "eval_neg_sample_args", *METRIC_DEFAULTS}

EPILOG = """\
Metrics and K are those of the run unless given; any setting that does not change the model or the data
can be given as --key=value. The split is the run's own.

examples:
  recbole-hns evaluate saved/BPR-Jan-01-2026_12-00-00.pth
  recbole-hns evaluate saved/BPR-Jan-01-2026_12-00-00.pth --metrics=Recall,NDCG,OPAUC --topk=5,20,50
"""


def make_parser(parser_class: type[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The command's own options; all others are settings."""
    parser = parser_class(
        prog="recbole-hns evaluate",
        usage="recbole-hns evaluate CHECKPOINT [--metrics=A,B] [--topk=5,10] [--key=value ...]",
        description="Evaluate a checkpoint on the validation and test sets of its run.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", type=Path, help="a .pth file of a run")
    add_trust(parser)
    return parser


def main(arguments: Sequence[str], parser_class: type[argparse.ArgumentParser]) -> None:
    """Run ``recbole-hns evaluate …``."""
    options, rest = make_parser(parser_class).parse_known_args(arguments)
    settings = read_command_line(rest)
    print(result_table(evaluate(options.checkpoint, settings, options.trust_checkpoint)))


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
    given = _as_lists(dict(settings or {}))
    state, file = find_model(checkpoint, trust_checkpoint)
    if given:
        given.setdefault("valid_metric", _some_metric({**settings_of(state), **given}))
    trained = load_trained(state, file, given, FREE, model)
    train_data, valid_data, test_data = trained.split()
    tester = Tester(trained.config, trained.model(train_data._dataset))
    tester.eval_collector.data_collect(train_data)
    progress = bool(trained.config["show_progress"])
    valid, test = (
        tester.evaluate(data, load_best_model=False, show_progress=progress)
        for data in (valid_data, test_data)
    )
    return {"best_valid_result": valid, "test_result": test}


def _as_lists(given: dict[str, Any]) -> dict[str, Any]:
    """``--metrics=A,B`` and ``--topk=5,10`` as RecBole wants them."""
    for key in {"metrics", "topk"} & set(given):
        value = given[key]
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")]
        given[key] = list(value) if isinstance(value, (list, tuple)) else [value]
    for k in given.get("topk", ()):
        checks.integer({"topk": k}, "topk", "the K of the metrics")
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
