"""Configuration: RecBole's own, our property layers, and one validated spec of the sampler."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import recbole
import yaml
from recbole.config import Config
from recbole.data.dataloader import UserDataLoader
from recbole.data.utils import get_dataloader
from recbole.evaluator.base_metric import TopkMetric
from recbole.evaluator.register import metrics_dict
from recbole.model.abstract_recommender import AbstractRecommender
from recbole.utils import InputType, ModelType, get_model

from recbole_hns.errors import HNSError
from recbole_hns.evaluator.metrics import DEFAULTS as METRIC_DEFAULTS
from recbole_hns.evaluator.metrics import METRICS, metric_keys, read_settings
from recbole_hns.kernels import BACKENDS
from recbole_hns.sampler.pool import POOLS
from recbole_hns.sampler.rule import DNS, Rule, Softmax, SoftmaxV, Uniform

RULES: dict[str, type[Rule]] = {
    "uniform": Uniform,
    "popularity": Uniform,
    "dns": DNS,
    "softmax": Softmax,
    "softmax_v": SoftmaxV,
}
MODEL_ALIASES = {"MF": "BPR"}

_HERE = Path(__file__).resolve().parent
# Installed inside the package; in a checkout, beside it.
PROPERTIES = next(path for path in (_HERE / "properties", _HERE.parent / "properties") if path.is_dir())
RECBOLE_PROPERTIES = Path(recbole.__file__).resolve().parent / "properties"

# What RecBole reads from a configuration without a default in its property files.
_LAUNCH_KEYS = {"model", "dataset", "config_files", "nproc", "world_size", "ip", "port", "offset"}
_LAUNCH_KEYS |= {"local_rank", "group_offset", "neg_sampling", "training_neg_sample_num"}


@dataclass(frozen=True)
class SamplerSpec:
    """The sampler of a run: checked once, when the configuration is built."""

    sampler: str
    rule: Rule
    N: int
    pool: str
    pool_alpha: float
    pool_block: int
    backend: str

    @classmethod
    def from_config(cls, config: dict[str, Any], given: Iterable[str] = ()) -> SamplerSpec:
        """Read the spec out of a configuration; ``given`` are the keys that the user wrote."""
        sampler = str(config["sampler"])
        if sampler not in RULES:
            raise HNSError(
                f"sampler={sampler} is unknown{_nearest(sampler, RULES)}: "
                f"choose one of {', '.join(RULES)}."
            )
        keys = [field.name for field in fields(RULES[sampler])]
        _refuse_foreign_keys(sampler, keys, given)
        N = _integer(config, "N", "the number of candidates drawn per pair")
        values: dict[str, Any] = {}
        if "M" in keys:
            why = f"the {sampler} sampler keeps the M hardest of N={N} candidates"
            values["M"] = _integer(config, "M", why, most=N)
        if "rho" in keys:
            values["rho"] = _positive(config, "rho", "ρ sets the hardness, β = e^−ρ")
        if "tau" in keys:
            values["tau"] = _positive(config, "tau", "τ is the temperature of the softmax")
        pool = _one_of(config, "pool", POOLS)
        if sampler == "popularity" and pool != "popularity":
            raise HNSError(
                f"pool={pool} contradicts sampler=popularity: leave pool out, or use sampler=uniform."
            )
        alpha = _number(config, "pool_alpha", "the power of an item's count")
        if alpha < 0:
            raise HNSError(f"pool_alpha={alpha} is negative: the power of an item's count is ≥ 0.")
        return cls(
            sampler=sampler,
            rule=RULES[sampler](**values),
            N=N,
            pool=pool,
            pool_alpha=alpha,
            pool_block=_integer(config, "pool_block", "the number of pairs that share candidates"),
            backend=_one_of(config, "hns_backend", BACKENDS),
        )

    def __str__(self) -> str:
        parameters = [f"{f.name}={getattr(self.rule, f.name)}" for f in fields(self.rule)]
        return f"{self.sampler}({', '.join([*parameters, f'N={self.N}'])}) on a {self.pool} pool"


class HNSConfig(Config):
    """RecBole's configuration with the plugin's layers.

    Later layers win: RecBole's defaults < properties/overall.yaml < model/ < dataset/ < sampler/ <
    the user's files < ``config_dict`` < ``command_line``. Unlike RecBole's ``Config`` it looks at
    ``sys.argv`` only when it is handed over as ``command_line``, and evaluates no code in values.

    Raises:
        HNSError: for anything a user can put right, before any data is loaded.
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
        except HNSError:
            raise
        except (ValueError, TypeError, KeyError, NotImplementedError, RuntimeError) as error:
            # RecBole's own checks of the configuration.
            raise HNSError(" ".join(str(error).strip("'\"").split())) from error
        self._refuse_models_without_pairs()
        _check_metrics(self.final_config_dict)

    # ------------------------------------------------------------- what the user wrote

    def _load_config_files(self, file_list):
        merged: dict[str, Any] = {}
        for file in file_list or ():
            merged.update(self._read_yaml(file))
        return merged

    def _read_yaml(self, file: str | Path) -> dict[str, Any]:
        try:
            content = yaml.load(Path(file).read_text("utf-8"), Loader=self.yaml_loader)
        except OSError as error:
            raise HNSError(f"config file {file} cannot be read: {error.strerror}.") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise HNSError(f"config file {file} is not valid YAML: {reason}.") from error
        if content is None:
            return {}
        if not isinstance(content, dict):
            raise HNSError(f"config file {file} must hold `key: value` lines.")
        return content

    def _load_cmd_line(self):
        values: dict[str, str] = {}
        for argument in self._command_line:
            key, equals, value = argument[2:].partition("=")
            if not argument.startswith("--") or not key or not equals:
                raise HNSError(f"argument {argument} is not understood: write --key=value.")
            if values.setdefault(key, value) != value:
                raise HNSError(f"--{key} is given twice, as {values[key]} and as {value}.")
        return self._convert_config_dict(values)

    def _convert_config_dict(self, config_dict):
        """Strings to what they spell: numbers, lists, dicts, true, false; never by running them."""
        return {key: _literal(value) for key, value in config_dict.items()}

    def _get_model_and_dataset(self, model, dataset):
        model = model if model is not None else self.external_config_dict.get("model")
        dataset = dataset if dataset is not None else self.external_config_dict.get("dataset")
        if model is None:
            raise HNSError("no model is named: give one, e.g. --model=LightGCN.")
        if dataset is None:
            raise HNSError("no data set is named: give one, e.g. --dataset=ml-100k.")
        self._own_model = isinstance(model, type)
        if not self._own_model:
            model = str(model)
            model = MODEL_ALIASES.get(model, model)
            _known_model(model)
        return super()._get_model_and_dataset(model, str(dataset))

    # ------------------------------------------------------------- our layers

    def _load_internal_config_dict(self, model, model_class, dataset):
        super()._load_internal_config_dict(model, model_class, dataset)
        self._recbole_defaults = dict(self.internal_config_dict)
        if self.internal_config_dict.get("loss_type") == "CE":
            # RecBole's cross-entropy ranks against all items and knows no negatives.
            self.internal_config_dict["loss_type"] = "BPR"
        overall = self._read_yaml(PROPERTIES / "overall.yaml")
        sampler = self.external_config_dict.get("sampler", overall["sampler"])
        layers = (f"model/{model}", f"dataset/{dataset}", f"sampler/{sampler}")
        self.internal_config_dict.update(overall)
        for layer in layers:
            file = PROPERTIES / f"{layer}.yaml"
            if file.is_file():
                self.internal_config_dict.update(self._read_yaml(file))

    def _get_final_config_dict(self):
        final = super()._get_final_config_dict()
        given = self.external_config_dict
        if not self._own_model:
            self._refuse_unknown_keys(given)
        self._refuse_wrong_types(given)
        if final["MODEL_TYPE"] == ModelType.SEQUENTIAL and final.get("loss_type") == "CE":
            raise HNSError(
                f"loss_type=CE ranks {self.model}'s target against all items and uses no negatives: "
                "set loss_type=BPR, or leave it out."
            )
        self.spec = SamplerSpec.from_config(final, given)
        _check_decay(final, given)
        # Pairs come from RecBole's data preparation as they are; `sampler` adds the negatives.
        self.ignored_neg_sample_args = given.get("train_neg_sample_args")
        final["train_neg_sample_args"] = {"distribution": "uniform", "sample_num": 1}
        return final

    # ------------------------------------------------------------- refusals

    def _refuse_unknown_keys(self, given):
        known = set(self.internal_config_dict) | _LAUNCH_KEYS | _sampler_keys() | set(METRIC_DEFAULTS)
        known.update(key for group in self.parameters.values() for key in group)
        if all(key in known for key in given):
            return
        # A file written for several models may hold keys of another one.
        for file in (RECBOLE_PROPERTIES / "model").glob("*.yaml"):
            known.update(self._read_yaml(file))
        for key in given:
            if key not in known:
                raise HNSError(
                    f"{key} is not a setting of RecBole, of {self.model} or of recbole-hns"
                    f"{_nearest(key, known)}."
                )

    def _refuse_wrong_types(self, given):
        for key, value in given.items():
            default = self._recbole_defaults.get(key)
            numeric = isinstance(default, (int, float)) and not isinstance(default, bool)
            if isinstance(default, bool) and not isinstance(value, bool):
                raise HNSError(f"{key}={value!r} is not allowed: it is true or false.")
            if numeric:
                _number(given, key, f"RecBole's default is {default}")
                if isinstance(default, int) and not isinstance(value, int):
                    raise HNSError(f"{key}={value!r} is not allowed: it is a whole number.")

    def _refuse_models_without_pairs(self):
        name = self.model
        if self["MODEL_INPUT_TYPE"] != InputType.PAIRWISE:
            raise HNSError(
                f"{name} learns from single items (pointwise), so it cannot rank a positive above "
                "sampled negatives: choose a pairwise model such as BPR, LightGCN or NGCF."
            )
        if get_dataloader(self, "train") is UserDataLoader:
            raise HNSError(
                f"{name} learns to rebuild whole user histories and uses no negatives: choose a "
                "pairwise model such as BPR, LightGCN or NGCF."
            )


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
            raise HNSError(f"model={model} cannot be loaded: {error}.") from error
        raise HNSError(
            f"model={model} is unknown to RecBole{_nearest(model, [*names, *MODEL_ALIASES])}."
        ) from error


def _nearest(word: Any, known: Iterable[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    match = difflib.get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.5)
    return f" (did you mean {by_lower[match[0]]}?)" if match else ""


def _sampler_keys() -> set[str]:
    return {field.name for rule in RULES.values() for field in fields(rule)}


def _refuse_foreign_keys(sampler: str, keys: list[str], given: Iterable[str]) -> None:
    foreign = sorted((_sampler_keys() - set(keys)) & set(given))
    if foreign:
        own = [*keys, "N", "pool", "pool_alpha", "pool_block"]
        raise HNSError(
            f"{foreign[0]} is not a setting of sampler={sampler}, which has {', '.join(own)}."
        )


def _number(config: dict[str, Any], key: str, why: str) -> float:
    value = config.get(key)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or value != value or value in (float("inf"), float("-inf")):
        raise HNSError(f"{key}={value!r} is not allowed: a number is needed ({why}).")
    return value


def _positive(config: dict[str, Any], key: str, why: str) -> float:
    value = _number(config, key, why)
    if value <= 0:
        raise HNSError(f"{key}={value} is not allowed: it must be greater than 0 ({why}).")
    return float(value)


def _integer(config: dict[str, Any], key: str, why: str, most: int | None = None) -> int:
    value = config.get(key)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < 1 or (most is not None and value > most):
        reach = "of at least 1" if most is None else f"from 1 to {most}"
        raise HNSError(f"{key}={value!r} is not allowed: a whole number {reach} is needed ({why}).")
    return value


def _one_of(config: dict[str, Any], key: str, allowed: Iterable[str]) -> str:
    value = config.get(key)
    if value not in allowed:
        raise HNSError(
            f"{key}={value} is unknown{_nearest(value, allowed)}: choose one of {', '.join(allowed)}."
        )
    return value


def _check_metrics(config: dict[str, Any]) -> None:
    """The metric that decides must be one that is evaluated: RecBole finds out after an epoch."""
    metrics, topk = config["metrics"], config["topk"]
    metrics = [str(m).lower() for m in (metrics if isinstance(metrics, list) else [metrics])]
    valid = str(config["valid_metric"]).lower()
    name = valid.partition("@")[0]
    if set(metrics) & set(METRICS):
        read_settings(config)
    if name not in metrics:
        raise HNSError(f"valid_metric={config['valid_metric']} is not evaluated: add it to metrics.")
    if name in METRICS:
        keys = list(metric_keys(config, name))
    elif issubclass(metrics_dict.get(name, object), TopkMetric):
        keys = [f"{name}@{k}" for k in (topk if isinstance(topk, list) else [topk])]
    else:
        return
    if valid not in keys:
        raise HNSError(
            f"valid_metric={config['valid_metric']} is not evaluated: choose one of {', '.join(keys)}."
        )


def _check_decay(config: dict[str, Any], given: dict[str, Any]) -> None:
    if config["lr_step_size"] is None:
        if "lr_gamma" in given:
            raise HNSError("lr_gamma does nothing without lr_step_size, the epochs between decays.")
        return
    _integer(config, "lr_step_size", "the epochs between two decays of the learning rate")
    _positive(config, "lr_gamma", "the learning rate is multiplied by it")
