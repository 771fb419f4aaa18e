"""What is saved of a run, and how it is taken over again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from recbole.data.dataloader import KnowledgeBasedDataLoader

from recbole_hns.data.fingerprint import fingerprint
from recbole_hns.errors import Error
from recbole_hns.settings.words import shown
from recbole_hns.training.checkpoint import FORMAT, Content
from recbole_hns.training.finite import FiniteMixin
from recbole_hns.training.plain import plain_data, plain_settings
from recbole_hns.training.random_state import random_states, restore_random_states
from recbole_hns.training.versions import versions

if TYPE_CHECKING:
    from recbole.model.abstract_recommender import AbstractRecommender

    from recbole_hns.bridge.config import LayeredConfig
    from recbole_hns.data.loader import TrainLoader
    from recbole_hns.sampling.sampler import Sampler


class StateMixin(FiniteMixin):
    """Three states, each part of the next: of the model, of the run, and a *moment* of it.

    A moment is what changes with every batch: random states, the sampler, what the model remembers
    beside its parameters. It is restored where it was taken: before an epoch, or just before one of its
    batches is made.
    """

    sampler: Sampler

    def __init__(self, config: LayeredConfig, model: AbstractRecommender):
        super().__init__(config, model)
        self.data_print: str | None = None
        self._identity = {
            "format": FORMAT,
            "versions": versions(),
            "model": config["model"],
            "dataset": config["dataset"],
            "settings": plain_settings(config.external_config_dict),
            "final": plain_settings(config.final_config_dict),
        }
        self._built = tensors_of(model)
        self._pending: Content | None = None  # a run's state whose moment has not come yet

    def model_state(self) -> Content:
        """The model, and what it takes to build the same one again."""
        # Modules among the other parameters are in the state_dict already.
        others = self.model.other_parameter().items()
        others = {name: value for name, value in others if not isinstance(value, torch.nn.Module)}
        return {
            **self._identity,
            "data": self.data_print,
            "state_dict": self.model.state_dict(),
            "other_parameter": plain_data(others, "other_parameter"),
        }

    def run_state(self, epoch: int, batch: int = 0, moment: Content | None = None) -> Content:
        """The model, and everything else that training goes on with at a batch of an epoch."""
        return {
            **self.model_state(),
            "epoch": epoch,
            "batch": batch,
            "loss": self.so_far.loss if batch else None,
            "seconds": self.so_far.seconds if batch else 0.0,
            "hardness": plain_data(self.so_far.hardness) if batch else None,
            "cur_step": self.cur_step,
            "best_valid_score": float(self.best_valid_score),
            "best_valid_result": plain_data(self.best_valid_result),
            "history": plain_data([row for row in self.history if row["epoch"] < epoch]),
            "optimizer": self.optimizer.state_dict(),
            "moment": moment or self._moment(),
        }

    def _moment(self) -> Content:
        known = getattr(self.model, "other_parameter_name", ())
        memory = {
            name: value
            for name, value in tensors_of(self.model).items()
            if name not in known and value is not self._built.get(name)
        }
        return {
            "random": random_states(),
            "sampler": {self.config.sampler: self.sampler.state_dict()},
            "generator": self.sampler.generator.get_state(),
            "loaders": [generator.get_state() for generator in self._loader_generators()],
            "memory": plain_data(memory, "the model"),
        }

    def load_model_state(self, state: Content) -> None:
        """Take over the parameters."""
        try:
            self.model.load_state_dict(state["state_dict"])
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise Error(f"the checkpoint is of another model: {reason}.") from error
        load_others(self.model, state, self.device)

    def load_run_state(self, state: Content) -> None:
        """Take over all that :meth:`run_state` saved; the moment waits for its epoch."""
        self.load_model_state(state)
        before = [dict(group) for group in self.optimizer.param_groups]
        with _fitting("optimiser"):
            self.optimizer.load_state_dict(state["optimizer"])
            _refuse_another_optimizer(self.optimizer, before)
        self.start_epoch, self.cur_step = state["epoch"], state["cur_step"]
        self.best_valid_score = state["best_valid_score"]
        self.best_valid_result = state.get("best_valid_result")
        self.history = list(state.get("history", ()))
        self._pending = state

    def _restore_moment(self) -> None:
        state, self._pending = self._pending, None
        if state is None or "moment" not in state:
            return
        moment, name = state["moment"], self.config.sampler
        for key, value in moment["memory"].items():
            if hasattr(type(self.model), key):
                raise Error(f"the checkpoint does not fit: {key} is no tensor that a model remembers.")
            setattr(self.model, key, moved(value, self.device))
        if name not in moment["sampler"]:
            self.logger.warning(f"the checkpoint holds nothing of sampler={name}, which begins anew.")
        with _fitting("moment"):
            if name in moment["sampler"]:
                self.sampler.load_state_dict(moment["sampler"][name])
            self.sampler.generator.set_state(moment["generator"])
            for generator, saved in zip(self._loader_generators(), moment["loaders"]):
                generator.set_state(saved)
            restore_random_states(moment["random"])

    def _know_data(self, train_data: TrainLoader) -> None:
        self._train_data = train_data
        self.data_print = fingerprint(train_data._dataset)
        expected = None if self._pending is None else self._pending.get("data")
        if expected not in (None, self.data_print):
            raise Error(
                f"data set {self.config['dataset']} is not the one that the checkpoint was trained on: "
                "its training set is another."
            )

    def _loader_generators(self) -> list[torch.Generator]:
        """Those that RecBole's loaders draw from; ours derives its order from the epoch."""
        if isinstance(self._train_data, KnowledgeBasedDataLoader):
            return [self._train_data.kg_dataloader.generator]
        return []


@contextmanager
def _fitting(what: str) -> Iterator[None]:
    """What a file's content raises where it is not what was saved, as a sentence."""
    try:
        yield
    except Error:
        raise
    except (LookupError, TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError) as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise Error(f"the checkpoint's {what} cannot be taken over: {reason}.") from error


# What torch's optimisers remember of a parameter that they have changed, and look up without a question.
_REMEMBERED = {
    **{name: {"step", "exp_avg", "exp_avg_sq"} for name in ("Adam", "AdamW", "SparseAdam")},
    "Adagrad": {"step", "sum"},
    "RMSprop": {"step", "square_avg"},
}


def _refuse_another_optimizer(optimizer: torch.optim.Optimizer, before: list[dict[str, Any]]) -> None:
    """torch looks at how many parameters an optimiser's state is of, and at nothing else."""
    for group, own in zip(optimizer.param_groups, before):
        for key, value in own.items():
            if key != "params" and not _alike(value, group.get(key)):
                raise ValueError(f"{key} is {shown(group.get(key), 50)}")
    needed = _REMEMBERED.get(type(optimizer).__name__, set())
    for parameter, state in optimizer.state.items():
        if state and not needed <= set(state):
            raise ValueError(f"{', '.join(sorted(needed - set(state)))} of a parameter is missing")
        for name, value in state.items():
            if name != "step" and value is not None and getattr(value, "shape", None) != parameter.shape:
                raise ValueError(f"{name} is not of the parameter's shape {tuple(parameter.shape)}")
            if name == "step" and not 0 <= float(value) < 2**53:
                raise ValueError("step is no number of steps")


def _alike(a: object, b: object) -> bool:
    """Whether two values can stand in one place: flags, numbers, or as many of them."""
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, (bool, type(None))) or isinstance(b, (bool, type(None))):
        return isinstance(b, (bool, type(None)))
    return isinstance(b, (int, float)) == isinstance(a, (int, float))


def load_others(model: AbstractRecommender, state: Content, device: torch.device) -> None:
    """Take over what a model keeps beside its parameters: what it names, and nothing else."""
    others = state.get("other_parameter") or {}
    strange = sorted(set(others) - set(getattr(model, "other_parameter_name", None) or ()))
    if strange:
        raise Error(f"the checkpoint is of another model, which has {', '.join(map(str, strange))}.")
    with _fitting("other parameters"):
        model.load_other_parameter(moved(others, device))


def tensors_of(model: torch.nn.Module) -> dict[str, Any]:
    """What a model keeps in plain attributes: tensors, and lists of them."""

    def holds_tensors(value: object) -> bool:
        if isinstance(value, (list, tuple)):
            return bool(value) and all(isinstance(item, torch.Tensor) for item in value)
        return isinstance(value, torch.Tensor)

    return {name: value for name, value in vars(model).items() if holds_tensors(value)}


def moved(value: Any, device: torch.device) -> Any:
    """Tensors, alone or in dicts and lists, on a device."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: moved(item, device) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(moved(item, device) for item in value)
    return value
