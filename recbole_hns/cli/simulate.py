"""``recbole-hns simulate``: the paper's two simulation figures, each from one command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from recbole_hns.bridge.keys import SEEDS, Folder
from recbole_hns.cli.parser import Parser, add_trust
from recbole_hns.errors import Error
from recbole_hns.files import a_path, make_folder
from recbole_hns.report import theory_figures
from recbole_hns.sampling import Method, rules
from recbole_hns.sampling.methods import setting_kinds, symbol
from recbole_hns.settings.kinds import MOST, about_of, convert, whole
from recbole_hns.theory import correlation, sampling

MOST_DRAWS = 10_000_000
M, N = 5, 200  # where it is another setting that is varied


def make_parser() -> Parser:
    """The two figures' options."""
    parser = Parser(
        prog="recbole-hns simulate",
        description="Redraw the paper's simulation figures.",
        allow_abbrev=False,
    )
    figures = parser.add_subparsers(title="figures", required=True, metavar="correlation|sampling")
    add_correlation(figures)
    add_sampling(figures)
    return parser


def add_correlation(figures: Any) -> None:
    """The options of ``correlation``."""
    parser = figures.add_parser(
        "correlation",
        help="how Top-K metrics follow OPAUC(β), by random permutations",
        allow_abbrev=False,
    )
    parser.add_argument("--n_pos", type=int, default=200, help="positives N₊ (200)")
    parser.add_argument("--n_neg", type=int, default=800, help="negatives N₋ (800)")
    parser.add_argument("--permutations", type=int, default=100_000, help="random rankings (100000)")
    parser.add_argument("--topk", type=_numbers(int), default=[5, 10, 20, 50, 100, 200], help="5,10,…")
    parser.add_argument("--n_betas", type=int, default=40, help="points of the logarithmic grid (40)")
    _add_common(parser, run_correlation)


def add_sampling(figures: Any) -> None:
    """The options of ``sampling``; what is varied is told as the samplers' settings declare it."""
    parser = figures.add_parser(
        "sampling", help="which negatives a sampler really draws, by score rank", allow_abbrev=False
    )
    parser.add_argument(
        "--checkpoint", type=a_path, help="a trained model's .pth; generated embeddings if absent"
    )
    add_trust(parser)
    parser.add_argument("--user", help="the user of the pair, in the data set's own ids")
    parser.add_argument("--item", help="the positive of the pair, in the data set's own ids")
    parser.add_argument("--draws", type=int, default=10_000, help="simulated draws (10000)")
    for key, kind, default, at in (
        ("M", int, [1, 5, 20], f"N = {N}"),
        ("N", int, [50, 200, 800], f"M = {M}"),
        ("rho", float, [0.1, 1.0, 10.0], f"N = {N}"),
    ):
        about = about_of(setting_kinds()[key]).text
        text = f"values of {symbol(key)}, {about}, at {at} ({','.join(f'{v:g}' for v in default)})"
        parser.add_argument(f"--{key}", type=_numbers(kind), default=default, help=text)
    _add_common(parser, run_sampling)


def _add_common(parser: argparse.ArgumentParser, function: Callable[..., None]) -> None:
    parser.add_argument("--seed", type=int, default=2020, help="of everything random (2020)")
    parser.add_argument(
        "--output", type=a_path, default=Path("simulation"), help="folder for CSV and PNG (simulation)"
    )
    parser.set_defaults(function=function)


def _check_common(options: argparse.Namespace) -> None:
    convert("seed", options.seed, whole(0, SEEDS))
    convert("output", str(options.output), Folder)


def _numbers(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    def parse(text: str) -> list[Any]:
        return [kind(part) for part in text.strip("[]() ").split(",") if part.strip()]

    parse.__name__ = f"comma-separated {getattr(kind, '__name__', '')}"
    return parse


def run_correlation(options: argparse.Namespace) -> None:
    """Print each curve's best β and its correlation next to AUC's; write the CSV and the figure."""
    _check_common(options)
    result = correlation(
        options.n_pos, options.n_neg, options.permutations, options.topk, options.n_betas, options.seed
    )
    make_folder(options.output)
    result.write_csv(options.output / "correlation.csv")
    theory_figures.plot_correlation(result, options.output / "correlation.png")
    print(f"{'metric':<14} {'best β':>8} {'correlation':>12} {'AUC':>7}")
    for metric, k, beta, value, auc in result.rows():
        print(f"{f'{metric}@{k}':<14} {beta:>8.4f} {value:>12.3f} {auc:>7.3f}")
    print(f"written: {options.output}/correlation.csv, {options.output}/correlation.png")


def run_sampling(options: argparse.Namespace) -> None:
    """Print how much probability the hardest negatives get; write the CSV and the figure."""
    _check_common(options)
    convert("draws", options.draws, whole(1, MOST_DRAWS))
    settings = varied(options.M, options.N, options.rho)
    curves = sampling.sampling_curves(_pair(options), settings, options.draws)
    make_folder(options.output)
    sampling.write_csv(curves, options.output / "sampling.csv")
    theory_figures.plot_sampling(curves, options.output / "sampling.png")
    print(f"{'sampler':<22} {'top 1 %':>8} {'top 10 %':>9} {'off the exact form':>19}")
    for curve in {curve.label: curve for curve in curves}.values():
        n_neg = len(curve.simulated)
        at = [curve.simulated[max(0, round(share * n_neg) - 1)] for share in (0.01, 0.1)]
        off = "" if curve.exact is None else f"{abs(curve.simulated - curve.exact).max():.4f}"
        print(f"{curve.label:<22} {at[0]:>8.3f} {at[1]:>9.3f} {off:>19}")
    print(f"written: {options.output}/sampling.csv, {options.output}/sampling.png")


def varied(Ms: Sequence[int], Ns: Sequence[int], rhos: Sequence[float]) -> dict[str, list[Method]]:
    """The methods of each panel: M and N of DNS, ρ of Softmax-v."""
    for key, values in (("M", Ms), ("N", Ns), ("rho", rhos)):
        if not values:
            raise Error(f"{key} has no value: give one or more, e.g. --{key}=1,5.")
    for value in Ms:
        convert("M", value, whole(1, N), why=f"it is varied at N = {N}")
    for value in Ns:
        convert("N", value, whole(M, MOST), why=f"it is varied at M = {M}")
    return {
        symbol("M"): [Method(rule=rules.DNS(M=value), N=N) for value in Ms],
        symbol("N"): [Method(rule=rules.DNS(M=M), N=value) for value in Ns],
        symbol("rho"): [Method(rule=rules.SoftmaxV(rho=value), N=N) for value in rhos],
    }


def _pair(options: argparse.Namespace) -> sampling.Pair:
    """A pair of a checkpoint's training set, or of generated embeddings."""
    if options.checkpoint:
        from recbole_hns.runs.artifact import open_artifact
        from recbole_hns.runs.pair import pair_of

        artifact = open_artifact(options.checkpoint, trust=options.trust_checkpoint)
        return pair_of(artifact, options.seed, options.user, options.item)
    if options.user or options.item:
        raise Error("--user and --item name a pair of a data set: give --checkpoint too.")
    return sampling.generated_pair(seed=options.seed)


def main(arguments: Sequence[str]) -> None:
    """Run ``recbole-hns simulate …``."""
    options = make_parser().parse_args(arguments)
    options.function(options)
