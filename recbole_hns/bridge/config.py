"""RecBole's configuration, out of layers whose every value knows where it is from."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from logging import getLogger
from pathlib import Path
from typing import Any

import recbole
from recbole.config import Config
from recbole.data.dataset import Dataset
from recbole.evaluator.base_metric import TopkMetric
from recbole.evaluator.register import metrics_dict
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.utils import EvaluatorType, InputType, ModelType, get_model

from recbole_hns.bridge import keys
from recbole_hns.bridge.install import install
from recbole_hns.bridge.metrics import METRICS, metric_keys, read_settings
from recbole_hns.bridge.properties import shipped
from recbole_hns.errors import Error
from recbole_hns.files import a_path
from recbole_hns.folders import recover
from recbole_hns.sampling.methods import Method, Named, named, owners, setting_kinds
from recbole_hns.settings.dialect import parse_value, read_command_line, read_yaml
from recbole_hns.settings.kinds import about_of, convert, is_number, is_text, told
from recbole_hns.settings.layers import COMMAND_LINE, Layer, Resolved, resolve
from recbole_hns.settings.words import a_letter_away, listed, nearest, shown

MODEL_ALIASES = {"MF": "BPR"}
_TREES = ("lightgbm", "xgboost")  # RecBole has them under these names
RECBOLE_PROPERTIES = Path(recbole.__file__).resolve().parent / "properties"

# What RecBole reads from a configuration without a default in its property files.
_LAUNCH_KEYS = {"model", "dataset", "config_files", "nproc", "world_size", "ip", "port", "offset"}
_LAUNCH_KEYS |= {"local_rank", "group_offset", "neg_sampling", "training_neg_sample_num", "encoding"}
_LAUNCH_KEYS |= {"device", "eval_type"}
_OPTIONS = ("nproc", "world_size", "ip", "port", "group_offset")
_PATHS = (
    *("data_path", "checkpoint_dir", "result_dir"),
    *("pre_model_path", "dataset_save_path", "dataloaders_save_path"),
)


class LayeredConfig(Config):
    """RecBole's configuration with the plugin's layers.

    Later layers win: RecBole's defaults < properties/overall.yaml < the sampler's defaults < model/ <
    MODEL-SAMPLER.yaml < dataset/ < the property file beside the data < ``below`` < the user's files <
    ``config_dict`` < ``command_line``. ``below`` is what a checkpoint or a search brings along; a layer may
    stand in the place of a file. Unlike RecBole's ``Config`` it looks at ``sys.argv`` only when that is
    handed over as ``command_line``, and evaluates no code in values.

    Raises:
        Error: for anything a user can put right, before any data is loaded.
    """

    internal_config_dict: dict[str, Any]  # what is known before the user says anything
    sampler: str
    dataset_class: type[Dataset] | None = None  # where it is not the one that RecBole has for the model

    def __init__(
        self,
        model: str | type[AbstractRecommender] | None = None,
        dataset: str | None = None,
        config_file_list: Sequence[str | Path | Layer] | None = None,
        config_dict: dict[str, Any] | None = None,
        command_line: Sequence[str] = (),
        below: Layer | None = None,
    ):
        install()
        files = [read_layer(file) for file in config_file_list or ()]
        typed = {key: _spelled(value) for key, value in (config_dict or {}).items()}
        self._user_layers = [
            *([] if below is None else [below]),
            *files,
            Layer("config_dict", typed),
            Layer(COMMAND_LINE, read_command_line(command_line)),
        ]
        self._from_files = {key: file.origin for file in files for key in file.values}
        self.given: Resolved = resolve(self._user_layers)
        self.notes: list[str] = []  # what the log is to say when there is one
        try:
            super().__init__(model, dataset, None, {})
        except Error:
            raise
        except (ValueError, TypeError, KeyError, NotImplementedError, RuntimeError) as error:
            # RecBole's own checks of the configuration.
            raise Error(" ".join(str(error).strip("'\"").split())) from error
        _check_metrics(self.final_config_dict)

    def __getstate__(self) -> dict[str, Any]:
        """For pickling, as Ray does: parts of the user's own may not be known yet where it is read."""
        return {key: value for key, value in self.__dict__.items() if key != "method"}

    @property
    def named(self) -> Named:
        """The sampler's entry in the registry."""
        return named(self.sampler)

    @cached_property
    def method(self) -> Method:
        """The pool, rule and loss of the run."""
        return self.named.build(self.final_config_dict)

    # ------------------------------------------------------------- what the user wrote

    def _load_config_files(self, file_list: Any) -> dict[str, Any]:
        return {}

    def _load_cmd_line(self) -> dict[str, Any]:
        return {}

    def _merge_external_config_dict(self) -> None:
        self.external_config_dict = dict(self.given.values)

    def _get_model_and_dataset(self, model: Any, dataset: Any) -> tuple[str, type, str]:
        model = model if model is not None else self.external_config_dict.get("model")
        dataset = dataset if dataset is not None else self.external_config_dict.get("dataset")
        if model is None:
            raise Error("no model is named: give one, e.g. --model=LightGCN.")
        if dataset is None:
            raise Error("no data set is named: give one, e.g. --dataset=ml-100k.")
        self.own_model = isinstance(model, type)
        if not self.own_model:
            model = MODEL_ALIASES.get(str(model), str(model))
            _known_model(model)
        dataset = str(dataset)
        if not is_text(dataset) or Path(dataset).name != dataset:
            raise Error(
                f"dataset={shown(dataset)} is not allowed: it is the name of a folder below data_path."
            )
        found: tuple[str, type, str] = super()._get_model_and_dataset(model, dataset)
        return found

    # ------------------------------------------------------------- our layers

    def _load_internal_config_dict(self, model: str, model_class: type, dataset: str) -> None:
        super()._load_internal_config_dict(model, model_class, dataset)
        recboles = self.internal_config_dict
        self._recbole_defaults = dict(recboles)
        if recboles.get("loss_type") == "CE":
            # RecBole's cross-entropy ranks against all items and knows no negatives.
            recboles["loss_type"] = "BPR"
        known = [Layer("RecBole's defaults", recboles), shipped("overall")]
        of_model = shipped(f"model/{model}")
        of_data = self._filtered(shipped(f"dataset/{dataset}"), known)
        if recboles["MODEL_TYPE"] != ModelType.GENERAL:
            # RecBole's other kinds of models have a split and columns that they cannot do without.
            columns = {k: v for k, v in of_data.values.items() if k not in ("eval_args", "load_col")}
            of_data = Layer(of_data.origin, columns)
        data_layers = [of_data, self._beside_the_data(dataset, [*known, of_data])]
        # Which sampler, pool and loss there are decides which settings there are.
        chosen = resolve([*known, of_model, *data_layers, *self._user_layers]).values
        self.sampler = named(chosen["sampler"]).name
        defaults = self.named.defaults(chosen)
        of_both = shipped(f"model/{model}-{self.sampler}")
        of_sampler = Layer(f"sampler={self.sampler}", defaults)
        self.known = resolve([*known, of_sampler, of_model, of_both, *data_layers])
        self.internal_config_dict = dict(self.known.values)
        if recboles["MODEL_TYPE"] == ModelType.SEQUENTIAL:
            self._read_times()

    def _filtered(self, of_data: Layer, known: list[Layer]) -> Layer:
        """Our preparation of a data set, without filters by columns that the user does not load."""
        chosen = resolve([*known, of_data, *self._user_layers]).values
        filters = of_data.values.get("val_interval")
        if not filters or "val_interval" in self.given.values:
            return of_data
        left_out = [column for column in filters if not _is_loaded(column, chosen)]
        if not left_out:
            return of_data
        self.notes.append(
            f"{of_data.origin} keeps rows by {listed(left_out)}, which load_col or unload_col leaves out: "
            "all rows are kept."
        )
        kept = {column: how for column, how in filters.items() if column not in left_out}
        return Layer(of_data.origin, {**of_data.values, "val_interval": kept or None})

    def _beside_the_data(self, dataset: str, lower: list[Layer]) -> Layer:
        folder = resolve([*lower, *self._user_layers]).values["data_path"]
        convert("data_path", folder, keys.PathText, self.given.origin("data_path"))
        recover(a_path(folder) / dataset)  # of a `convert --overwrite` that was killed
        file = a_path(folder) / dataset / f"{dataset}.yaml"
        self.beside_the_data = read_layer(file) if file.is_file() else Layer(str(file), {})
        return self.beside_the_data

    def _read_times(self) -> None:
        """Where no columns are named RecBole reads users and items; sequences also take the time.

        Parts that come in files of their own have the sequences as a column, whose items are the items.
        """
        known = self.internal_config_dict
        fields = {**known, **self.external_config_dict}
        columns = [fields[f"{name}_FIELD"] for name in ("USER_ID", "ITEM_ID", "TIME")]
        if fields.get("benchmark_filename"):
            columns.append(fields["ITEM_ID_FIELD"] + fields["LIST_SUFFIX"])
            known["alias_of_item_id"] = known["alias_of_item_id"] or columns[-1:]
        columns = [column for column in columns if column is not None]
        if known.get("load_col") == {"inter": ["user_id", "item_id"]}:
            known["load_col"] = {"inter": columns}

    def _get_final_config_dict(self) -> dict[str, Any]:
        final: dict[str, Any] = super()._get_final_config_dict()
        _refuse_options(self.given)
        self._refuse_unknown_keys()
        self._replace_cross_entropy(final)
        self._drop_parts_of_eval_args(final)
        final.update({key: keys.normal(key, value) for key, value in final.items()})
        for key, value in final.items():
            default, has = self._recbole_defaults.get(key), key in self._recbole_defaults
            if self._is_the_models(key):
                continue
            keys.check(key, value, default, has, self.origin(key))
        for key in _PATHS:
            if isinstance(final.get(key), str):
                final[key] = str(a_path(final[key]))
        self._check_known_metrics(final)
        self._check_loss(final)
        self.method = self._build_method(final)  # refused before anything is loaded
        _check_decay(final, self.given)
        self._note_what_has_no_effect()
        if final["rm_dup_inter"] is False:
            self.notes.append(
                "rm_dup_inter=False drops every pair that stands more than once, the first too, as in "
                "RecBole: leave it out to keep them all, or say first or last to keep one."
            )
        # Pairs come from RecBole's data preparation as they are; `sampler` adds the negatives.
        self.ignored_neg_sample_args = self.given.values.get("train_neg_sample_args")
        final["train_neg_sample_args"] = {"distribution": "uniform", "sample_num": 1}
        return final

    def _replace_cross_entropy(self, final: dict[str, Any]) -> None:
        """Read a file that says ``loss_type: CE``, as RecBole's do for sequences, as one that does not."""
        origin = self.given.origin("loss_type")
        if origin and final["loss_type"] == "CE" and self._learns_by_loss_type:
            final["loss_type"] = "BPR"
            self.notes.append(
                f"loss_type=CE (from {origin}) is replaced by BPR: cross-entropy ranks against all items "
                "and leaves a sampler nothing to choose."
            )

    def _note_what_has_no_effect(self) -> None:
        by = {"device": "use_gpu and gpu_id choose it", "eval_type": "it follows from metrics"}
        said = {*self.given.typed(), *self._from_files}
        self.notes += [
            f"{key} is not used: {why}, as in RecBole." for key, why in by.items() if key in said
        ]

    def _drop_parts_of_eval_args(self, final: dict[str, Any]) -> None:
        """Leave out, as RecBole does, what a file has in ``eval_args`` beside its four parts."""
        origin, value = self.given.origin("eval_args"), final["eval_args"]
        if not origin or not isinstance(value, Mapping):
            return
        strange = [key for key in value if key not in keys.EVAL_ARGS]
        if strange and not any(a_letter_away(str(key), keys.EVAL_ARGS) for key in strange):
            final["eval_args"] = {key: part for key, part in value.items() if key in keys.EVAL_ARGS}
            self.notes.append(f"eval_args (from {origin}) has no {listed(strange, 'or')}: not used.")

    def _check_loss(self, final: dict[str, Any]) -> None:
        if self._learns_by_loss_type and final.get("loss_type") not in (None, "BPR"):
            raise Error(
                f"loss_type={final['loss_type']} does not rank {self.model}'s positives above sampled "
                "negatives: set loss_type=BPR, or leave it out (pair_loss chooses among such losses)."
            )

    @property
    def _learns_by_loss_type(self) -> bool:
        """Whether a model learns from pairs where ``loss_type`` says so, as sequential ones do."""
        declared = getattr(self.model_class, "input_type", None)
        if declared is None:
            return True
        return declared == InputType.PAIRWISE and "loss_type" in self._recbole_defaults

    def _build_method(self, final: dict[str, Any]) -> Method:
        own = [key for key in self.named.keys(final) if key in final]
        kinds = self.named.kinds(final)
        values = {
            key: convert(key, final[key], kinds[key], self.origin(key), about_of(kinds[key]).text)
            for key in own
        }
        final.update(values)
        return self.named.build(values)

    def origin(self, key: str) -> str:
        """Where a setting is from; nothing where the user has just typed it."""
        return (self.given if key in self.given.values else self.known).origin(key)

    @property
    def settings(self) -> dict[str, Any]:
        """The sampler and everything that it is set to, for results and logs."""
        backend = self.final_config_dict["hns_backend"]
        return {"sampler": self.sampler, **self.method.settings, "hns_backend": backend}

    # ------------------------------------------------------------- keys

    def _is_the_models(self, key: str) -> bool:
        """Whether a key is one that a model class of the user's reads, whatever we call ours.

        Of a class without source, every key that is not near to a known one.
        """
        if not self.own_model or key in self._recbole_defaults:
            return False
        words = _words_in(self.model_class)
        if words is not None:
            return key in words
        known = {*self._recbole_defaults, *setting_kinds(), *keys.OURS, *keys.MEASURED, *_LAUNCH_KEYS}
        return key not in known and not nearest(key, known)

    def _refuse_unknown_keys(self) -> None:
        """What was typed must be known to this run; a file may serve other models and tools too."""
        here = set(self.internal_config_dict) | _LAUNCH_KEYS | set(keys.OURS) | set(keys.MEASURED)
        here |= set(self.named.keys({**self.internal_config_dict, **self.external_config_dict}))
        here |= {key for group in self.parameters.values() for key in group}
        here.discard("MODEL_TYPE")
        ours = set(setting_kinds())
        typed = [k for k in self.given.typed() if k not in here and not self._is_the_models(k)]
        everywhere = here | ours
        unknown = [key for key in typed if key not in ours]
        sentences = [self._whose(key) for key in typed if key in ours]
        if unknown:
            told_keys = listed(f"{key}{nearest(key, everywhere)}" for key in unknown)
            verb = "is not a setting" if len(unknown) == 1 else "are no settings"
            sentences.insert(0, f"{told_keys} {verb} of RecBole, of {self.model} or of recbole-hns")
        if sentences:
            raise Error("; ".join(sentences) + ".")
        self._look_at_files(everywhere)

    def _look_at_files(self, known: set[str]) -> None:
        in_files = [key for key in self._from_files if key not in known and not self._is_the_models(key)]
        if not in_files:
            return
        of_models = {
            key for file in (RECBOLE_PROPERTIES / "model").glob("*.yaml") for key in read_yaml(file)
        }
        strange = [key for key in in_files if key not in of_models and keys.kind_of(key) is None]
        for key in strange:
            meant = a_letter_away(key, known)  # of this run: a file may serve models of other packages
            if meant:
                raise Error(
                    f"{key} (from {self._from_files[key]}) is not a setting: it must be {meant}."
                )
        if strange:
            self.notes.append(
                f"not settings of RecBole or of recbole-hns, and not used: {listed(strange)}."
            )

    def _whose(self, key: str) -> str:
        has = ", ".join(self.named.keys({**self.internal_config_dict, **self.external_config_dict}))
        return (
            f"{key} is not a setting of sampler={self.sampler}, which has {has}: it goes with "
            f"{_few(owners(key))}"
        )

    def _check_known_metrics(self, final: dict[str, Any]) -> None:
        for metric in final["metrics"] if isinstance(final["metrics"], list) else [final["metrics"]]:
            if str(metric).lower() not in metrics_dict:
                raise Error(
                    f"{told('metrics', metric, self.origin('metrics'))} is not allowed: it must be one "
                    f"of {', '.join(metrics_dict)}, or a list of them{nearest(metric, metrics_dict)}."
                )


# ----------------------------------------------------------------------------------- helpers


def read_layer(file: str | Path | Layer) -> Layer:
    """A property file; a layer as it is."""
    return file if isinstance(file, Layer) else Layer(str(file), read_yaml(file))


def split_seed(config: Config) -> int:
    """The seed of RecBole's random split: that of the run, unless ``split_seed`` is set."""
    seed: int = config["seed"] if config["split_seed"] is None else config["split_seed"]
    return seed


def tell_notes(config: LayeredConfig) -> None:
    """Log what was noticed while the configuration was made."""
    for note in config.notes:
        getLogger().warning(note)
    if config.ignored_neg_sample_args is not None:
        getLogger().warning(
            f"train_neg_sample_args={config.ignored_neg_sample_args} is not used: `sampler` decides "
            "which negatives a model is trained with."
        )


def _spelled(value: Any) -> Any:
    """RecBole takes words that spell numbers, lists and mappings for these."""
    return parse_value(value) if isinstance(value, str) else value


def _few(names: list[str]) -> str:
    return " or ".join(names) if len(names) < 4 else ", ".join([*names[:3], "…"])


@functools.cache
def _words_in(model_class: type) -> frozenset[str] | None:
    """The words in the source of a model class and its bases: the keys it reads; None without source."""
    words: set[str] = set()
    for one in model_class.__mro__:
        if one.__module__.split(".")[0] in ("torch", "builtins"):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
        except (OSError, TypeError, SyntaxError):  # typed into a console
            return None
        constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
        words.update(value for value in constants if isinstance(value, str))
    return frozenset(words)


def _refuse_options(given: Resolved) -> None:
    """Refuse what only the launcher may set."""
    places = {key for key, origin in given.origins.items() if origin != "config_dict"}
    for key in _OPTIONS:
        if key in places:
            raise Error(f"{key} is not a setting but an option: give it on the command line.")
    for key in ("local_rank", "offset"):
        if key in places:
            raise Error(f"{key} is not a setting: every process gets its own from --nproc.")
    if "trust_checkpoint" in given.values:
        raise Error(
            "trust_checkpoint is not a setting: trust is given anew with each call, by "
            "--trust_checkpoint or trust_checkpoint=True, and never by a file."
        )


def _is_loaded(column: str, settings: dict[str, Any]) -> bool:
    """Whether RecBole reads a column, whichever file it is in."""

    def names(key: str) -> bool | None:
        files = settings.get(key)
        if not isinstance(files, Mapping):
            return None
        lists = (columns for columns in files.values() if isinstance(columns, (str, list, tuple)))
        return any(columns == "*" or column in columns for columns in lists)

    return names("load_col") is not False and not names("unload_col")


def _known_model(model: str) -> None:
    if model.lower() in _TREES:
        raise Error(
            f"{model} grows trees and ranks no pairs: choose a pairwise model such as BPR, LightGCN or "
            "SASRec (`recbole-hns models` lists them)."
        )
    try:
        get_model(model)
    except (ValueError, AttributeError, ImportError) as error:
        names = [file.stem for file in (RECBOLE_PROPERTIES / "model").glob("*.yaml")]
        if model in names:  # it exists, but needs a package that is not installed
            raise Error(f"model={model} cannot be loaded: {error}.") from error
        hint = nearest(model, [*names, *MODEL_ALIASES])
        raise Error(f"model={shown(model)[1:-1]} is unknown to RecBole{hint}.") from error


def _check_metrics(config: dict[str, Any]) -> None:
    """The metric that decides must be one that is evaluated: RecBole finds out after an epoch."""
    metrics, topk = config["metrics"], config["topk"]
    names = [str(m).lower() for m in (metrics if isinstance(metrics, list) else [metrics])]
    valid = str(config["valid_metric"]).lower()
    name = valid.partition("@")[0]
    read_settings(config)
    modes = config["eval_args"]["mode"].values()
    if config["eval_type"] == EvaluatorType.RANKING and "labeled" in modes:
        raise Error(
            f"eval_args mode=labeled has no negatives to rank {', '.join(names)} among: use full, "
            "uni100 or pop100."
        )
    if name not in names:
        raise Error(f"valid_metric={config['valid_metric']} is not evaluated: add it to metrics.")
    wanted: Iterable[str]
    if name in METRICS:
        wanted = list(metric_keys(config, name))
    elif issubclass(metrics_dict.get(name, object), TopkMetric):
        wanted = [f"{name}@{k}" for k in (topk if isinstance(topk, list) else [topk])]
    else:
        return
    if valid not in wanted:
        raise Error(
            f"valid_metric={config['valid_metric']} is not evaluated: choose one of {', '.join(wanted)}."
        )


def uses_sparse_adam(config: dict[str, Any]) -> bool:
    """Whether only the rows that a step touches are updated."""
    return str(config["learner"]).lower() == "sparse_adam"


def _check_decay(config: dict[str, Any], given: Resolved) -> None:
    reg_weight, weight_decay = config.get("reg_weight"), config["weight_decay"]
    if weight_decay and uses_sparse_adam(config):
        raise Error(
            f"weight_decay={weight_decay} has no effect with learner={config['learner']}, which leaves "
            "alone the rows that a step does not touch: use learner=adam, or weight_decay=0."
        )
    if weight_decay and reg_weight and not is_number(reg_weight):
        raise Error(
            f"reg_weight={shown(reg_weight)} cannot go with weight_decay={weight_decay}: RecBole "
            "multiplies the two; set weight_decay=0, or leave reg_weight out."
        )
    if config["lr_step_size"] is None and "lr_gamma" in given.typed():
        raise Error("lr_gamma does nothing without lr_step_size, the epochs between decays.")
