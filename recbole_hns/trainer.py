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
from recbole_hns.optim import fuse
from recbole_hns.sampler import make_sampler
from recbole_hns.scorer import make_scorer


class SampledLossTrainer(Trainer):
    """RecBole's trainer with the sampled loss wherever the model's own would be the default."""

    def _train_epoch(self, train_data, epoch_idx, loss_func=None, show_progress=False):
        self._start_epoch(train_data, epoch_idx)
        return super()._train_epoch(train_data, epoch_idx, loss_func or self.sampled_loss, show_progress)


class HNSTrainerMixin:
    """Adds a negative sampler to a RecBole trainer.

    ``fit`` builds the sampler from the training set; :meth:`sampled_loss` is one training step.
    """

    def __init__(self, config, model):
        super().__init__(config, model)
        # RecBole's own hook: what is named here goes into the checkpoint, and comes back from it.
        names = getattr(model, "other_parameter_name", [])
        model.other_parameter_name = [*names, "sampler_state"]
        model.sampler_state = {}
        self.history: list[dict] = []  # of every epoch: its loss, times and validation

    def fit(self, train_data, *args, **kwargs):
        """RecBole's ``fit``, after the sampler has been built."""
        self.prepare(train_data)
        return super().fit(train_data, *args, **kwargs)

    def prepare(self, train_data) -> None:
        """Build what a training step needs."""
        config, dataset = self.config, train_data._dataset
        rank = config["local_rank"] + (config["offset"] or 0)
        kernels = get_kernels(config.spec.backend, self.device)
        self.scorer = make_scorer(self.model, dataset, kernels, config.spec.pair_loss)
        self.sampler = make_sampler(config.spec, dataset, self.device, config["seed"], rank)
        self._restore_sampler()
        self._log_hardness()

    def _restore_sampler(self):
        """Go on with the sampler of a checkpoint that was loaded, if it holds one of this kind."""
        loaded, name = self.model.sampler_state, self.config.spec.sampler
        if loaded.get(name):
            self.sampler.load_state_dict(loaded[name])
        elif loaded and self.sampler.state_dict():
            self.logger.warning(
                f"the checkpoint holds nothing of sampler={name}, which therefore begins anew."
            )

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
        """Encode once, choose negatives without gradient, learn from them."""
        query = self.scorer.encode(batch)
        with torch.autocast(self.device.type, enabled=False):  # the choice takes 32 bits
            negatives = self.sampler.select(batch[self.config["USER_ID_FIELD"]], query)
        return self.scorer.loss(batch, query, negatives, self.sampler.generator)

    def _train_epoch(self, train_data, epoch_idx, loss_func=None, show_progress=False):
        start = time.perf_counter()
        self._start_epoch(train_data, epoch_idx)
        loss = super()._train_epoch(train_data, epoch_idx, loss_func or self.sampled_loss, show_progress)
        total = sum(loss) if isinstance(loss, tuple) else loss
        seconds = time.perf_counter() - start
        self.history.append({"epoch": epoch_idx, "train_loss": total, "train_seconds": seconds})
        return loss

    def _valid_epoch(self, valid_data, show_progress=False):
        start = time.perf_counter()
        score, result = super()._valid_epoch(valid_data, show_progress)
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

    def _save_checkpoint(self, *args, **kwargs):
        """RecBole's checkpoint, with what the sampler has learned."""
        self.model.sampler_state = {self.config.spec.sampler: self.sampler.state_dict()}
        super()._save_checkpoint(*args, **kwargs)


def make_trainer(config: Config, model: torch.nn.Module) -> Trainer:
    """RecBole's trainer for the model, with hard negative sampling.

    Some RecBole trainers pass the loss on, some call the plain epoch without it (KG), some write the
    epoch anew (NCL): the mixin in front and the class behind catch them all.
    """
    base = get_trainer(config["MODEL_TYPE"], config["model"])
    behind = () if base is Trainer else (base,)
    bases = (HNSTrainerMixin, *behind, SampledLossTrainer)
    return type(f"HNS{base.__name__}", bases, {})(config, model)
