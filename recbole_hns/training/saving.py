"""The two files of a run: written while it trains, read when it goes on or is tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from recbole_hns.errors import Error
from recbole_hns.training.checkpoint import Content, read_checkpoint, write_checkpoint
from recbole_hns.training.run_files import (
    best_file,
    claimed,
    held,
    is_there,
    last_file,
    use_previous,
)
from recbole_hns.training.state import StateMixin
from recbole_hns.training.stopping import StopRequest

if TYPE_CHECKING:
    from recbole.model.abstract_recommender import AbstractRecommender

    from recbole_hns.bridge.config import LayeredConfig


class SavingMixin(StateMixin):
    """Writes the best model and the last state, and goes on from them.

    ``trust`` allows to read pickles, which can run code of whoever wrote them. It is said by who calls,
    and by no file.
    """

    def __init__(self, config: LayeredConfig, model: AbstractRecommender, trust: bool = False):
        super().__init__(config, model)
        self.trust = trust
        self.stop = StopRequest()
        self._saves = self._has_name = False

    @property
    def last_file(self) -> Path:
        """Where the run's last state is."""
        return last_file(self.saved_model_file)

    @property
    def is_trained(self) -> bool:
        """Whether a run that goes on has nothing left to train."""
        return self.start_epoch >= self.epochs or self.cur_step > self.stopping_step

    # ------------------------------------------------------------- writing

    @contextmanager
    def alone(self, saved: bool = True) -> Iterator[None]:
        """Within ``with``, no other run writes the files of this one, which may be ``saved`` or not."""
        self._saves = saved and bool(self.config["single_spec"])
        if not self._saves:
            yield
        elif self._has_name:
            with held(self.saved_model_file):
                yield
        else:
            with claimed(self.saved_model_file) as file:
                self.saved_model_file, self._has_name = str(file), True
                yield

    def _save_checkpoint(self, epoch: int, verbose: bool = True, **kwargs: str) -> None:
        """The model, under RecBole's name for the best one."""
        if not self.config["single_spec"] and self.config["local_rank"] != 0:
            return
        file = kwargs.get("saved_model_file", self.saved_model_file)
        self._refuse_broken_parameters()
        write_checkpoint({**self.model_state(), "epoch": epoch}, file)
        if verbose:
            self.logger.info(f"Saving current: {file}")

    def save_pretrained_model(self, epoch: int, saved_model_file: str) -> None:
        """RecBole's hook of trainers that pretrain."""
        self._save_checkpoint(epoch, verbose=False, saved_model_file=saved_model_file)
        self.saved_model_file = saved_model_file

    def _save_last(self, epoch: int, batch: int = 0, moment: Content | None = None) -> None:
        """Everything, to go on before a batch of an epoch."""
        if not self._saves:
            return
        self._refuse_broken_parameters()
        write_checkpoint(self.run_state(epoch, batch, moment), self.last_file)
        self.stop.checkpoint = self.last_file

    def mark_finished(self) -> None:
        """Note in the last state that the run was tested and its result written."""
        if self._saves:
            state = read_checkpoint(self.last_file, exactly=True)
            write_checkpoint({**state, "finished": True}, self.last_file)

    def _good_checkpoint(self) -> Path | None:
        files = (Path(self.saved_model_file), self.last_file) if self._saves else ()
        return next((file for file in files if is_there(file)), None)

    # ------------------------------------------------------------- reading

    def evaluate(
        self,
        eval_data: object,
        load_best_model: bool = True,
        model_file: str | None = None,
        show_progress: bool = False,
    ) -> dict[str, float] | None:
        """RecBole's ``evaluate``, with the model read as tensors and plain data."""
        if eval_data and load_best_model:
            file = model_file or self.saved_model_file
            # A result is of the best model, and not of the one that was the best before.
            self.load_model_state(read_checkpoint(file, trust=self.trust, exactly=True))
            self.logger.info(f"Loading model structure and parameters from {file}")
        return super().evaluate(eval_data, False, None, show_progress)

    def resume_checkpoint(self, resume_file: str) -> None:
        """RecBole's hook: go on from a file of a run."""
        file = last_file(resume_file) if is_there(last_file(resume_file)) else Path(resume_file)
        self.resume(read_checkpoint(file, trust=self.trust), file)

    def resume(self, state: Content, file: str | Path) -> None:
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
