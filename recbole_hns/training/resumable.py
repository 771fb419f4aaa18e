"""What makes a RecBole trainer one that can be killed: its state, written and read back."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Callable

import torch
from recbole.data.dataloader import KnowledgeBasedDataLoader
from recbole.trainer import Trainer

from recbole_hns.data.fingerprint import fingerprint
from recbole_hns.data.loader import PositiveLoader
from recbole_hns.errors import Error
from recbole_hns.runs.result import versions
from recbole_hns.sampling.seeding import random_states, restore_random_states
from recbole_hns.training.checkpoint import (
    FORMAT,
    best_file,
    claim_file,
    is_there,
    last_file,
    plain_data,
    plain_settings,
    read_checkpoint,
    release_file,
    use_previous,
    write_checkpoint,
)
from recbole_hns.training.stopping import RunStopped, StopRequest


class ResumableMixin:
    """Saves all that the next batch depends on after every epoch, and goes on from there.

    A *moment* is the part of the state that changes with every batch: random states, the sampler, what
    the model remembers beside its parameters. It is restored where it was taken: before an epoch, or
    just before one of its batches is made. Within an epoch that is possible where the epoch is one pass
    over one :class:`~.data.loader.PositiveLoader`; trainers whose epochs are more than that
    (knowledge-aware models, NCL) go back to the epoch's beginning.
    """

    def __init__(self, config, model):
        super().__init__(config, model)
        self.stop = StopRequest()
        self.history: list[dict] = []  # of every epoch: its loss, times and validation
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
        self._saves = self._has_name = False
        self._epoch, self._batch, self._loss, self._seconds = 0, 0, None, 0.0
        self._started = time.perf_counter()
        self._pending: dict[str, Any] | None = None  # a loaded moment that is not restored yet
        self._validating: dict[str, Any] | None = None  # the moment before a validation

    # ------------------------------------------------------------- files

    @property
    def last_file(self) -> Path:
        """Where the run's last state is."""
        return last_file(self.saved_model_file)

    def _claim_name(self) -> None:
        """Before the first checkpoint: no other run is to write to the same files."""
        if self._saves and not self._has_name:
            self.saved_model_file = str(claim_file(self.saved_model_file))
            self._has_name = True

    def _save_checkpoint(self, epoch, verbose=True, **kwargs):
        """The model, under RecBole's name for the best one."""
        if not self.config["single_spec"] and self.config["local_rank"] != 0:
            return
        file = kwargs.get("saved_model_file", self.saved_model_file)
        self._refuse_broken_parameters()
        write_checkpoint({**self.model_state(), "epoch": epoch}, file)
        if verbose:
            self.logger.info(f"Saving current: {file}")

    def save_pretrained_model(self, epoch, saved_model_file):
        """RecBole's hook of trainers that pretrain."""
        self._save_checkpoint(epoch, verbose=False, saved_model_file=saved_model_file)
        self.saved_model_file = saved_model_file

    def _save_last(self, epoch: int, batch: int = 0, moment: dict[str, Any] | None = None) -> None:
        """Everything, to go on before a batch of an epoch."""
        if not self._saves:
            return
        try:
            self._refuse_broken_parameters()
            write_checkpoint(self.run_state(epoch, batch, moment), self.last_file)
        finally:
            release_file(self.saved_model_file)
        self.stop.checkpoint = self.last_file

    def mark_finished(self) -> None:
        """Note in the last state that the run was tested and its result written."""
        if self._saves:
            write_checkpoint({**read_checkpoint(self.last_file), "finished": True}, self.last_file)

    def evaluate(self, eval_data, load_best_model=True, model_file=None, show_progress=False):
        """RecBole's ``evaluate``, with the model read as tensors and plain data."""
        if eval_data and load_best_model:
            file = model_file or self.saved_model_file
            self.load_model_state(read_checkpoint(file, trust=bool(self.config["trust_checkpoint"])))
            self.logger.info(f"Loading model structure and parameters from {file}")
        return super().evaluate(eval_data, False, None, show_progress)

    # ------------------------------------------------------------- what is saved

    def model_state(self) -> dict[str, Any]:
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

    def run_state(
        self, epoch: int, batch: int = 0, moment: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The model, and everything else that training goes on with at a batch of an epoch."""
        return {
            **self.model_state(),
            "epoch": epoch,
            "batch": batch,
            "loss": self._loss if batch else None,
            "seconds": self._seconds if batch else 0.0,
            "cur_step": self.cur_step,
            "best_valid_score": float(self.best_valid_score),
            "best_valid_result": plain_data(self.best_valid_result),
            "history": plain_data([row for row in self.history if row["epoch"] < epoch]),
            "optimizer": self.optimizer.state_dict(),
            "moment": moment or self._moment(),
        }

    def _moment(self) -> dict[str, Any]:
        known = getattr(self.model, "other_parameter_name", ())
        memory = {
            name: value
            for name, value in tensors_of(self.model).items()
            if name not in known and value is not self._built.get(name)
        }
        return {
            "random": random_states(),
            "sampler": {self.config.spec.sampler: self.sampler.state_dict()},
            "generator": self.sampler.generator.get_state(),
            "loaders": [generator.get_state() for generator in self._loader_generators()],
            "memory": plain_data(memory, "the model"),
        }

    def _loader_generators(self) -> list[torch.Generator]:
        """Those that RecBole's loaders draw from; ours derives its order from the epoch."""
        if isinstance(self._train_data, KnowledgeBasedDataLoader):
            return [self._train_data.kg_dataloader.generator]
        return []

    # ------------------------------------------------------------- going on

    def resume_checkpoint(self, resume_file):
        """RecBole's hook: go on from a file of a run."""
        file = last_file(resume_file) if is_there(last_file(resume_file)) else Path(resume_file)
        self.resume(read_checkpoint(file, trust=bool(self.config["trust_checkpoint"])), file)

    def resume(self, state: dict[str, Any], file: str | Path) -> None:
        """Go on from the content of a file, and write to the same files from now on."""
        if "optimizer" not in state:
            raise Error(f"{file} holds a model and no run to go on with: give a ….last.pth.")
        self.load_run_state(state)
        if state.get("read_from", str(file)) != str(file):
            use_previous(Path(file))
        if "moment" in state:
            self.saved_model_file, self._has_name = str(best_file(file)), True
            if self.best_valid_result is not None and not is_there(Path(self.saved_model_file)):
                raise Error(
                    f"{file} cannot go on without its best model so far, {self.saved_model_file}."
                )
        self.stop.checkpoint = Path(file)
        self.logger.info(f"Checkpoint loaded. Resume training from epoch {self.start_epoch}")

    def load_model_state(self, state: dict[str, Any]) -> None:
        """Take over the parameters."""
        try:
            self.model.load_state_dict(state["state_dict"])
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise Error(f"the checkpoint is of another model: {reason}.") from error
        self.model.load_other_parameter(moved(state.get("other_parameter"), self.device))

    def load_run_state(self, state: dict[str, Any]) -> None:
        """Take over all that :meth:`run_state` saved; the moment waits for its epoch."""
        self.load_model_state(state)
        self.optimizer.load_state_dict(state["optimizer"])
        self.start_epoch, self.cur_step = state["epoch"], state["cur_step"]
        self.best_valid_score = state["best_valid_score"]
        self.best_valid_result = state.get("best_valid_result")
        self.history = list(state.get("history", ()))
        self._pending = state

    @property
    def is_trained(self) -> bool:
        """Whether a run that goes on has nothing left to train."""
        return self.start_epoch >= self.epochs or self.cur_step > self.stopping_step

    def _know_data(self, train_data) -> None:
        self._train_data = train_data
        self._can_be_cut = self._is_one_pass(train_data)
        self.data_print = fingerprint(train_data._dataset)
        expected = None if self._pending is None else self._pending.get("data")
        if expected not in (None, self.data_print):
            raise Error(
                f"data set {self.config['dataset']} is not the one that the checkpoint was trained on: "
                "its training set is another."
            )

    def _begin_epoch(self, train_data, epoch: int) -> Callable | None:
        """Save the state or restore it; the loss to train with where the epoch can be cut."""
        self._epoch, self._batch, self._loss, self._seconds = epoch, 0, None, 0.0
        pending = self._pending
        if pending is None or pending["epoch"] != epoch:
            self._pending = None
            self._save_last(epoch)
        elif pending.get("batch", 0) == 0:
            self._restore_moment()
        else:
            self._batch, self._loss = pending["batch"], pending["loss"]
            self._seconds = pending["seconds"]
            train_data.first = self._batch
        self._stop_if_asked()
        self._started = time.perf_counter()
        if self._can_be_cut:
            train_data.before_batch = self._before_batch
            return self._summed(self.sampled_loss)
        return None

    def _end_epoch(self) -> None:
        self._restore_moment()  # of a run that was stopped after the last batch
        self._seconds += time.perf_counter() - self._started
        self._refuse_broken_parameters()

    def _is_one_pass(self, train_data) -> bool:
        """Whether an epoch is RecBole's plain one over our loader, so that it can go on at any batch."""
        theirs = [c for c in type(self).__mro__ if c.__module__ == Trainer.__module__]
        own_epochs = any("_train_epoch" in vars(c) for c in theirs if c is not Trainer)
        return isinstance(train_data, PositiveLoader) and not own_epochs

    def _before_batch(self, number: int) -> None:
        self._restore_moment()
        self._batch = number
        if self.stop.signum is not None:
            if number > 0:
                self._seconds += time.perf_counter() - self._started
                self._save_last(self._epoch, number)
            self._stop_if_asked()

    def _restore_moment(self) -> None:
        state, self._pending = self._pending, None
        if state is None or "moment" not in state:
            return
        moment, name = state["moment"], self.config.spec.sampler
        for key, value in moved(moment["memory"], self.device).items():
            setattr(self.model, key, value)
        if name in moment["sampler"]:
            self.sampler.load_state_dict(moment["sampler"][name])
        else:
            self.logger.warning(f"the checkpoint holds nothing of sampler={name}, which begins anew.")
        self.sampler.generator.set_state(moment["generator"])
        for generator, saved in zip(self._loader_generators(), moment["loaders"]):
            generator.set_state(saved)
        restore_random_states(moment["random"])

    def _summed(self, loss_func: Callable) -> Callable:
        """The loss, added up here: RecBole's own sum cannot begin in the middle of an epoch."""

        def summed(batch):
            losses = loss_func(batch)
            if isinstance(losses, tuple):
                values = tuple(loss.item() for loss in losses)
                self._loss = values if self._loss is None else tuple(map(sum, zip(self._loss, values)))
            else:
                self._loss = losses.item() if self._loss is None else self._loss + losses.item()
            return losses

        return summed

    # ------------------------------------------------------------- stopping

    def _stop_if_asked(self) -> None:
        if self.stop.signum is not None:
            raise RunStopped(self.stop.signum, self.stop.checkpoint)

    def _before_evaluation_batch(self) -> None:
        """A signal in a validation: it is repeated as a whole after the resume."""
        if self.stop.signum is not None and self._validating and self._can_be_cut:
            self._save_last(self._epoch, self._batch, self._validating)
        self._stop_if_asked()

    def _full_sort_batch_eval(self, batched_data):
        self._before_evaluation_batch()
        return self._with_finite_scores(super()._full_sort_batch_eval(batched_data))

    def _neg_sample_batch_eval(self, batched_data):
        self._before_evaluation_batch()
        return self._with_finite_scores(super()._neg_sample_batch_eval(batched_data))

    # ------------------------------------------------------------- numbers that stay numbers

    def _check_nan(self, loss):
        """RecBole's hook, called with every batch's loss."""
        if not math.isfinite(loss.item()):
            raise self._diverged(
                f"the loss is {loss.item()} in epoch {self._epoch}, batch {self._batch}"
            )
        self._batch += 1
        if not self._can_be_cut:
            self._stop_if_asked()

    def _refuse_broken_parameters(self) -> None:
        for name, value in self.model.named_parameters():
            # One pass without a mask; a sum may overflow where no number does.
            if not torch.isfinite(value.sum()) and not torch.isfinite(value).all():
                raise self._diverged(
                    f"{name} is no longer finite after {self._batch} batches of epoch {self._epoch}"
                )

    def _with_finite_scores(self, result):
        broken = broken_score(result[1])
        if broken is not None:
            raise self._diverged(f"a score is {broken} in the evaluation after epoch {self._epoch}")
        return result

    def _diverged(self, what: str) -> Error:
        remedy = f"try a learning_rate below {self.learning_rate}"
        if self.enable_amp:
            remedy += ", or enable_amp=False, as numbers overflow sooner in mixed precision"
        good = next((f for f in (Path(self.saved_model_file), self.last_file) if is_there(f)), None)
        kept = f" The last good checkpoint is kept: {good}." if self._saves and good else ""
        return Error(f"{what}: the model has diverged, {remedy}.{kept}")


def broken_score(scores: torch.Tensor) -> float | None:
    """NaN or inf if one is among the scores, in one pass; −inf marks items that are left out."""
    top = scores.max().item()  # NaN where one score is
    return None if top == top and top < math.inf else top


def tensors_of(model: torch.nn.Module) -> dict[str, Any]:
    """What a model keeps in plain attributes: tensors, and lists of them."""

    def holds_tensors(value: Any) -> bool:
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
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(moved(item, device) for item in value)
    return value
