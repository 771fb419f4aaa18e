"""The training step, put into whichever trainer RecBole picks for the model."""

from __future__ import annotations

import time

import torch
from recbole.config import Config
from recbole.data.dataloader import KnowledgeBasedDataLoader
from recbole.data.interaction import Interaction
from recbole.trainer import Trainer
from recbole.utils import get_trainer, set_color

from recbole_hns.kernels import get_kernels
from recbole_hns.models.optim import fuse
from recbole_hns.models.scorers import make_scorer
from recbole_hns.sampling import make_sampler
from recbole_hns.training.resumable import ResumableMixin


class SampledLossTrainer(Trainer):
    """RecBole's trainer with the sampled loss wherever the model's own would be the default."""

    def _train_epoch(self, train_data, epoch_idx, loss_func=None, show_progress=False):
        self._start_epoch(train_data, epoch_idx)
        return super()._train_epoch(train_data, epoch_idx, loss_func or self.sampled_loss, show_progress)


class HNSTrainerMixin(ResumableMixin):
    """Adds a negative sampler to a RecBole trainer, which can be killed and go on.

    ``fit`` builds the sampler from the training set; :meth:`sampled_loss` is one training step.
    """

    def fit(
        self,
        train_data,
        valid_data=None,
        verbose=True,
        saved=True,
        show_progress=False,
        callback_fn=None,
    ):
        """RecBole's ``fit``, after the sampler has been built."""
        self.prepare(train_data)
        self._saves = saved and bool(self.config["single_spec"])
        self._claim_name()
        if self._pending is not None and "moment" not in self._pending:
            # RecBole's own checkpoint stays as it is; ours begin with what it holds.
            self._save_checkpoint(self.start_epoch - 1, verbose=verbose)
            self._save_last(self.start_epoch)
        if self._pending is not None and self.is_trained:
            self.logger.info("This run has been trained to its end: nothing is left but the test.")
            return self.best_valid_score, self.best_valid_result
        result = super().fit(train_data, valid_data, verbose, saved, show_progress, callback_fn)
        self._save_last(self._epoch + 1 if self.train_loss_dict else self.start_epoch)
        return result

    def prepare(self, train_data) -> None:
        """Build what a training step needs."""
        config, dataset = self.config, train_data._dataset
        rank = config["local_rank"] + (config["offset"] or 0)
        kernels = get_kernels(config.spec.backend, self.device)
        self._know_data(train_data)
        loss = config.spec.pair_loss, config["reg_weight"]
        self.scorer = make_scorer(self.model, dataset, kernels, *loss)
        self.sampler = make_sampler(config.spec, dataset, self.device, config["seed"], rank)
        self._log_hardness()

    def _log_hardness(self):
        """Say which OPAUC(β) the sampler aims at, and the K of the Top-K metrics that it is bound to."""
        sampler = self.sampler
        beta = sampler.method.beta(sampler.N)
        if beta is not None:
            users = torch.arange(1, sampler.pool.user_num, device=self.device)
            K = beta * float(sampler.pool.negatives_of(users).double().mean())
            self.logger.info(
                set_color("hardness", "pink") + f": OPAUC(β = {beta:.4g}), the top {K:.3g} of a user's "
                "negatives on average, so Top-K metrics with K around that"
            )

    def sampled_loss(self, batch: Interaction) -> torch.Tensor:
        """Encode once, choose negatives without gradient, learn from them.

        ``enable_amp`` is for the model's own layers; negatives are chosen in single precision.
        """
        query = self.scorer.encode(batch)
        with torch.autocast(self.device.type, enabled=False):  # the choice takes 32 bits
            negatives = self.sampler.select(batch[self.config["USER_ID_FIELD"]], query)
        return self.scorer.loss(batch, query, negatives, self.sampler.generator)

    def _train_epoch(self, train_data, epoch_idx, loss_func=None, show_progress=False):
        self._start_epoch(train_data, epoch_idx)
        summed = self._begin_epoch(train_data, epoch_idx)
        loss = super()._train_epoch(
            train_data, epoch_idx, loss_func or summed or self.sampled_loss, show_progress
        )
        self._end_epoch()
        if summed is not None:
            loss = self._loss
        total = sum(loss) if isinstance(loss, tuple) else loss
        row = {"epoch": epoch_idx, "train_loss": total, "train_seconds": self._seconds}
        self.history.append(row)
        return loss

    def _valid_epoch(self, valid_data, show_progress=False):
        start = time.perf_counter()
        self._validating = self._moment()
        score, result = super()._valid_epoch(valid_data, show_progress)
        self._validating = None
        seen = [row["score"] for row in self.history if "score" in row]
        best = all(score >= other if self.valid_metric_bigger else score <= other for other in seen)
        row = {
            "valid_seconds": time.perf_counter() - start,
            "score": score,
            "valid": result,
            "best": best,
        }
        self.history[-1].update(row)
        return score, result

    def _start_epoch(self, train_data, epoch_idx):
        """Everything that changes with the epoch is a function of it, so resuming needs no state."""
        if isinstance(train_data, KnowledgeBasedDataLoader):
            train_data = train_data.general_dataloader
        train_data.set_epoch(epoch_idx)
        self.sampler.start_epoch(epoch_idx)
        if self.config["lr_step_size"]:
            decay = self.config["lr_gamma"] ** (epoch_idx // self.config["lr_step_size"])
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rate * decay

    def _build_optimizer(self, **kwargs):
        """RecBole's optimiser, fused where it can be."""
        optimizer = fuse(super()._build_optimizer(**kwargs))
        if isinstance(optimizer, torch.optim.SparseAdam):
            for module in self.model.modules():
                if isinstance(module, torch.nn.Embedding):
                    module.sparse = True  # torch's own mark of a table that takes sparse gradients
        return optimizer


def make_trainer(config: Config, model: torch.nn.Module) -> Trainer:
    """RecBole's trainer for the model, with hard negative sampling.

    Some RecBole trainers pass the loss on, some call the plain epoch without it (KG), some write the
    epoch anew (NCL): the mixin in front and the class behind catch them all.
    """
    base = get_trainer(config["MODEL_TYPE"], config["model"])
    behind = () if base is Trainer else (base,)
    bases = (HNSTrainerMixin, *behind, SampledLossTrainer)
    return type(f"HNS{base.__name__}", bases, {})(config, model)
