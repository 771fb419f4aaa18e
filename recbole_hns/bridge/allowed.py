"""What RecBole's settings may be.

RecBole finds a bad value when it comes to it, after data was loaded and folders were made, in a
traceback or not at all. Here every one is looked up in a table before anything is done. What depends
on the data is checked in :mod:`recbole_hns.fit`.
"""

from __future__ import annotations

import codecs
import importlib.util
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Callable

from recbole.evaluator.register import metrics_dict

from recbole_hns.errors import Error
from recbole_hns.settings.checks import is_number, is_whole, shown

SEEDS = 2**32 - 1  # NumPy takes no larger seed
LARGE = 2**31 - 1
WIDEST = 2**16  # of vectors and layers
DEEPEST = 100  # of layers, heads, hops and the like
FASTEST = 1000.0  # of learning rates and weight decays; beyond, numbers overflow


@dataclass(frozen=True)
class Allowed:
    """The values that a setting may have: in words, and as a test."""

    words: str
    test: Callable[[Any], bool]

    def check(self, key: str, value: Any) -> None:
        """Refuse a value that is not among them."""
        if not self.test(value):
            raise Error(f"{key}={shown(value)} is not allowed: it must be {self.words}.")


# ----------------------------------------------------------------------------------- kinds of values


def whole(low: int, high: int = LARGE) -> Allowed:
    """A whole number of a range."""
    return Allowed(f"a whole number from {low} to {high}", lambda v: is_whole(v) and low <= v <= high)


def real(low: float, high: float, words: str) -> Allowed:
    """A number of a range, both ends included."""
    return Allowed(words, lambda v: is_number(v) and low <= v <= high)


def optional(allowed: Allowed) -> Allowed:
    """The same, or nothing."""
    return Allowed(f"{allowed.words}, or None", lambda v: v is None or allowed.test(v))


def word(*words: str) -> Allowed:
    """One of a list, in capitals or not."""
    return Allowed(
        "one of " + ", ".join(words),
        lambda v: isinstance(v, str) and v.lower() in [one.lower() for one in words],
    )


def list_of(allowed: Allowed, words: str, least: int = 0) -> Allowed:
    """A list whose members are all allowed."""
    return Allowed(
        words, lambda v: isinstance(v, (list, tuple)) and len(v) >= least and all(map(allowed.test, v))
    )


def one_or_list(allowed: Allowed, words: str) -> Allowed:
    """A value, or a list of one or more."""
    several = list_of(allowed, words, least=1)
    return Allowed(words, lambda v: allowed.test(v) or several.test(v))


def mapping(words: str, test: Callable[[Any], bool]) -> Allowed:
    """A mapping from words to what passes a test."""

    def fits(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        return all(TEXT.test(key) and test(item) for key, item in value.items())

    return optional(Allowed(words, fits))


def _is_interval(value: Any) -> bool:
    """RecBole's intervals, e.g. ``[5,inf)`` or ``[1,2];(4,9]``, with their ends in order."""
    number = r"\s*([-+]?(?:inf|\d+\.?\d*(?:e[-+]?\d+)?))\s*"
    for part in str(value).split(";"):
        ends = re.fullmatch(rf"\s*[\[(]{number},{number}[\])]\s*", part, re.IGNORECASE)
        if ends is None or float(ends[1]) > float(ends[2]):
            return False
    return True


def _is_value_filter(value: Any) -> bool:
    """An interval of numbers, or a list of tokens."""
    tokens = isinstance(value, list) and value and all(isinstance(token, str) for token in value)
    return bool(tokens) or _is_interval(value)


def _is_folder(value: Any) -> bool:
    """A path that is a folder that can be written to, or could become one."""
    if not PATH.test(value):
        return False
    path = Path(value).absolute()
    nearest = next(place for place in (path, *path.parents) if os.path.lexists(place))
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _is_codec(value: Any) -> bool:
    try:
        return isinstance(value, str) and codecs.lookup(value) is not None
    except (LookupError, ValueError):
        return False


def _is_clipping(value: Any) -> bool:
    """The arguments of torch's ``clip_grad_norm_``."""
    if not isinstance(value, Mapping) or not set(value) <= {"max_norm", "norm_type"}:
        return False
    return "max_norm" in value and all(is_number(one) and one > 0 for one in value.values())


def _is_discretization(value: Any) -> bool:
    if not isinstance(value, Mapping) or value.get("method") not in ("ED", "LD"):
        return False
    return value["method"] == "LD" or (is_whole(value.get("bucket")) and 1 <= value["bucket"] <= LARGE)


def _is_gpu_id(value: Any) -> bool:
    ids = ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
    return not isinstance(value, bool) and re.fullmatch(r"(\d{1,3}(,\s*\d{1,3})*)?", ids) is not None


def _can_be_written(value: Any) -> bool:
    try:
        return str(value) is not None
    except ValueError:
        return False


WRITABLE = Allowed("a value that can be logged", _can_be_written)
TEXT = Allowed("a word", lambda v: isinstance(v, str) and v.strip() != "" and v.isprintable())
PATH = Allowed(
    "a path (Python expands no ~)",
    lambda v: TEXT.test(v) and max(map(len, v.split("/"))) < 200 and not v.startswith("~"),
)
FOLDER = Allowed("a folder that can be written to", _is_folder)
FILE = Allowed("a file that exists", lambda v: PATH.test(v) and Path(v).is_file())
FLAG = Allowed("true or false", lambda v: isinstance(v, bool))
FIELDS = list_of(TEXT, "a list of columns")
COLUMNS = mapping(
    "a mapping from a file's suffix to a list of its columns, e.g. {'inter': ['user_id', 'item_id']}",
    lambda v: v == "*" or FIELDS.test(v),
)
INTERVAL = optional(Allowed("an interval such as [5,inf)", _is_interval))
RATE = real(0, FASTEST, f"a number from 0 to {FASTEST:g}")


# ----------------------------------------------------------------------------------- eval_args


def _is_split(value: Any) -> bool:
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    ((kind, how),) = value.items()
    if kind == "LS":
        return how in ("valid_and_test", "valid_only", "test_only")
    shares = isinstance(how, list) and len(how) == 3 and all(is_number(v) and v >= 0 for v in how)
    return kind in ("RS", "TS") and shares and how[0] > 0


def _is_mode(value: Any) -> bool:
    sampled = re.compile(r"full|labeled|(uni|pop)[1-9]\d{0,5}")
    if isinstance(value, Mapping):
        return bool(value) and set(value) <= {"valid", "test"} and all(map(_is_mode, value.values()))
    return isinstance(value, str) and sampled.fullmatch(value) is not None


EVAL_ARGS = {
    "split": Allowed(
        "{'RS': [0.8, 0.1, 0.1]}, {'TS': [0.8, 0.1, 0.1]} or {'LS': 'valid_and_test'}, 'valid_only' or "
        "'test_only', and the first of three shares more than 0",
        _is_split,
    ),
    "group_by": optional(word("user", "none")),
    "order": Allowed("RO (random) or TO (by time)", lambda v: v in ("RO", "TO")),
    "mode": Allowed(
        "full, uniN, popN (N a whole number from 1) or labeled, or {'valid': …, 'test': …} of these",
        _is_mode,
    ),
}


def _check_eval_args(value: Any) -> None:
    if not isinstance(value, Mapping) or not set(value) <= set(EVAL_ARGS):
        raise Error(
            f"eval_args={shown(value)} is not allowed: it is a mapping of {', '.join(EVAL_ARGS)}."
        )
    for key, part in value.items():
        EVAL_ARGS[key].check(f"eval_args {key}", part)


# ----------------------------------------------------------------------------------- the table

RECBOLE: dict[str, Allowed] = {
    # environment
    "gpu_id": Allowed("the numbers of GPUs, e.g. 0 or 0,1", _is_gpu_id),
    "worker": whole(0, 64),
    "seed": whole(0, SEEDS),
    "refit": FLAG,
    "split_seed": optional(whole(0, SEEDS)),
    "state": optional(word("INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL")),
    "data_path": PATH,
    "checkpoint_dir": FOLDER,
    "result_dir": optional(FOLDER),
    "trust_checkpoint": FLAG,
    "dataset_save_path": optional(FILE),
    "dataloaders_save_path": optional(FILE),
    "log_wandb": Allowed(
        "false, or true where the package wandb is installed",
        lambda v: v is False or (v is True and importlib.util.find_spec("wandb") is not None),
    ),
    "wandb_project": TEXT,
    "encoding": optional(Allowed("an encoding that Python knows, e.g. utf-8", _is_codec)),
    # training
    "epochs": whole(0),  # 0 tests the model as it begins
    "train_batch_size": whole(1),
    "eval_batch_size": whole(1),
    "eval_step": whole(0),
    "stopping_step": whole(0),
    "learner": word("adam", "adamw", "sgd", "adagrad", "rmsprop", "sparse_adam"),
    "learning_rate": Allowed(
        f"greater than 0 and at most {FASTEST:g}", lambda v: RATE.test(v) and v > 0
    ),
    "weight_decay": RATE,
    "clip_grad_norm": optional(
        Allowed("a mapping with max_norm, e.g. {'max_norm': 5, 'norm_type': 2}", _is_clipping)
    ),
    "loss_decimal_place": whole(0, 20),
    "metric_decimal_place": whole(0, 20),
    "transform": optional(
        word("mask_itemseq", "inverse_itemseq", "crop_itemseq", "reorder_itemseq", "user_defined")
    ),
    # evaluation
    "metrics": one_or_list(
        Allowed("", lambda v: isinstance(v, str) and v.lower() in metrics_dict),
        f"one of {', '.join(metrics_dict)}, or a list of them",
    ),
    "topk": one_or_list(whole(1), "a whole number of at least 1, or a list of such"),
    "valid_metric": TEXT,
    # data
    "field_separator": Allowed("one or more characters", lambda v: isinstance(v, str) and v != ""),
    "seq_separator": Allowed("one or more characters", lambda v: isinstance(v, str) and v != ""),
    "*_FIELD": TEXT,
    "NEG_PREFIX": TEXT,
    "LIST_SUFFIX": TEXT,
    "MAX_ITEM_LIST_LENGTH": whole(1, 100_000),
    "seq_len": mapping("a mapping from a column to its longest sequence", whole(1).test),
    "threshold": mapping("a mapping from a column to where positive begins", is_number),
    "numerical_features": FIELDS,
    "load_col": COLUMNS,
    "unload_col": COLUMNS,
    "unused_col": COLUMNS,
    "additional_feat_suffix": optional(one_or_list(TEXT, "a file's suffix, or a list of them")),
    "rm_dup_inter": optional(Allowed("first or last", lambda v: v in ("first", "last"))),
    "val_interval": mapping(
        "a mapping from a column to an interval or a list of tokens, e.g. {'rating': '[4,inf)'}",
        _is_value_filter,
    ),
    "*_num_interval": INTERVAL,
    "alias_of_*": optional(FIELDS),
    "preload_weight": mapping("a mapping from a column of ids to one of vectors", TEXT.test),
    "normalize_field": optional(FIELDS),
    "normalize_all": optional(FLAG),
    "discretization": mapping(
        "a mapping from a column to {'method': 'LD'} or {'method': 'ED', 'bucket': 10}",
        _is_discretization,
    ),
    "benchmark_filename": optional(
        Allowed(
            "the three suffixes of training, validation and test, e.g. ['train', 'valid', 'test']",
            lambda v: isinstance(v, list) and len(v) == 3 and all(map(TEXT.test, v)),
        )
    ),
}

SIZE, COUNT = whole(1, WIDEST), whole(1, DEEPEST)
SHARE = Allowed("at least 0 and below 1", lambda v: is_number(v) and 0 <= v < 1)
ABOVE_ZERO = Allowed("greater than 0", lambda v: is_number(v) and v > 0)

# The models' own settings, by what RecBole's authors call them; of a list, every member.
# n_layers=0 is a LightGCN without graph.
MODELS: dict[str, Allowed] = {
    "n_layers": whole(0, DEEPEST),
    "order": whole(1, 2),
    "global_ratio": Allowed("greater than 0 and at most 1", lambda v: is_number(v) and 0 < v <= 1),
    **dict.fromkeys(("*_size", "*_size_list", "*_dim", "*_dimension", "layers", "low_rank"), SIZE),
    **dict.fromkeys(("*layers", "*_layer", "*_num", "n_heads", "num_heads", "*_hops", "n_hop"), COUNT),
    **dict.fromkeys(("n_iter*", "n_factors", "n_memory", "block_num", "step", "order_len"), COUNT),
    **dict.fromkeys(("*dropout*", "drop_ratio", "mask_ratio", "ft_ratio"), SHARE),
    **dict.fromkeys(("ssl_temp", "ssl_tau", "temperature", "tau_ratio"), ABOVE_ZERO),
}


# What our property files add to models of RecBole that have no such setting.
ADDED: dict[str, Allowed] = {"reg_weight": RATE}


def check_settings(final: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Refuse the first setting that cannot be: by the table, else by the kind of RecBole's default.

    ``defaults`` are RecBole's for the model.
    """
    for key, value in final.items():
        WRITABLE.check(key, value)
        allowed = _look_up(RECBOLE, key)
        if key == "eval_args":
            _check_eval_args(value)
        elif key in defaults and value == defaults[key] and type(value) is type(defaults[key]):
            continue
        elif allowed is not None:
            if key in defaults or value is not None:
                allowed.check(key, value)
        elif key in defaults:
            check_like(key, value, defaults[key])
        elif key in ADDED:
            ADDED[key].check(key, value)


def check_like(key: str, value: Any, default: Any) -> None:
    """Refuse a value of another kind than RecBole's default."""
    kind = _kind(default)
    if kind is None:
        return
    about = f"{kind.words} (RecBole's default is {shown(default)})"
    Allowed(about, kind.test).check(key, value)
    allowed = _look_up(MODELS, key)
    if allowed is not None and not isinstance(default, (bool, str)):
        for member in value if isinstance(default, list) else [value]:
            allowed.check(key, member)


def _kind(default: Any) -> Allowed | None:
    if isinstance(default, bool):
        return FLAG
    if is_whole(default):
        return Allowed("a whole number", lambda v: is_whole(v) and abs(v) <= LARGE)
    if is_number(default):
        return Allowed("a number", lambda v: is_number(v) and abs(v) <= 1e18)  # torch takes no larger
    if isinstance(default, str):
        return Allowed("a word", lambda v: isinstance(v, str) and v.isprintable())
    member = _kind(default[0]) if isinstance(default, list) and default else None
    if member is None:
        return None
    if isinstance(
        default[0], float
    ):  # a number for each of the model's parts, not a size for each layer
        n = len(default)
        several = list_of(member, f"a list of {n} numbers", least=n)
        return Allowed(several.words, lambda v: several.test(v) and len(v) == n)
    return list_of(member, f"a list of one or more, each {member.words}", least=1)


def _look_up(table: Mapping[str, Allowed], key: str) -> Allowed | None:
    if key in table:
        return table[key]
    return next((allowed for pattern, allowed in table.items() if fnmatchcase(key, pattern)), None)


def refuse_launch_keys(given: Iterable[str]) -> None:
    """Refuse what only the launcher may set."""
    for key in ("nproc", "world_size", "ip", "port", "group_offset"):
        if key in given:
            raise Error(f"{key} is not a setting but an option: give it on the command line.")
    for key in ("local_rank", "offset"):
        if key in given:
            raise Error(f"{key} is not a setting: every process gets its own from --nproc.")
