"""``recbole-hns --model=… --dataset=…``: train and test a model."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence

from recbole_hns.cli.parser import Parser, add_trust, result_table
from recbole_hns.sampling.methods import all_methods, owners, setting_kinds
from recbole_hns.settings.dialect import read_command_line
from recbole_hns.settings.kinds import about_of
from recbole_hns.settings.parts import settings_of
from recbole_hns.settings.registry import table

EPILOG = """\
every setting of RecBole and of the model can be given as --key=value; ours are
  --sampler=NAME       {names}
                       (softmax_v is the default; `recbole-hns samplers` lists them with their settings)
{settings}
  --reg_weight=0.02    MF: on the squared norms of the rows that a pair names
  --lr_step_size=5     decay the learning rate every 5 epochs (default: never) ...
  --lr_gamma=0.95      ... by this factor
  --hns_backend=auto   numba (CPU), torch (any device), auto
  --import=MODULE      a module of yours that registers pools, rules, losses, scorers or methods

Ctrl-C (or SIGTERM) finishes the batch, saves, and says how to go on; a run that is killed goes on from
its last epoch. Either way it ends as if nothing had happened:
  --resume             go on with the newest unfinished run in saved/ (or --checkpoint_dir)
  --resume=FILE        ... or with a file of the run, or the newest run of a folder

other commands, each with a --help of its own:
  recbole-hns samplers               all samplers with their settings and defaults
  recbole-hns models                 RecBole's models and how each is trained
  recbole-hns evaluate               test a checkpoint again, with other metrics or K
  recbole-hns recommend              a CSV of recommendations from a checkpoint
  recbole-hns convert                raw files (.mat, .npz, .csv, lists) to a data set
  recbole-hns tune                   search settings with Ray Tune, and test the winner
  recbole-hns report                 tables, figures and a page from finished runs
  recbole-hns schema                 a JSON Schema of all settings, for editors
  recbole-hns simulate correlation   how Top-K metrics follow OPAUC (the paper's figure)
  recbole-hns simulate sampling      which negatives a sampler really draws (the paper's figure)

example:
  recbole-hns --model=LightGCN --dataset=ml-100k --sampler=softmax_v --rho=0.1
"""


def make_parser() -> Parser:
    """The launcher's own options; all others go to the configuration."""
    names = ("\n" + 23 * " ").join(textwrap.wrap(", ".join(all_methods()), 78))
    parser = Parser(
        prog="recbole-hns",
        usage="recbole-hns --model=MODEL --dataset=DATASET [--sampler=NAME] [--key=value ...]",
        description="Train a RecBole model with hard negative sampling and test it.",
        epilog=EPILOG.format(names=names, settings=_setting_lines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--model", help="a RecBole model; MF is another name for BPR")
    parser.add_argument("--dataset", help="a RecBole data set; ml-100k is bundled")
    parser.add_argument("--config_files", help='property files, e.g. "a.yaml b.yaml"')
    parser.add_argument("--nproc", type=int, default=1, help="processes on this machine")
    parser.add_argument("--world_size", type=int, default=-1, help="processes on all machines")
    parser.add_argument("--ip", default="localhost", help="address of the first machine")
    parser.add_argument("--port", default="5678", help="port of the first machine")
    parser.add_argument(
        "--group_offset", type=int, default=0, help="global rank of this machine's first process"
    )
    parser.add_argument("--resume", nargs="?", const="", help="go on with a run, see below")
    add_trust(parser)
    return parser


def _setting_lines() -> str:
    """The settings of samplers, pools and losses, as their parts declare them."""
    parts = [part for kind in ("rule", "pool", "loss") for part in table(kind).values()]
    defaults = {one.key: one.default for part in parts for one in settings_of(part)}
    common = {"N": 200, "pool": "uniform", "pool_block": 1, "pair_loss": "bpr"}
    lines = []
    for key, kind in setting_kinds().items():
        value, about = {**defaults, **common}[key], about_of(kind).text
        whose = "" if key in common else f"{_names(key)}: "
        choices = {"pool": table("pool"), "pair_loss": table("loss")}.get(key)
        text = whose + about + (f": {', '.join(choices)}" if choices else "")
        head = f"  --{key}={value}"
        lines.append(f"{head:<22} {text}" if len(head) <= 22 else f"{head}\n{'':<23}{text}")
    return "\n".join(lines)


def _names(key: str) -> str:
    names = [owner.partition("=")[2] for owner in owners(key)]
    return ", ".join(names) if len(names) < 4 else ", ".join([*names[:3], "…"])


def main(arguments: Sequence[str]) -> None:
    """Run ``recbole-hns --model=… --dataset=…``."""
    options, settings = make_parser().parse_known_args(arguments)
    from recbole_hns.runs.group import Group, launch
    from recbole_hns.runs.resume import newest_unfinished

    resume = options.resume
    if resume == "":
        folder = read_command_line(settings).get("checkpoint_dir", "saved")
        resume = newest_unfinished(str(folder), options.trust_checkpoint)
    group = Group(options.nproc, options.world_size, options.ip, options.port, options.group_offset)
    files = options.config_files.split() if options.config_files else None
    result = launch(
        options.model, options.dataset, files, settings, group, resume, options.trust_checkpoint
    )
    if result is not None:
        print(result_table(result))
