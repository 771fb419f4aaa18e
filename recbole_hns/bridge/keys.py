"""RecBole's own settings, as kinds: what each may be, and what it is for.

RecBole finds a bad value when it comes to it, after data was loaded and folders were made, in a
traceback or not at all. Here every one is looked up before anything is done. What depends on the data is
checked in :mod:`recbole_hns.runs.checks`.
"""

from __future__ import annotations

import codecs
import importlib.util
import os
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from types import GenericAlias
from typing import Annotated, Any, Literal

from msgspec import Meta

from recbole_hns.errors import Error
from recbole_hns.files import a_path
from recbole_hns.settings.dialect import parse_value
from recbole_hns.settings.kinds import (
    LARGE,
    Fits,
    Flag,
    Kind,
    Rate,
    Share,
    Text,
    convert,
    is_number,
    is_text,
    is_whole,
    mapping,
    number,
    one_or_list,
    optional,
    setting,
    whole,
    word,
)
from recbole_hns.settings.words import shown

SEEDS = 2**32 - 1  # NumPy takes no larger seed
WIDEST = 2**16  # of vectors and layers
DEEPEST = 100  # of layers, heads, hops and the like
FASTEST = 1000.0  # of learning rates and weight decays; beyond, numbers overflow


# ----------------------------------------------------------------------------------- tests of values


def is_path(value: Any) -> bool:
    """What can be the name of a file."""
    return is_text(value) and max(map(len, value.split("/"))) < 200


def _is_interval(value: Any) -> bool:
    """RecBole's intervals, e.g. ``[5,inf)`` or ``[1,2];(4,9]``, with their ends in order."""
    one = r"\s*([-+]?(?:inf|\d+\.?\d*(?:e[-+]?\d+)?))\s*"
    for part in str(value).split(";"):
        ends = re.fullmatch(rf"\s*[\[(]{one},{one}[\])]\s*", part, re.IGNORECASE)
        if ends is None or float(ends[1]) > float(ends[2]):
            return False
    return True


def _is_value_filter(value: Any) -> bool:
    """An interval of numbers, or a list of tokens."""
    tokens = isinstance(value, list) and value and all(isinstance(token, str) for token in value)
    return bool(tokens) or _is_interval(value)


def _is_folder(value: Any) -> bool:
    """A path that is a folder that can be written to, or could become one."""
    if not is_path(value):
        return False
    path = a_path(value).absolute()
    nearest = next(place for place in (path, *path.parents) if os.path.lexists(place))
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _is_codec(value: Any) -> bool:
    try:
        return codecs.lookup(value) is not None
    except (LookupError, ValueError):
        return False


def _is_clipping(value: Any) -> bool:
    """The arguments of torch's ``clip_grad_norm_``."""
    if not set(value) <= {"max_norm", "norm_type"}:
        return False
    return "max_norm" in value and all(is_number(one) and one > 0 for one in value.values())


def _is_discretization(value: Any) -> bool:
    if not isinstance(value, Mapping) or value.get("method") not in ("ED", "LD"):
        return False
    return value["method"] == "LD" or (is_whole(value.get("bucket")) and 1 <= value["bucket"] <= LARGE)


def _is_gpu_id(value: Any) -> bool:
    ids = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return not isinstance(value, bool) and re.fullmatch(r"(\d{1,3}(,\s*\d{1,3})*)?", ids) is not None


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


def _list_of_text(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


# ----------------------------------------------------------------------------------- kinds

PathText = Annotated[str, Fits("a path", is_path)]
Folder = Annotated[str, Fits("a folder that can be written to", _is_folder)]
Columns = mapping(
    "a mapping from a file's suffix to a list of its columns, e.g. {'inter': ['user_id', 'item_id']}",
    lambda v: v == "*" or _list_of_text(v),
)
Interval = Annotated[
    str | list[float] | None,
    Fits("an interval such as [5,inf), or None", lambda v: v is None or _is_interval(v)),
]
Names = Annotated[list[str], Fits("a list of columns", _list_of_text)]

EVAL_ARGS: dict[str, Kind] = {
    "split": Annotated[
        dict[str, Any],
        Fits(
            "{'RS': [0.8, 0.1, 0.1]}, {'TS': [0.8, 0.1, 0.1]} or {'LS': 'valid_and_test'}, 'valid_only' "
            "or 'test_only', and the first of three shares more than 0",
            _is_split,
        ),
    ],
    "group_by": optional(word("user", "none")),
    "order": Annotated[str, Fits("RO (random) or TO (by time)", lambda v: v in ("RO", "TO"))],
    "mode": Annotated[
        Any,
        Fits(
            "full, uniN, popN (N a whole number from 1) or labeled, or {'valid': …, 'test': …} of these",
            _is_mode,
        ),
    ],
}


def _check_eval_args(value: Any, origin: str) -> None:
    if not isinstance(value, Mapping) or not set(value) <= set(EVAL_ARGS):
        raise Error(
            f"eval_args={shown(value)} is not allowed: it is a mapping of {', '.join(EVAL_ARGS)}."
        )
    for key, part in value.items():
        convert(f"eval_args {key}", part, EVAL_ARGS[key], origin)


# ----------------------------------------------------------------------------------- the table

ENVIRONMENT: dict[str, Kind] = {
    "gpu_id": Annotated[Any, Fits("the numbers of GPUs, e.g. 0 or 0,1", _is_gpu_id), setting("GPUs")],
    "worker": Annotated[whole(0, 64), setting("processes that load data")],
    "use_gpu": Annotated[Flag, setting("whether to use a GPU")],
    "seed": Annotated[whole(0, SEEDS), setting("everything random derives from it")],
    "reproducibility": Annotated[Flag, setting("whether torch is to be deterministic")],
    "state": Annotated[
        optional(word("INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL")), setting("level of the log")
    ],
    "data_path": Annotated[PathText, setting("folder that holds the data sets' folders")],
    "checkpoint_dir": Annotated[Folder, setting("folder of checkpoints")],
    "show_progress": Annotated[Flag, setting("whether to show a bar")],
    "save_dataset": Annotated[Flag, setting("whether to save the filtered data set")],
    "dataset_save_path": Annotated[optional(PathText), setting("a saved data set to load")],
    "save_dataloaders": Annotated[Flag, setting("whether to save the split data")],
    "dataloaders_save_path": Annotated[optional(PathText), setting("saved loaders to load")],
    "log_wandb": Annotated[
        bool,
        Fits(
            "false, or true where the package wandb is installed",
            lambda v: v is False or importlib.util.find_spec("wandb") is not None,
        ),
        setting("whether to log to Weights & Biases"),
    ],
    "wandb_project": Annotated[Text, setting("project there")],
    "encoding": Annotated[
        optional(Annotated[str, Fits("an encoding that Python knows, e.g. utf-8", _is_codec)]),
        setting("of the data's files"),
    ],
    "shuffle": Annotated[Flag, setting("whether to shuffle the training data each epoch")],
}
TRAINING: dict[str, Kind] = {
    "epochs": Annotated[whole(0), setting("at most; 0 tests the model as it begins")],
    "train_batch_size": Annotated[whole(1), setting("positives per step")],
    "eval_step": Annotated[whole(0), setting("epochs between two validations; 0: none")],
    "stopping_step": Annotated[whole(0), setting("validations without a new best before it stops")],
    "learner": Annotated[
        word("adam", "adamw", "sgd", "adagrad", "rmsprop", "sparse_adam"), setting("optimiser")
    ],
    "learning_rate": Annotated[
        float,
        Meta(gt=0, le=FASTEST),
        Fits(f"greater than 0 and at most {FASTEST:g}", lambda v: True),
        setting("learning rate", search=(0.001, 0.003, 0.01)),
    ],
    "weight_decay": Annotated[Rate, setting("L2 penalty on all parameters")],
    "clip_grad_norm": Annotated[
        optional(
            Annotated[
                dict[str, Any],
                Fits("a mapping with max_norm, e.g. {'max_norm': 5, 'norm_type': 2}", _is_clipping),
            ]
        ),
        setting("clips the gradient"),
    ],
    "loss_decimal_place": Annotated[whole(0, 20), setting("of losses in the log")],
    "require_pow": Annotated[Flag, setting("whether reg_weight is on squared norms")],
    "enable_amp": Annotated[Flag, setting("mixed precision")],
    "enable_scaler": Annotated[Flag, setting("scales gradients in mixed precision")],
    "transform": Annotated[
        optional(
            word("mask_itemseq", "inverse_itemseq", "crop_itemseq", "reorder_itemseq", "user_defined")
        ),
        setting("changes batches"),
    ],
}
EVALUATION: dict[str, Kind] = {
    "metrics": Annotated[one_or_list(Text, "a metric, or a list of them"), setting("what is evaluated")],
    "topk": Annotated[
        one_or_list(whole(1), "a whole number of at least 1, or a list of such"), setting("K of metrics")
    ],
    "valid_metric": Annotated[Text, setting("what decides on validation")],
    "valid_metric_bigger": Annotated[Flag, setting("set by the metric")],
    "eval_batch_size": Annotated[whole(1), setting("scores per evaluation batch")],
    "metric_decimal_place": Annotated[whole(0, 20), setting("of metrics")],
    "repeatable": Annotated[Flag, setting("whether what was taken can be taken again")],
}
DATA: dict[str, Kind] = {
    "field_separator": Annotated[
        str, Fits("one or more characters", lambda v: v != ""), setting("between columns")
    ],
    "seq_separator": Annotated[
        str, Fits("one or more characters", lambda v: v != ""), setting("within sequences")
    ],
    "USER_ID_FIELD": Annotated[Text, setting("name of the column of users")],
    "ITEM_ID_FIELD": Annotated[Text, setting("name of the column of items")],
    "*_FIELD": Annotated[optional(Text), setting("name of a column")],
    "NEG_PREFIX": Annotated[Text, setting("of columns of negatives")],
    "LIST_SUFFIX": Annotated[Text, setting("of columns of sequences")],
    "MAX_ITEM_LIST_LENGTH": Annotated[whole(1, 100_000), setting("items of a sequence")],
    "seq_len": Annotated[
        mapping("a mapping from a column to its longest sequence", lambda v: is_whole(v) and v >= 1),
        setting("lengths of sequences"),
    ],
    "threshold": Annotated[
        mapping("a mapping from a column to where positive begins", is_number), setting("of labels")
    ],
    "numerical_features": Annotated[Names, setting("columns of numbers")],
    "load_col": Annotated[Columns, setting("columns to read, by file")],
    "unload_col": Annotated[Columns, setting("columns not to read")],
    "unused_col": Annotated[Columns, setting("columns read and dropped")],
    "additional_feat_suffix": Annotated[
        optional(one_or_list(Text, "a file's suffix, or a list of them")), setting("further files")
    ],
    "rm_dup_inter": Annotated[
        Any,
        Fits("first, last, False or None", lambda v: v is False or v in ("first", "last", None)),
        setting("which of repeated interactions stays"),
    ],
    "val_interval": Annotated[
        mapping(
            "a mapping from a column to an interval or a list of tokens, e.g. {'rating': '[4,inf)'}",
            _is_value_filter,
        ),
        setting("rows to keep, by value"),
    ],
    "*_num_interval": Annotated[Interval, setting("users or items to keep, by their interactions")],
    "alias_of_*": Annotated[optional(Names), setting("columns that share ids")],
    "preload_weight": Annotated[
        mapping("a mapping from a column of ids to one of vectors", is_text), setting("vectors given")
    ],
    "normalize_field": Annotated[optional(Names), setting("columns to scale to [0, 1]")],
    "normalize_all": Annotated[optional(Flag), setting("whether all of them are")],
    "discretization": Annotated[
        mapping(
            "a mapping from a column to {'method': 'LD'} or {'method': 'ED', 'bucket': 10}",
            _is_discretization,
        ),
        setting("how numbers become classes"),
    ],
    "benchmark_filename": Annotated[
        optional(
            Annotated[
                list[str],
                Fits(
                    "the suffixes of training, validation and test, e.g. ['train', 'valid', 'test']",
                    lambda v: len(v) == 3 and all(map(is_text, v)),
                ),
            ]
        ),
        setting("parts that come in files of their own"),
    ],
}
RECBOLE: dict[str, Kind] = {**ENVIRONMENT, **TRAINING, **EVALUATION, **DATA}

OURS: dict[str, Kind] = {  # settings of runs that RecBole does not have
    "sampler": Annotated[Text, setting("a method that `recbole-hns samplers` lists")],
    "hns_backend": Annotated[
        Literal["auto", "numba", "torch"], setting("numba (CPU), torch (any device)")
    ],
    "lr_step_size": Annotated[
        optional(whole(1)), setting("epochs between two decays of the learning rate")
    ],
    "lr_gamma": Annotated[
        float, Fits("greater than 0 and at most 1e+30", lambda v: 0 < v <= 1e30), setting("of a decay")
    ],
    "result_dir": Annotated[optional(Folder), setting("where result.json goes; ~ for nowhere")],
    "refit": Annotated[Flag, setting("train on training and validation part, test the last epoch")],
    "split_seed": Annotated[optional(whole(0, SEEDS)), setting("of RecBole's random split")],
    "reg_weight": Annotated[
        Rate,
        setting("on the squared norms of the rows that a pair names", search=(0.01, 0.02, 0.05, 0.1)),
    ],
}
_Part = Annotated[float, Meta(gt=0, le=1), Fits("greater than 0 and at most 1", lambda v: True)]
MEASURED: dict[str, Kind] = {  # what OPAUC's family is measured at
    "opauc_beta": Annotated[
        optional(one_or_list(_Part, "greater than 0 and at most 1, or a list of such")),
        setting("false positive rates of OPAUC(β)"),
    ],
    "opauc_k": Annotated[
        optional(one_or_list(whole(1), "a whole number of at least 1, or a list of such")),
        setting("K of OPAUC(K/n₋)"),
    ],
    "llpauc_alpha": Annotated[optional(_Part), setting("true positive rate of LLPAUC")],
}

Size, Deep = whole(1, WIDEST), whole(1, DEEPEST)
AboveZero = Annotated[float, Meta(gt=0), Fits("greater than 0", lambda v: True)]

# The models' own settings, by what RecBole's authors call them; of a list, every member.
# n_layers=0 is a LightGCN without graph.
MODELS: dict[str, Kind] = {
    "n_layers": whole(0, DEEPEST),
    "order": whole(1, 2),
    "global_ratio": number(1e-30, 1, "greater than 0 and at most 1"),
    **dict.fromkeys(("*_size", "*_size_list", "*_dim", "*_dimension", "layers", "low_rank"), Size),
    **dict.fromkeys(("*layers", "*_layer", "*_num", "n_heads", "num_heads", "*_hops", "n_hop"), Deep),
    **dict.fromkeys(("n_iter*", "n_factors", "n_memory", "block_num", "step", "order_len"), Deep),
    **dict.fromkeys(("*dropout*", "drop_ratio", "mask_ratio", "ft_ratio"), Share),
    **dict.fromkeys(("ssl_temp", "ssl_tau", "temperature", "tau_ratio"), AboveZero),
}


# ----------------------------------------------------------------------------------- checking


def normal(key: str, value: Any) -> Any:
    """The value as RecBole has it: ``topk=5,10`` as a list, an interval ``[0,6]`` as a word."""
    if key in ("metrics", "topk"):
        if isinstance(value, str) and "," in value:
            return [parse_value(part.strip()) for part in value.split(",") if part.strip()]
        return list(value) if isinstance(value, tuple) else value
    if key in ("field_separator", "seq_separator") and isinstance(value, str):
        return value.replace("\\t", "\t")  # as a shell hands it over
    if key == "stopping_step" and is_whole(value):
        return min(value, LARGE)  # a number of many digits is how people write never
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2 and all(map(is_number, value))
    if is_pair and fnmatchcase(key, "*_num_interval"):
        return f"[{value[0]},{value[1]}]"  # a closed interval is written as YAML's lists are
    return value


def kind_of(key: str) -> Kind | None:
    """What a setting of RecBole's, or of runs, may be."""
    return _look_up(RECBOLE, key) or OURS.get(key)


def check(key: str, value: Any, default: Any, has_default: bool, origin: str) -> None:
    """Refuse a value by the table, else by the kind of RecBole's default."""
    if not _can_be_written(value):
        raise Error(f"{key}={shown(value)} is not allowed: it must be a value that can be logged.")
    if key == "eval_args":
        _check_eval_args(value, origin)
        return
    if has_default and value == default and type(value) is type(default):
        return
    kind = _look_up(RECBOLE, key) or (None if has_default else OURS.get(key))
    if kind is not None:
        if has_default or value is not None:
            convert(key, value, kind, origin)
    elif has_default:
        check_like(key, value, default, origin)


def check_like(key: str, value: Any, default: Any, origin: str = "") -> None:
    """Refuse a value of another kind than RecBole's default."""
    kind = like(default)
    if kind is None:
        return
    words = f"{_fits(kind).words} (RecBole's default is {shown(default)})"
    convert(key, value, Annotated[kind, Fits(words, _fits(kind).test)], origin)
    kind = _look_up(MODELS, key)
    if kind is not None and not isinstance(default, (bool, str)):
        for member in value if isinstance(default, list) else [value]:
            convert(key, member, kind, origin)


def like(default: Any) -> Kind | None:
    """The kind that a default of RecBole's is of."""
    if isinstance(default, bool):
        return Flag
    if is_whole(default):
        return Annotated[int, Fits("a whole number", lambda v: abs(v) <= LARGE)]
    if is_number(default):
        return Annotated[float, Fits("a number", lambda v: abs(v) <= 1e18)]  # torch takes no larger
    if isinstance(default, str):
        return Annotated[str, Fits("a word", str.isprintable)]
    member = like(default[0]) if isinstance(default, list) and default else None
    if member is None:
        return None
    fits, n = _fits(member), len(default)
    right_length: Callable[[int], bool]
    if isinstance(
        default[0], float
    ):  # a number for each of the model's parts, not a size for each layer
        words, right_length = f"a list of {n} numbers", n.__eq__
    else:
        words, right_length = f"a list of one or more, each {fits.words}", (1).__le__

    def test(value: Any) -> bool:
        members_fit = all(fits.test(one) and not isinstance(one, bool) for one in value)
        return bool(right_length(len(value))) and members_fit

    return Annotated[GenericAlias(list, (member.__origin__,)), Fits(words, test)]


def _fits(kind: Kind) -> Fits:
    fits: Fits = next(note for note in reversed(kind.__metadata__) if isinstance(note, Fits))
    return fits


def _look_up(kinds: Mapping[str, Kind], key: str) -> Kind | None:
    if key in kinds:
        return kinds[key]
    return next((kind for pattern, kind in kinds.items() if fnmatchcase(key, pattern)), None)


def _can_be_written(value: Any) -> bool:
    try:
        return str(value) is not None
    except ValueError:
        return False
