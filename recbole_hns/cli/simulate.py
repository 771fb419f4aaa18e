"""``recbole-hns simulate``: the paper's two simulation figures, each from one command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from recbole_hns.bridge.allowed import FOLDER, SEEDS, whole
from recbole_hns.cli.parser import add_trust
from recbole_hns.errors import Error
from recbole_hns.kernels import get_kernels
from recbole_hns.models.scorers import DotScorer, make_scorer
from recbole_hns.runs.artifact import find_model, load_trained
from recbole_hns.sampling import DNS, SoftmaxV
from recbole_hns.settings.checks import MOST, shown
from recbole_hns.theory import correlation, plot_correlation, sampling

MOST_DRAWS = 10_000_000


def add_parsers(commands) -> None:
    """Add ``correlation`` and ``sampling`` to a parser's sub-commands."""
    parser = commands.add_parser(
        "correlation",
        help="how Top-K metrics follow OPAUC(β), by random permutations",
        allow_abbrev=False,
    )
    parser.add_argument("--n_pos", type=int, default=200, help="positives N₊ (200)")
    parser.add_argument("--n_neg", type=int, default=800, help="negatives N₋ (800)")
    parser.add_argument("--permutations", type=int, default=100_000, help="random rankings (100000)")
    parser.add_argument("--topk", type=_numbers(int), default=[5, 10, 20, 50, 100, 200], help="5,10,…")
    parser.add_argument("--n_betas", type=int, default=40, help="points of the logarithmic grid (40)")
    _add_common(parser)
    parser.set_defaults(function=run_correlation)

    parser = commands.add_parser(
        "sampling", help="which negatives a sampler really draws, by score rank", allow_abbrev=False
    )
    parser.add_argument("--checkpoint", help="a trained model's .pth; generated embeddings if absent")
    add_trust(parser)
    parser.add_argument("--user", help="the user of the pair, in the data set's own ids")
    parser.add_argument("--item", help="the positive of the pair, in the data set's own ids")
    parser.add_argument("--draws", type=int, default=10_000, help="simulated draws (10000)")
    parser.add_argument("--M", type=_numbers(int), default=[1, 5, 20], help="values of M, at N = 200")
    parser.add_argument("--N", type=_numbers(int), default=[50, 200, 800], help="values of N, at M = 5")
    parser.add_argument(
        "--rho", type=_numbers(float), default=[0.1, 1.0, 10.0], help="values of ρ, at N = 200"
    )
    _add_common(parser)
    parser.set_defaults(function=run_sampling)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=2020)
    parser.add_argument("--output", type=Path, default=Path("simulation"), help="folder for CSV and PNG")


def _check_common(options: argparse.Namespace) -> None:
    whole(0, SEEDS).check("seed", options.seed)
    FOLDER.check("output", str(options.output))


def _numbers(kind: Callable) -> Callable[[str], list]:
    def parse(text: str) -> list:
        return [kind(part) for part in text.strip("[]() ").split(",") if part.strip()]

    parse.__name__ = f"comma-separated {kind.__name__}"
    return parse


def run_correlation(options: argparse.Namespace) -> None:
    """Print each curve's best β and its correlation next to AUC's; write the CSV and the figure."""
    _check_common(options)
    result = correlation(
        options.n_pos, options.n_neg, options.permutations, options.topk, options.n_betas, options.seed
    )
    options.output.mkdir(parents=True, exist_ok=True)
    result.write_csv(options.output / "correlation.csv")
    plot_correlation(result, options.output / "correlation.png")
    print(f"{'metric':<14} {'best β':>8} {'correlation':>12} {'AUC':>7}")
    for metric, k, beta, value, auc in result.rows():
        print(f"{f'{metric}@{k}':<14} {beta:>8.4f} {value:>12.3f} {auc:>7.3f}")
    print(f"written: {options.output}/correlation.csv, {options.output}/correlation.png")


def run_sampling(options: argparse.Namespace) -> None:
    """Print how much probability the hardest negatives get; write the CSV and the figure."""
    _check_common(options)
    whole(1, MOST_DRAWS).check("draws", options.draws)
    settings = _settings(options)
    if options.checkpoint:
        pair = load_pair(
            Path(options.checkpoint), options.user, options.item, options.seed, options.trust_checkpoint
        )
    elif options.user or options.item:
        raise Error("--user and --item name a pair of a data set: give --checkpoint too.")
    else:
        pair = sampling.generated_pair(seed=options.seed)
    curves = sampling.sampling_curves(pair, settings, options.draws, options.seed)
    options.output.mkdir(parents=True, exist_ok=True)
    sampling.write_csv(curves, options.output / "sampling.csv")
    sampling.plot(curves, options.output / "sampling.png")
    print(f"{'sampler':<22} {'top 1 %':>8} {'top 10 %':>9} {'off the exact form':>19}")
    for curve in {curve.label: curve for curve in curves}.values():
        n_neg = len(curve.simulated)
        at = [curve.simulated[max(0, round(share * n_neg) - 1)] for share in (0.01, 0.1)]
        off = "" if curve.exact is None else f"{abs(curve.simulated - curve.exact).max():.4f}"
        print(f"{curve.label:<22} {at[0]:>8.3f} {at[1]:>9.3f} {off:>19}")
    print(f"written: {options.output}/sampling.csv, {options.output}/sampling.png")


def _settings(options: argparse.Namespace) -> dict:
    for key in ("M", "N", "rho"):
        values = getattr(options, key)
        if not values or not all(0 < value <= MOST for value in values):
            raise Error(
                f"{key}={shown(values)} is not allowed: give one or more numbers greater than 0, and up "
                f"to {MOST}."
            )
    if max(options.M) > 200:
        raise Error(f"M={max(options.M)} is not allowed: M is varied at N = 200.")
    if min(options.N) < 5:
        raise Error(f"N={min(options.N)} is not allowed: N is varied at M = 5.")
    return {
        "M": [(DNS(M), 200) for M in options.M],
        "N": [(DNS(5), N) for N in options.N],
        "ρ": [(SoftmaxV(rho), 200) for rho in options.rho],
    }


def load_pair(file: Path, user: str | None, item: str | None, seed: int, trust: bool) -> sampling.Pair:
    """A pair of the data set that a checkpoint was trained on, with the checkpoint's vectors."""
    trained = load_trained(*find_model(file, trust), {"use_gpu": False}, {"use_gpu"})
    config, train_set = trained.config, trained.split()[0]._dataset
    model = trained.model(train_set)
    scorer = make_scorer(model, train_set, get_kernels("auto", torch.device("cpu")))
    if not isinstance(scorer, DotScorer):
        raise Error(
            f"{config['model']} has no vectors to score by: use a checkpoint of BPR or LightGCN."
        )
    try:
        user_id = None if user is None else int(train_set.token2id(train_set.uid_field, user))
        item_id = None if item is None else int(train_set.token2id(train_set.iid_field, item))
    except ValueError as error:
        raise Error(f"{error}: name a user and an item of the data set.") from error
    return sampling.choose_pair(*scorer.vectors(), train_set, seed, user_id, item_id)


def main(arguments: Sequence[str], parser_class: type[argparse.ArgumentParser]) -> None:
    """Run ``recbole-hns simulate …``."""
    parser = parser_class(
        prog="recbole-hns simulate",
        description="Redraw the paper's simulation figures.",
        allow_abbrev=False,
    )
    add_parsers(parser.add_subparsers(title="figures", required=True, metavar="correlation|sampling"))
    options = parser.parse_args(arguments)
    options.function(options)
