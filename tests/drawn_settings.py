"""Settings whose fate is known before they are tried: right ones, and right ones with one mistake.

What RecBole has as well is judged by RecBole's own ``Config``. Everything derives from one
``random.Random``: a seed and a number name a draw for ever.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recbole.config import Config
from recbole.utils import get_model

from recbole_hns import Error, HNSConfig
from recbole_hns.models.cards import has_pair_loss
from recbole_hns.sampling.methods import all_methods
from recbole_hns.settings.dialect import to_yaml

PAIRWISE = (
    *("BPR", "LightGCN", "NGCF", "SGL", "DGCF", "SimpleX", "NeuMF", "FISM", "LINE", "HGN"),
    *("SASRec", "GRU4Rec", "NARM", "STAMP", "Caser", "SINE", "FPMC", "NPE", "CKE", "CFKG", "KGAT"),
)
POINTWISE = {"NeuMF", "FISM"}  # these learn from single items: RecBole takes them, we cannot
SEQUENTIAL = {"SASRec", "GRU4Rec", "NARM", "STAMP", "Caser", "SINE", "FPMC", "NPE", "HGN"}
INF = "[5,inf)"

# Values that RecBole's documentation, or ours, says may be given.
RIGHT: dict[str, tuple[Any, ...]] = {
    "epochs": (0, 1, 300),
    "train_batch_size": (1, 2048, 10**7),
    "eval_batch_size": (1, 4096, 10**9),
    "learner": ("adam", "sgd", "adagrad", "rmsprop", "Adam"),
    "learning_rate": (1e-3, 0.01, 1),
    "eval_step": (0, 1, 5),
    "stopping_step": (0, 10, 10**30),
    "clip_grad_norm": (None, {"max_norm": 5}, {"max_norm": 5, "norm_type": 2}),
    "loss_decimal_place": (0, 4),
    "metric_decimal_place": (0, 4, 8),
    "weight_decay": (0.0, 0),
    "require_pow": (True, False),
    "enable_amp": (True, False),
    "enable_scaler": (False, True),
    "transform": (None,),
    "seed": (0, 2020, 4294967295),
    "reproducibility": (True, False),
    "state": ("INFO", "DEBUG", "ERROR", None),
    "use_gpu": (True, False),
    "gpu_id": (0, "0", "0,1", ""),
    "worker": (0, 4),
    "show_progress": (True, False),
    "save_dataset": (True, False),
    "dataset_save_path": (None, "saved/there-is-none.pth"),
    "dataloaders_save_path": (None, "dataloaders/"),
    "log_wandb": (False,),
    "wandb_project": ("recbole", "no"),
    "shuffle": (True, False),
    "encoding": ("utf-8", "latin-1", None),
    "data_path": ("dataset/", "elsewhere"),
    "checkpoint_dir": ("saved", "out/saved/"),
    "metrics": (["Recall", "MRR", "NDCG", "Hit", "Precision"], ["MRR", "ndcg"], ["MRR", "GAUC"], "MRR"),
    "topk": ([10], 10, [5, 10, 20]),
    "eval_args": (
        {"split": {"RS": [0.8, 0.1, 0.1]}, "order": "RO", "group_by": "user", "mode": "full"},
        {"split": {"RS": [8, 1, 1]}, "order": "TO", "mode": "uni100"},
        {"split": {"LS": "valid_and_test"}, "order": "TO", "mode": "pop100"},
        {"split": {"LS": "test_only"}, "group_by": "none", "mode": {"valid": "uni100", "test": "full"}},
        {"group_by": None, "mode": {"test": "full"}},
        {"order": "TO"},
    ),
    "RATING_FIELD": ("rating", None),
    "TIME_FIELD": ("timestamp",),
    "LABEL_FIELD": ("label",),
    "NEG_PREFIX": ("neg_",),
    "threshold": (None, {"rating": 3}),
    "load_col": (None, {"inter": ["user_id", "item_id", "timestamp"]}, {"inter": "*"}),
    "unload_col": (None, {"inter": ["rating"]}),
    "unused_col": (None, {"inter": ["rating"]}),
    "rm_dup_inter": (None, "first", "last", False),
    "val_interval": (None, {"rating": "[3,inf)"}, {"timestamp": "(0,1e9];[2e9,inf)"}),
    "filter_inter_by_user_or_item": (True, False),
    "user_inter_num_interval": (INF, "[0,inf)", None, "(1,9]"),
    "item_inter_num_interval": (INF, "[0,inf)", None),
    "alias_of_user_id": (None,),
    "preload_weight": (None,),
    "normalize_field": (None, ["rating"]),
    "normalize_all": (True, False, None),
    "benchmark_filename": (None,),
    "MAX_ITEM_LIST_LENGTH": (50, 1),
    "train_neg_sample_args": (
        {"distribution": "uniform", "sample_num": 1},
        {"distribution": "popularity", "sample_num": 5, "alpha": 0.5},
    ),
    "device": ("cpu", "cuda"),
    "eval_type": ("ranking",),
}
OURS: dict[str, tuple[Any, ...]] = {
    "hns_backend": ("auto", "numba", "torch"),
    "lr_step_size": (None, 1, 100),
    "result_dir": (None, "results"),
    "refit": (True, False),
    "split_seed": (None, 0, 7),
    "opauc_beta": (None, 0.1, [0.1, 1]),
}
# Keys whose wrong values RecBole finds late, or never: every one is to be named before anything is done.
WRONG: dict[str, tuple[Any, ...]] = {
    "epochs": (-1, 1.5, "ten", None, True),
    "train_batch_size": (0, -5, 2.5, "many"),
    "eval_batch_size": (0, "all"),
    "learner": ("adamax", 3, "", None),
    "learning_rate": (0, -1e-3, "fast", float("nan"), float("inf"), None),
    "eval_step": (-1, 0.5),
    "stopping_step": (-1, "never"),
    "clip_grad_norm": (5, {"norm": 5}, {"max_norm": -1}),
    "metric_decimal_place": (-1, 99),
    "seed": (-1, 2**32, "x"),
    "state": ("LOUD", 3),
    "use_gpu": ("perhaps", 3),
    "worker": (-1, 1000),
    "encoding": ("utf-99",),
    "metrics": ("Recal", ["MRR", "Nothing"], [], 3),
    "topk": (0, [5, -1], "ten", []),
    "eval_args": (
        *("full", {"splits": {}}, {"split": {"RS": [0, 1, 1]}}, {"split": {"XX": 1}}, {"order": "XO"}),
        *({"mode": "some"}, {"group_by": "item"}, {"mode": {"train": "full"}}),
    ),
    "load_col": (["user_id"], "all", {"inter": 3}),
    "rm_dup_inter": (True, "both", 0),
    "val_interval": ({"rating": "[4,1]"}, {"rating": 3}, "rating"),
    "user_inter_num_interval": ("5", "[7,6]", "five"),
    "benchmark_filename": (["train"], "train"),
    "USER_ID_FIELD": (None, "", 3),
    "hns_backend": ("cuda", 1),
    "lr_step_size": (0, "often"),
    "opauc_beta": (0, 2, [0.5, 0]),
    "sampler": ("dsn", "", 3),
    "pool": ("popular",),
    "pair_loss": ("bbr",),
    "loss_type": ("CE",),
}
MISSPELT = (
    "lerning_rate",
    "epoch",
    "smapler",
    "train_batchsize",
    "topkk",
    "MODEL_TYPE",
    "nn_layers",
    "é",
)
MODELS_WRONG = (
    "LightGNC",
    "bpr",
    "EASE",
    "Pop",
    "DMF",
    "MultiVAE",
    "CDAE",
    "LightGBM",
    "BERT4Rec",
    "FM",
    "",
)


@dataclass
class Draw:
    """Settings, and what is to become of them."""

    model: str
    typed: dict[str, Any]
    filed: dict[str, Any]  # what stands in a property file
    refused: str | None  # what the refusal is to name; None where they are right

    def write(self, folder: Path) -> list[str]:
        """The file, if there is one."""
        if not self.filed:
            return []
        (folder / "own.yaml").write_text(to_yaml(self.filed), "utf-8")
        return [str(folder / "own.yaml")]


class Draws:
    """Draws settings, half of them with one mistake."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def draw(self) -> Draw:
        """The next."""
        rng = self.rng
        right = self.right()
        if rng.random() < 0.5:
            return right
        return rng.choice((self.wrong_value, self.wrong_value, self.wrong_key, self.wrong_model))(right)

    def right(self) -> Draw:
        """A model that learns from pairs, up to six settings, and up to two of the sampler's."""
        rng = self.rng
        model = rng.choice([name for name in PAIRWISE if name not in POINTWISE])
        table = {**RIGHT, **OURS}
        settings = {key: rng.choice(table[key]) for key in rng.sample(sorted(table), rng.randint(0, 6))}
        if not settings.get("valid_metric"):
            settings["valid_metric"] = "MRR@10"
        if {"metrics", "topk"} & set(settings):
            settings["valid_metric"] = "MRR@10" if self._has_ten(settings) else "MRR@5"
        sampler = rng.choice([None, "softmax_v", "uniform", "popularity"])
        if sampler is not None:
            settings["sampler"] = sampler
            own = all_methods()[sampler].defaults({})
            settings.update({key: own[key] for key in rng.sample(sorted(own), min(2, len(own)))})
        if not has_pair_loss(get_model(model)):
            settings.pop("pair_loss", None)
        typed = {key: value for key, value in settings.items() if rng.random() < 0.5}
        filed = {key: value for key, value in settings.items() if key not in typed}
        return Draw(model, typed, filed, None)

    @staticmethod
    def _has_ten(settings: dict[str, Any]) -> bool:
        topk = settings.get("topk", [10])
        return 10 in (topk if isinstance(topk, list) else [topk])

    def wrong_value(self, draw: Draw) -> Draw:
        """One value that can be nothing."""
        rng = self.rng
        key = rng.choice(sorted(WRONG))
        if key == "loss_type":
            draw.model = rng.choice(("SASRec", "GRU4Rec", "NARM"))
        value = rng.choice(WRONG[key])
        for part in (draw.typed, draw.filed):
            part.pop(key, None)
            part.pop("lr_gamma", None)
        # A file may have values for other samplers, and the loss of a file for RecBole is replaced.
        in_file = rng.random() < 0.3 and key not in ("loss_type", "pool", "pair_loss")
        (draw.filed if in_file else draw.typed)[key] = value
        draw.refused = key
        return draw

    def wrong_key(self, draw: Draw) -> Draw:
        """One key that nothing has, or that another sampler has."""
        key = self.rng.choice((*MISSPELT, "M", "tau", "max_trials", "margin"))
        draw.typed[key] = 3
        if key in ("M", "tau", "max_trials", "margin"):
            sampler = {**draw.filed, **draw.typed}.get("sampler", "softmax_v")
            assert key not in all_methods()[sampler].defaults({})
            if draw.model == "SimpleX":  # which has a margin of its own
                draw.model = "BPR"
        draw.refused = key
        return draw

    def wrong_model(self, draw: Draw) -> Draw:
        """A model that there is not, or that learns from no pairs."""
        draw.model = self.rng.choice((*MODELS_WRONG, *sorted(POINTWISE)))
        draw.refused = draw.model or "model"
        for part in (draw.typed, draw.filed):  # a wish for the loss of a model that has none is another
            part.pop("pair_loss", None)
        return draw


def verdict(draw: Draw, files: list[str]) -> str | None:
    """What we say against it; None if nothing."""
    try:
        HNSConfig(draw.model, "ml-100k", files, draw.typed)
    except Error as error:
        return str(error)
    return None


def recboles_verdict(draw: Draw, files: list[str]) -> str | None:
    """What RecBole says against it, without what is ours alone; None if nothing."""
    typed = {key: value for key, value in copy.deepcopy(draw.typed).items() if key not in OURS}
    if draw.model in SEQUENTIAL:  # by default they learn by cross-entropy, which we replace
        typed["loss_type"] = "BPR"
    try:
        Config(draw.model, "ml-100k", files, typed)
    except Exception as error:
        return repr(error)
    return None


@dataclass
class Fate:
    """A draw and what became of it."""

    draw: Draw
    ours: str | None
    recboles: str | None

    @property
    def fault(self) -> str | None:
        """What is wrong with it, if anything is."""
        if self.ours is None:
            if self.draw.refused:
                return "wrongly accepted"
            return "wrongly accepted: RecBole refuses it" if self.recboles else None
        if self.draw.refused is None:
            return None if self.recboles else "wrongly refused"
        if "\n" in self.ours:
            return "not one line"
        return None if self.draw.refused in self.ours else "refused for something else"


def fates(seed: int, n: int, folder: Path) -> list[Fate]:
    """So many draws, each tried by both."""
    draws, found = Draws(seed), []
    for _ in range(n):
        draw = draws.draw()
        files = draw.write(folder)
        found.append(Fate(draw, verdict(draw, files), recboles_verdict(draw, files)))
    return found
