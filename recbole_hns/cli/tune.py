"""``recbole-hns tune``: a search for settings, as easy as a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recbole_hns.bridge.config import read_layer
from recbole_hns.cli.parser import Parser, add_trust
from recbole_hns.errors import Error
from recbole_hns.files import a_path
from recbole_hns.settings.dialect import read_command_line
from recbole_hns.training.plain import plain_setting
from recbole_hns.tuning import Machines, SearchPlan, make_plan, new_folder, run_search
from recbole_hns.tuning.plan import SCHEDULERS
from recbole_hns.tuning.space import PAPER, space_of

EPILOG = """\
every setting of RecBole, of the model and of the sampler can be given as --key=value; it is then the
same in all trials. A search file maps settings to domains:
  M: {grid: [1, 2, 5, 20]}                  every value
  learning_rate: {loguniform: [1e-4, 1e-2]}       drawn anew for each of --num_samples; so are
  tau: {uniform: [0.1, 2.0]}, N: {randint: [50, 500]}, rho: {choice: [0.1, 1, 10]}
by default the sampler's own settings and the model's regulariser are searched, without those that are
given; --search=paper takes the paper's grids, with its weight decay and no reg_weight.

the winner is the trial with the best valid_metric on the validation set; only the winner is tested,
--seeds times, with --refit also after training on training + validation. The folder of a search holds
trials.csv, best.yaml (for --config_files), summary.json, the runs and report/report.html.

examples:
  recbole-hns tune --model=MF --dataset=ml-100k --sampler=dns
  recbole-hns tune --model=MF --dataset=gowalla --sampler=softmax_v --search=my.yaml --scheduler=asha
  recbole-hns tune --resume=tuning/BPR-ml-100k-dns-20260101-120000
"""


def make_parser() -> Parser:
    """The command's own options; all others are settings of the trials."""
    parser = Parser(
        prog="recbole-hns tune",
        usage="recbole-hns tune --model=MODEL --dataset=DATASET --sampler=NAME [--key=value ...]",
        description="Search settings on the validation set with Ray Tune, and test the winner.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--model", help="a RecBole model; MF is another name for BPR")
    parser.add_argument("--dataset", help="a RecBole data set; ml-100k is bundled")
    parser.add_argument("--search", help=f"a search file, or {PAPER} for the paper's grids")
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
        "--storage", type=a_path, default=Path("tuning"), help="folder; shared on a cluster"
    )
    parser.add_argument("--name", help="of the search's folder in it (model-dataset-sampler-time)")
    parser.add_argument("--max_failures", type=int, default=1, help="restarts of a trial that fails (1)")
    parser.add_argument("--resume", type=a_path, help="the folder of a search to go on with")
    add_trust(parser)
    return parser


def main(arguments: Sequence[str]) -> None:
    """Run ``recbole-hns tune …``."""
    options, rest = make_parser().parse_known_args(arguments)
    machines = Machines(options.cpus, options.gpus, options.ray_address, options.max_failures)
    machines.check()
    plan, folder = _resumed(options, rest) if options.resume else _new(options, rest)
    print(f"search: {folder}")
    summary = run_search(plan, folder, machines, progress=True, trust=options.trust_checkpoint)
    print(summary_text(summary, folder))


def _new(options: argparse.Namespace, rest: Sequence[str]) -> tuple[SearchPlan, Path]:
    if not options.model or not options.dataset:
        raise Error("a search needs --model and --dataset, e.g. --model=MF --dataset=ml-100k.")
    plan = make_plan(
        options.model,
        options.dataset,
        read_command_line(rest),
        options.search,
        _files(options),
        **_given(options),
    )
    return plan, new_folder(plan, options.storage, options.name)


def _resumed(options: argparse.Namespace, rest: Sequence[str]) -> tuple[SearchPlan, Path]:
    """The plan of the folder; what is given besides must not contradict it."""
    plan = SearchPlan.read(options.resume)
    config = plan.config()
    known = {**plan_options(plan), **{k: plain_setting(v) for k, v in plan.given().items()}}
    given = {"model": options.model, "dataset": options.dataset, **_given(options)}
    if given["model"] is not None:
        given["model"] = config["model"] if given["model"] == "MF" else given["model"]
    if options.search:
        given["search"], known["search"] = space_of(options.search, config), plan.domains
    for file in _files(options):
        given.update(read_layer(file).values)
    given.update(read_command_line(rest))
    for key, value in given.items():
        if value is not None and known.get(key) != value:
            raise Error(
                f"resume={options.resume} is the folder of another search: there {key} is "
                f"{known.get(key, 'not given')}, here {value}."
            )
    return plan, options.resume


def plan_options(plan: SearchPlan) -> dict[str, Any]:
    """What the command calls the plan's own fields."""
    names = ("model", "dataset", "num_samples", "scheduler", "seeds", "refit")
    return {name: value for name, value in asdict(plan).items() if name in names}


def _files(options: argparse.Namespace) -> list[str]:
    return (options.config_files or "").split()


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The options of the plan that were given."""
    values = {key: getattr(options, key) for key in ("num_samples", "scheduler", "seeds", "refit")}
    return {key: value for key, value in values.items() if value is not None}


def summary_text(summary: dict[str, Any], folder: Path) -> str:
    """The winner and its test, for the terminal."""
    best = ", ".join(f"{key}={value}" for key, value in summary["best"].items())
    lines = [
        f"best of {summary['trials']} trials on validation: {best} ({summary['valid_metric']} "
        f"{summary['best_score']:.4f})",
    ]
    if summary["changes"]:
        lines.append(f"its settings changed while it trained: {summary['changes']}")
    if summary["at_an_end"]:
        ends = ", ".join(f"{key}={summary['best'][key]}" for key in summary["at_an_end"])
        lines.append(f"at an end of what was searched: {ends}; values beyond it may be better")
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
