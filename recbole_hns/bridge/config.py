"""Configuration: RecBole's own, with our property layers and the sampler's checked spec."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import recbole
import yaml
from recbole.config import Config
from recbole.evaluator.base_metric import TopkMetric
from recbole.evaluator.register import metrics_dict
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.utils import EvaluatorType, ModelType, get_model

from recbole_hns.bridge.allowed import PATH, TEXT, check_settings, refuse_launch_keys
from recbole_hns.bridge.metrics import DEFAULTS as METRIC_DEFAULTS
from recbole_hns.bridge.metrics import METRICS, metric_keys, read_settings
from recbole_hns.errors import Error
from recbole_hns.models.cards import has_pair_loss, has_vectors, missing_package, scorer_of, why_not
from recbole_hns.sampling.registry import SAMPLERS, Entry
from recbole_hns.sampling.spec import SamplerSpec, pair_loss_keys, sampler_keys
from recbole_hns.settings import checks
from recbole_hns.settings.checks import nearest, shown

MODEL_ALIASES = {"MF": "BPR"}

_HERE = Path(__file__).resolve().parent.parent
# Installed inside the package; in a checkout, beside it.
PROPERTIES = next(path for path in (_HERE / "properties", _HERE.parent / "properties") if path.is_dir())
RECBOLE_PROPERTIES = Path(recbole.__file__).resolve().parent / "properties"

# What RecBole reads from a configuration without a default in its property files.
_LAUNCH_KEYS = {"model", "dataset", "config_files", "nproc", "world_size", "ip", "port", "offset"}
_LAUNCH_KEYS |= {"local_rank", "group_offset", "neg_sampling", "training_neg_sample_num", "encoding"}


class HNSConfig(Config):
    """RecBole's configuration with the plugin's layers.

    Later layers win: RecBole's defaults < properties/overall.yaml < model/ < dataset/ < the property
    file beside the data < sampler/ < the user's files < ``config_dict`` < ``command_line``. In model/,
    MODEL-SAMPLER.yaml adds what a model wants with one sampler. Unlike RecBole's ``Config`` it looks at
    ``sys.argv`` only when it is handed over as ``command_line``, and evaluates no code in values.

    Raises:
        Error: for anything a user can put right, before any data is loaded.
    """

    def __init__(
        self,
        model: str | type[AbstractRecommender] | None = None,
        dataset: str | None = None,
        config_file_list: Sequence[str] | None = None,
        config_dict: dict[str, Any] | None = None,
        command_line: Sequence[str] = (),
    ):
        self._command_line = list(command_line)
        try:
            super().__init__(model, dataset, config_file_list, dict(config_dict or {}))
        except Error:
            raise
        except (ValueError, TypeError, KeyError, NotImplementedError, RuntimeError) as error:
            # RecBole's own checks of the configuration.
            raise Error(" ".join(str(error).strip("'\"").split())) from error
        self._refuse_models_without_pairs()
        self._refuse_what_the_models_loss_cannot_take()
        self._refuse_dense_gradients()
        _check_metrics(self.final_config_dict)

    def __getstate__(self):
        """For pickling, as Ray does: the spec is made again from the settings."""
        return {key: value for key, value in self.__dict__.items() if key != "spec"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.spec = SamplerSpec.from_config(self.final_config_dict)

    # ------------------------------------------------------------- what the user wrote

    def _load_config_files(self, file_list):
        merged: dict[str, Any] = {}
        for file in file_list or ():
            merged.update(read_yaml(file, self.yaml_loader))
        return merged

    def _load_cmd_line(self):
        return read_command_line(self._command_line)

    def _convert_config_dict(self, config_dict):
        """Strings to what they spell: numbers, lists, dicts, true, false; never by running them."""
        return {key: _literal(value) for key, value in config_dict.items()}

    def _get_model_and_dataset(self, model, dataset):
        model = model if model is not None else self.external_config_dict.get("model")
        dataset = dataset if dataset is not None else self.external_config_dict.get("dataset")
        if model is None:
            raise Error("no model is named: give one, e.g. --model=LightGCN.")
        if dataset is None:
            raise Error("no data set is named: give one, e.g. --dataset=ml-100k.")
        self.own_model = isinstance(model, type)
        if not self.own_model:
            model = str(model)
            model = MODEL_ALIASES.get(model, model)
            _known_model(model)
        dataset = str(dataset)
        if not TEXT.test(dataset) or Path(dataset).name != dataset:
            raise Error(
                f"dataset={shown(dataset)} is not allowed: it is the name of a folder below data_path."
            )
        return super()._get_model_and_dataset(model, dataset)

    # ------------------------------------------------------------- our layers

    def _load_internal_config_dict(self, model, model_class, dataset):
        super()._load_internal_config_dict(model, model_class, dataset)
        self._recbole_defaults = dict(self.internal_config_dict)
        if self.internal_config_dict.get("loss_type") == "CE":
            # RecBole's cross-entropy ranks against all items and knows no negatives.
            self.internal_config_dict["loss_type"] = "BPR"
        overall = _layer("overall")
        sampler = str(self.external_config_dict.get("sampler", overall["sampler"]))
        self.internal_config_dict.update(overall)
        model_layer, dataset_layer = _layer(f"model/{model}"), _layer(f"dataset/{dataset}")
        if sampler in SAMPLERS:
            model_layer.update(_layer(f"model/{model}-{sampler}"))
        if self.internal_config_dict["MODEL_TYPE"] != ModelType.GENERAL:
            # RecBole's other kinds of models have a split and columns that they cannot do without.
            dataset_layer = {
                k: v for k, v in dataset_layer.items() if k not in ("eval_args", "load_col")
            }
        folder = self.external_config_dict.get("data_path", self.internal_config_dict["data_path"])
        PATH.check("data_path", folder)
        folder = Path(folder)
        beside = folder / dataset / f"{dataset}.yaml"
        beside_layer = read_yaml(beside, self.yaml_loader) if beside.is_file() else {}
        for layer in (model_layer, dataset_layer, beside_layer):
            self.internal_config_dict.update(layer)
        if self.internal_config_dict["MODEL_TYPE"] == ModelType.SEQUENTIAL:
            self._read_times()
        if sampler in SAMPLERS:
            self.internal_config_dict.update(sampler_layer(SAMPLERS[sampler]))

    def _read_times(self):
        """Where no columns are named RecBole reads users and items; sequences also take the time."""
        known = self.internal_config_dict
        if known.get("load_col") == {"inter": ["user_id", "item_id"]}:
            fields = {**known, **self.external_config_dict}
            columns = [fields[f"{name}_FIELD"] for name in ("USER_ID", "ITEM_ID", "TIME")]
            known["load_col"] = {"inter": columns}

    def _get_final_config_dict(self):
        final = super()._get_final_config_dict()
        given = self.external_config_dict
        refuse_launch_keys({**self.file_config_dict, **self.cmd_config_dict})
        if not self.own_model:
            self._refuse_unknown_keys(given)
        check_settings(final, self._recbole_defaults)
        if self._recbole_defaults.get("loss_type") and final.get("loss_type") != "BPR":
            raise Error(
                f"loss_type={final['loss_type']} does not rank {self.model}'s positives above sampled "
                "negatives: set loss_type=BPR, or leave it out (pair_loss chooses among such losses)."
            )
        self.spec = SamplerSpec.from_config(final, given, self._recbole_defaults)
        _check_decay(final, given)
        # Pairs come from RecBole's data preparation as they are; `sampler` adds the negatives.
        self.ignored_neg_sample_args = given.get("train_neg_sample_args")
        final["train_neg_sample_args"] = {"distribution": "uniform", "sample_num": 1}
        return final

    # ------------------------------------------------------------- refusals

    def _refuse_unknown_keys(self, given):
        known = set(self.internal_config_dict) | _LAUNCH_KEYS | sampler_keys() | set(pair_loss_keys())
        known |= set(METRIC_DEFAULTS)
        known.update(key for group in self.parameters.values() for key in group)
        known.discard("MODEL_TYPE")
        if all(key in known for key in given):
            return
        # A file written for several models may hold keys of another one.
        for file in (RECBOLE_PROPERTIES / "model").glob("*.yaml"):
            known.update(read_yaml(file, self.yaml_loader))
        for key in given:
            if key not in known:
                raise Error(
                    f"{key} is not a setting of RecBole, of {self.model} or of recbole-hns"
                    f"{nearest(key, known)}."
                )

    def _refuse_models_without_pairs(self):
        why = why_not(self.model_class, self.model, self["MODEL_TYPE"], self["MODEL_INPUT_TYPE"])
        if why:
            raise Error(
                f"{self.model} {why}: choose a pairwise model such as BPR, LightGCN or SASRec "
                "(`recbole-hns models` lists them)."
            )
        package = missing_package(self.model)
        if package:
            raise Error(f"{self.model} needs the package {package}, which is not installed.")
        if self["MODEL_TYPE"] == ModelType.KNOWLEDGE and self["save_dataloaders"]:
            raise Error(
                f"save_dataloaders=True is not possible with {self.model}: RecBole cannot save the "
                "loaders of knowledge-aware models."
            )
        if self["MODEL_TYPE"] != ModelType.SEQUENTIAL and str(self["transform"]).endswith("_itemseq"):
            raise Error(
                f"transform={self['transform']} is not possible with {self.model}: it changes item "
                "sequences, which sequential models alone have; leave it out."
            )
        if self["train_stage"] == "pretrain":
            raise Error(
                f"train_stage=pretrain draws {self.model}'s negatives by itself: pretrain it with "
                "RecBole, then set train_stage=finetune and pre_model_path."
            )

    def _refuse_what_the_models_loss_cannot_take(self):
        method, sampler = self.spec.method, self.spec.sampler
        if method.needs_vectors and not has_vectors(self.model_class):
            raise Error(
                f"sampler={sampler} cannot train {self.model}: it {method.needs_vectors}, which takes a "
                "model that scores by a dot product (BPR, LightGCN, SASRec, …), or another sampler."
            )
        if has_pair_loss(self.model_class):
            return
        if method.needs_pair_loss:
            raise Error(
                f"sampler={sampler} cannot train {self.model}: it {method.needs_pair_loss}, and "
                f"{self.model} learns from one negative by a loss of its own; use another sampler."
            )
        if "pair_loss" in self.external_config_dict:
            raise Error(
                f"pair_loss={self.spec.loss_name} would have no effect: {self.model} learns by a loss "
                "of its own; leave it out, or choose a model that `recbole-hns models` calls fused or "
                "composed."
            )

    def _refuse_dense_gradients(self):
        learner = f"learner={self['learner']}"
        if not uses_sparse_adam(self.final_config_dict):
            return
        if not scorer_of(self.model_class).sparse_gradient:
            raise Error(
                f"{learner} cannot train {self.model}: it takes gradients of single rows of embedding "
                f"tables, and {self.model}'s reach all rows or other parameters: use learner=adam, or a "
                "model that only looks its rows up, as MF (RecBole's BPR) does."
            )
        if self.spec.method.dense_gradient:
            raise Error(
                f"{learner} cannot train with sampler={self.spec.sampler}, whose gradient reaches every "
                "item in every step: use learner=adam, or a sampler that draws."
            )
        if self["clip_grad_norm"]:
            raise Error(
                f"clip_grad_norm={self['clip_grad_norm']} cannot be used with {learner}: torch has no "
                "norm of gradients of single rows; use learner=adam, or leave it out."
            )
        if "nproc" in self.external_config_dict:
            raise Error(
                f"{learner} works in one process only, because RecBole adds up whole tables of "
                "gradients among several: use learner=adam, or leave --nproc and --world_size out."
            )


# ----------------------------------------------------------------------------------- layers


def read_command_line(arguments: Sequence[str]) -> dict[str, Any]:
    """Settings given as ``--key=value``."""
    values: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument[2:].partition("=")
        if not argument.startswith("--") or not key or not equals:
            raise Error(f"argument {argument!r} is not understood: write --key=value.")
        if values.setdefault(key, value) != value:
            raise Error(f"--{key} is given twice, as {values[key]} and as {value}: give it once.")
    return {key: _literal(value) for key, value in values.items()}


def read_yaml(file: str | Path, loader: type = yaml.SafeLoader) -> dict[str, Any]:
    """The settings of a property file."""
    try:
        content = yaml.load(Path(file).read_text("utf-8"), Loader=loader)
    except OSError as error:
        raise Error(f"config file {file} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise Error(f"config file {file} is not valid YAML: {reason}.") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise Error(f"config file {file} must hold `key: value` lines.")
    for key in content:
        if not isinstance(key, str):
            raise Error(f"config file {file} has the key {shown(key)}: keys are words.")
    return content


def _layer(name: str) -> dict[str, Any]:
    """A property file of ours; nothing where there is none."""
    file = PROPERTIES / f"{name}.yaml"
    return read_yaml(file) if file.is_file() else {}


def sampler_layer(entry: Entry) -> dict[str, Any]:
    """What a sampler sets: its own defaults, then its property file."""
    return {**entry.defaults, **_layer(f"sampler/{entry.name}")}


def default_settings(entry: Entry) -> dict[str, Any]:
    """The values that a sampler's settings have in a run that gives none."""
    return {**_layer("overall"), **sampler_layer(entry)}


def split_seed(config: Config) -> int:
    """The seed of RecBole's random split: that of the run, unless ``split_seed`` is set."""
    return config["seed"] if config["split_seed"] is None else config["split_seed"]


# ----------------------------------------------------------------------------------- checks


def _literal(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def _known_model(model: str) -> None:
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
    metrics = [str(m).lower() for m in (metrics if isinstance(metrics, list) else [metrics])]
    valid = str(config["valid_metric"]).lower()
    name = valid.partition("@")[0]
    read_settings(config)
    modes = config["eval_args"]["mode"].values()
    if config["eval_type"] == EvaluatorType.RANKING and "labeled" in modes:
        raise Error(
            f"eval_args mode=labeled has no negatives to rank {', '.join(metrics)} among: use full, "
            "uni100 or pop100."
        )
    if name not in metrics:
        raise Error(f"valid_metric={config['valid_metric']} is not evaluated: add it to metrics.")
    if name in METRICS:
        keys = list(metric_keys(config, name))
    elif issubclass(metrics_dict.get(name, object), TopkMetric):
        keys = [f"{name}@{k}" for k in (topk if isinstance(topk, list) else [topk])]
    else:
        return
    if valid not in keys:
        raise Error(
            f"valid_metric={config['valid_metric']} is not evaluated: choose one of {', '.join(keys)}."
        )


def uses_sparse_adam(config: dict[str, Any]) -> bool:
    """Whether only the rows that a step touches are updated."""
    return str(config["learner"]).lower() == "sparse_adam"


def _check_decay(config: dict[str, Any], given: dict[str, Any]) -> None:
    reg_weight, weight_decay = config.get("reg_weight"), config["weight_decay"]
    if weight_decay and uses_sparse_adam(config):
        raise Error(
            f"weight_decay={weight_decay} has no effect with learner={config['learner']}, which leaves "
            "alone the rows that a step does not touch: use learner=adam, or weight_decay=0."
        )
    if weight_decay and reg_weight and not checks.is_number(reg_weight):
        raise Error(
            f"reg_weight={shown(reg_weight)} cannot go with weight_decay={weight_decay}: RecBole "
            "multiplies the two; set weight_decay=0, or leave reg_weight out."
        )
    if config["lr_step_size"] is None:
        if "lr_gamma" in given:
            raise Error("lr_gamma does nothing without lr_step_size, the epochs between decays.")
        return
    checks.integer(config, "lr_step_size", "the epochs between two decays of the learning rate")
    checks.positive(config, "lr_gamma", "the learning rate is multiplied by it")
