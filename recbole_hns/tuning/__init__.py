"""``recbole-hns tune``: a search for settings, as easy as a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from recbole_hns.bridge.allowed import FOLDER
from recbole_hns.bridge.config import PROPERTIES, HNSConfig, read_command_line, read_yaml
from recbole_hns.errors import Error
from recbole_hns.tuning.search import SCHEDULERS, SearchPlan, make_plan, run_search
from recbole_hns.tuning.space import read_space

__all__ = ["SearchPlan", "main", "make_plan", "run_search"]

EPILOG = """\
every setting of RecBole, of the model and of the sampler can be given as --key=value; it is then the
same in all trials. A search file maps settings to domains:
  M: {grid: [1, 2, 5, 20]}                  every value
  learning_rate: {loguniform: [1.0e-4, 1.0e-2]}   drawn anew for each of --num_samples; so are
  tau: {uniform: [0.1, 2.0]}, N: {randint: [50, 500]}, rho: {choice: [0.1, 1, 10]}

the winner is the trial with the best valid_metric on the validation set; only the winner is tested,
--seeds times, with --refit also after training on training + validation. The folder of a search holds
trials.csv, best.yaml (for --config_files), summary.json, the runs and report/report.html.

examples:
  recbole-hns tune --model=MF --dataset=ml-100k --sampler=dns
  recbole-hns tune --model=MF --dataset=gowalla --sampler=softmax_v --search=my.yaml --scheduler=asha
  recbole-hns tune --resume=tuning/BPR-ml-100k-dns-20260101-120000
"""


def make_parser(parser_class: type[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The command's own options; all others are settings of the trials."""
    parser = parser_class(
        prog="recbole-hns tune",
        usage="recbole-hns tune --model=MODEL --dataset=DATASET --sampler=NAME [--key=value ...]",
        description="Search settings on the validation set with Ray Tune, and test the winner.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--model", help="a RecBole model; MF is another name for BPR")
    parser.add_argument("--dataset", help="a RecBole data set; ml-100k is bundled")
    parser.add_argument("--search", type=Path, help="a search file (the paper's grid of the sampler)")
    parser.add_argument("--config_files", help='property files, e.g. "a.yaml b.yaml"')
    parser.add_argument("--num_samples", type=int, help="draws from the random domains (1)")
    parser.add_argument("--scheduler", choices=SCHEDULERS, help="none: an exact grid")
    parser.add_argument("--seeds", type=int, help="how often the winner is tested (5); 0: never")
    parser.add_argument(
        "--refit",
        action="store_true",
        default=None,
        help="test once more after training on training + validation, for the chosen epochs",
    )
    parser.add_argument("--cpus", type=float, default=1, help="CPUs of a trial (1)")
    parser.add_argument("--gpus", type=float, default=0, help="GPUs of a trial; fractions share one (0)")
    parser.add_argument("--ray_address", help="an existing Ray cluster, host:port; here if not given")
    parser.add_argument(
        "--storage", type=Path, default=Path("tuning"), help="folder; shared on a cluster"
    )
    parser.add_argument("--name", help="of the search's folder in it (model-dataset-sampler-time)")
    parser.add_argument("--max_failures", type=int, default=1, help="restarts of a trial that fails (1)")
    parser.add_argument("--resume", type=Path, help="the folder of a search to go on with")
    return parser


def main(arguments: Sequence[str], parser_class: type[argparse.ArgumentParser]) -> None:
    """Run ``recbole-hns tune …``."""
    options, rest = make_parser(parser_class).parse_known_args(arguments)
    if options.cpus < 0 or options.gpus < 0 or options.cpus + options.gpus == 0:
        raise Error(f"cpus={options.cpus:g}, gpus={options.gpus:g}: a trial needs some of either.")
    plan, folder = _resumed(options, rest) if options.resume else _new(options, rest)
    print(f"search: {folder}")
    summary = run_search(
        plan,
        folder,
        cpus=options.cpus,
        gpus=options.gpus,
        ray_address=options.ray_address,
        max_failures=options.max_failures,
        resume=options.resume is not None,
        progress=True,
    )
    print(summary_text(summary, folder))


def _new(options: argparse.Namespace, rest: Sequence[str]) -> tuple[SearchPlan, Path]:
    if not options.model or not options.dataset:
        raise Error("a search needs --model and --dataset, e.g. --model=MF --dataset=ml-100k.")
    settings = _settings(options, rest)
    search = options.search
    if search is None:
        sampler = HNSConfig(options.model, options.dataset, None, settings).spec.sampler
        search = PROPERTIES / "search" / f"{sampler}.yaml"
    if not search.is_file():
        raise Error(f"search file {search} does not exist: give one with --search.")
    plan = make_plan(options.model, options.dataset, settings, search, **_given(options))
    FOLDER.check("storage", str(options.storage))
    return plan, _new_folder(options, plan)


def _new_folder(options: argparse.Namespace, plan: SearchPlan) -> Path:
    if options.name is None:
        config, stamp = plan.config(), datetime.now().strftime("%Y%m%d-%H%M%S")
        parts = (config["model"], config["dataset"], config["sampler"], stamp)
        return options.storage / "-".join(parts)
    folder = options.storage / options.name
    FOLDER.check("name", str(folder))
    if (folder / "search.json").exists():
        raise Error(
            f"{folder} holds a search already: go on by --resume={folder}, or give another --name."
        )
    return folder


def _resumed(options: argparse.Namespace, rest: Sequence[str]) -> tuple[SearchPlan, Path]:
    """The plan of the folder; what is given besides must not contradict it."""
    plan = SearchPlan.read(options.resume)
    given = {"model": options.model, "dataset": options.dataset, **_given(options)}
    if options.search:
        given["search"] = read_space(options.search)
    given.update(_settings(options, rest) if rest or options.config_files else {})
    known = {**asdict(plan), **plan.settings, "search": plan.domains}
    for key, value in given.items():
        if value is not None and known.get(key) != value:
            raise Error(
                f"resume={options.resume} is the folder of another search: there {key} is "
                f"{known.get(key, 'not given')}, here {value}."
            )
    return plan, options.resume


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The options of the plan that were given."""
    values = {key: getattr(options, key) for key in ("num_samples", "scheduler", "seeds", "refit")}
    return {key: value for key, value in values.items() if value is not None}


def _settings(options: argparse.Namespace, rest: Sequence[str]) -> dict[str, Any]:
    """What is the same in all trials. Files are read here: other machines need not have them."""
    settings: dict[str, Any] = {}
    for file in (options.config_files or "").split():
        settings.update(read_yaml(file))
    settings.update(read_command_line(rest))
    beside = Path(settings.get("data_path", "dataset")) / f"{options.dataset}/{options.dataset}.yaml"
    return {**(read_yaml(beside) if beside.is_file() else {}), **settings}


def summary_text(summary: dict[str, Any], folder: Path) -> str:
    """The winner and its test, for the terminal."""
    best = ", ".join(f"{key}={value}" for key, value in summary["best"].items())
    lines = [
        f"best of {summary['trials']} trials on validation: {best} ({summary['valid_metric']} "
        f"{summary['best_score']:.4f})",
    ]
    if summary["seeds"]:
        lines += [f"test over {len(summary['seeds'])} seeds:", *_test_lines(summary["test"])]
    if "refit" in summary:
        epochs = summary["refit"]["epochs"]
        lines.append(f"test after refit, {epochs} epochs on training + validation:")
        lines += _test_lines(summary["refit"]["test"])
    if summary["failed"]:
        lines.append(f"{summary['failed']} trials failed: the reasons are in trials.csv")
    lines.append(f"written: {folder}/report/report.html, trials.csv, best.yaml, summary.json")
    return "\n".join(lines)


def _test_lines(test: dict[str, dict[str, float]]) -> list[str]:
    width = max(map(len, test))
    return [f"  {name:<{width}}  {v['mean']:.4f} ± {v['std']:.4f}" for name, v in test.items()]
