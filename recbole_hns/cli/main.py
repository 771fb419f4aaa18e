"""The command ``recbole-hns``, which ``run_recbole_hns.py`` is too."""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from recbole_hns.bridge.config import default_settings
from recbole_hns.cli.parser import Parser, add_trust, result_table
from recbole_hns.errors import Error
from recbole_hns.sampling.registry import SAMPLERS
from recbole_hns.training.stopping import RunStopped

EPILOG = """\
every setting of RecBole and of the model can be given as --key=value; ours are
  --sampler=NAME       {names}
                       (softmax_v is the default; `recbole-hns samplers` lists them with their settings)
  --N=200              candidates drawn per positive
  --M=20               dns: how many of the hardest candidates are used; smaller is harder
  --rho=0.5            softmax_v: larger is harder
  --tau=1.0            softmax and others: smaller is harder
  --pool=uniform       where candidates come from: uniform or popularity
  --pool_alpha=1.0     popularity draws an item in proportion to count^pool_alpha
  --pool_block=1       pairs that share one drawn candidate set; 16 is faster
  --pair_loss=bpr      or bce, hinge (--margin=1), softmax, infonce (--temperature=1)
  --lr_step_size=5     decay the learning rate every 5 epochs (default: never) ...
  --lr_gamma=0.95      ... by this factor
  --hns_backend=auto   numba (CPU), torch (any device), auto

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
  recbole-hns simulate correlation   how Top-K metrics follow OPAUC (the paper's figure)
  recbole-hns simulate sampling      which negatives a sampler really draws (the paper's figure)

example:
  recbole-hns --model=LightGCN --dataset=ml-100k --sampler=softmax_v --rho=0.1
"""


def make_parser() -> Parser:
    """The launcher's own options; all others go to the configuration."""
    names = textwrap.wrap(", ".join(SAMPLERS), 78)
    parser = Parser(
        prog="recbole-hns",
        usage="recbole-hns --model=MODEL --dataset=DATASET [--sampler=NAME] [--key=value ...]",
        description="Train a RecBole model with hard negative sampling and test it.",
        epilog=EPILOG.format(names=("\n" + 23 * " ").join(names)),
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


def sampler_table() -> str:
    """Every sampler with a line about it, and its settings with their defaults."""
    width = max(map(len, SAMPLERS))
    lines = []
    for name, entry in SAMPLERS.items():
        defaults = default_settings(entry)
        settings = ", ".join(f"{key}={defaults[key]}" for key in entry.keys) or "nothing to set"
        lines += [f"{name:<{width}}  {entry.about}", f"{'':<{width}}  {settings}"]
    return "\n".join(lines)


def list_samplers(arguments: Sequence[str]) -> None:
    """Run ``recbole-hns samplers``."""
    Parser(
        prog="recbole-hns samplers",
        description="List all samplers with their settings and defaults.",
        allow_abbrev=False,
    ).parse_args(arguments)
    print(sampler_table())


def _command(module: str) -> Callable[[Sequence[str]], None]:
    """A command whose module is loaded when it is run."""

    def run(arguments: Sequence[str]) -> None:
        importlib.import_module(f"recbole_hns.{module}").main(arguments, Parser)

    return run


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "samplers": list_samplers,
    "models": _command("models.cards"),
    "evaluate": _command("runs.evaluate"),
    "recommend": _command("runs.recommend"),
    "convert": _command("cli.convert"),
    "simulate": _command("cli.simulate"),
    "tune": _command("tuning"),
    "report": _command("report"),
}


def one_line(text: str) -> str:
    """The text with everything escaped that would end or disturb the line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _refuse_bytes(arguments: Sequence[str]) -> None:
    """What is no text in the terminal's encoding can be neither logged nor a file's name."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise Error(f"argument {argument!r} is not valid text: write it in UTF-8.") from None


def newest_unfinished(settings: Sequence[str], trust: bool) -> Path:
    """What ``--resume`` without a value means."""
    from recbole_hns.runs.resume import find_run, read_given

    folder = read_given(None, None, settings).get("checkpoint_dir", "saved")
    return find_run(str(folder), trust, unfinished=True)[1]


def command_name() -> str:
    """How this command was called, for messages that say what to type."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return "python -m recbole_hns"
    return f"python {shlex.quote(str(called))}" if called.suffix == ".py" else "recbole-hns"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 2 for a mistake that can be put right, or of a signal.

    130 is for Ctrl-C, 143 for SIGTERM.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        _refuse_bytes(arguments)
        if arguments[:1] and arguments[0] in COMMANDS:
            COMMANDS[arguments[0]](arguments[1:])
            return 0
        options, settings = make_parser().parse_known_args(arguments)
        from recbole_hns.runs.run import launch

        if options.resume == "":
            options.resume = newest_unfinished(settings, options.trust_checkpoint)
        result = launch(
            options.model,
            options.dataset,
            options.config_files.split() if options.config_files else None,
            settings,
            nproc=options.nproc,
            world_size=options.world_size,
            ip=options.ip,
            port=options.port,
            group_offset=options.group_offset,
            resume=options.resume,
            trust_checkpoint=options.trust_checkpoint,
        )
    except Error as error:
        print(f"recbole-hns: error: {one_line(str(error))}", file=sys.stderr)
        return 2
    except RunStopped as stop:
        saved = f" go on with: {command_name()} --resume={shlex.quote(str(stop.checkpoint))}"
        print(f"recbole-hns: stopped;{saved if stop.checkpoint else ''}", file=sys.stderr)
        return 128 + stop.signum
    except KeyboardInterrupt as stop:
        print(f"recbole-hns: stopped. {stop}".rstrip(), file=sys.stderr)
        return 130
    if result is not None:
        print(result_table(result))
    return 0
