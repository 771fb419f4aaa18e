"""Whether a model and a sampler go together: what can be seen before data is loaded."""

from __future__ import annotations

from recbole.utils import InputType, ModelType

from recbole_hns.bridge.config import LayeredConfig, uses_sparse_adam
from recbole_hns.errors import Error
from recbole_hns.models.cards import has_pair_loss, has_vectors, missing_package, scorer_of, why_not
from recbole_hns.settings.registry import name_of


def check_config(config: LayeredConfig) -> None:
    """Refuse a model and a sampler that do not go together."""
    refuse_models_without_pairs(config)
    refuse_what_the_loss_cannot_take(config)
    refuse_dense_gradients(config)


def refuse_models_that_never_train(config: LayeredConfig) -> None:
    """Refuse a model that learns from no pairs, however the rest of its configuration is."""
    model_class = getattr(config, "model_class", None)
    if model_class is not None:
        # Sequential models say by loss_type what they take.
        _refuse(config, model_class.type, getattr(model_class, "input_type", InputType.PAIRWISE))


def _refuse(config: LayeredConfig, kind: ModelType, input_type: InputType) -> None:
    why = why_not(config.model_class, config.model, kind, input_type)
    if why:
        raise Error(
            f"{config.model} {why}: choose a pairwise model such as BPR, LightGCN or SASRec "
            "(`recbole-hns models` lists them)."
        )


def refuse_models_without_pairs(config: LayeredConfig) -> None:
    """Refuse what cannot be trained on pairs, and what goes with a model that it is not."""
    _refuse(config, config["MODEL_TYPE"], config["MODEL_INPUT_TYPE"])
    package = missing_package(config.model)
    if package:
        raise Error(f"{config.model} needs the package {package}, which is not installed.")
    if config["MODEL_TYPE"] == ModelType.KNOWLEDGE and config["save_dataloaders"]:
        raise Error(
            f"save_dataloaders=True is not possible with {config.model}: RecBole cannot save the "
            "loaders of knowledge-aware models."
        )
    if config["MODEL_TYPE"] != ModelType.SEQUENTIAL and str(config["transform"]).endswith("_itemseq"):
        raise Error(
            f"transform={config['transform']} is not possible with {config.model}: it changes item "
            "sequences, which sequential models alone have; leave it out."
        )
    if config["train_stage"] == "pretrain":
        raise Error(
            f"train_stage=pretrain draws {config.model}'s negatives by itself: pretrain it with "
            "RecBole, then set train_stage=finetune and pre_model_path."
        )


def refuse_what_the_loss_cannot_take(config: LayeredConfig) -> None:
    """Refuse a sampler, or a pair loss, that the model's scores or loss cannot go with."""
    method, sampler = config.method, config.sampler
    if method.why_vectors() and not has_vectors(config.model_class):
        raise Error(
            f"sampler={sampler} cannot train {config.model}: it {method.why_vectors()}, which takes a "
            "model that scores by a dot product (BPR, LightGCN, SASRec, …), or another sampler."
        )
    if has_pair_loss(config.model_class):
        return
    if method.why_pair_loss():
        raise Error(
            f"sampler={sampler} cannot train {config.model}: it {method.why_pair_loss()}, and "
            f"{config.model} learns from one negative by a loss of its own; use another sampler."
        )
    if "pair_loss" in config.given.typed():
        raise Error(
            f"pair_loss={name_of(method.loss)} would have no effect: {config.model} learns by a loss of "
            "its own; leave it out, or choose a model that `recbole-hns models` calls fused or "
            "composed."
        )


def refuse_dense_gradients(config: LayeredConfig) -> None:
    """Refuse ``sparse_adam`` where gradients are not of single rows."""
    learner = f"learner={config['learner']}"
    if not uses_sparse_adam(config.final_config_dict):
        return
    if not scorer_of(config.model_class).sparse_gradient:
        raise Error(
            f"{learner} cannot train {config.model}: it takes gradients of single rows of embedding "
            f"tables, and {config.model}'s reach all rows or other parameters: use learner=adam, or a "
            "model that only looks its rows up, as MF (RecBole's BPR) does."
        )
    if config.method.pool.dense_gradient:
        raise Error(
            f"{learner} cannot train with sampler={config.sampler}, whose gradient reaches every "
            "item in every step: use learner=adam, or a sampler that draws."
        )
    if config["clip_grad_norm"]:
        raise Error(
            f"clip_grad_norm={config['clip_grad_norm']} cannot be used with {learner}: torch has no "
            "norm of gradients of single rows; use learner=adam, or leave it out."
        )
    if "nproc" in config.given.values:
        raise Error(
            f"{learner} works in one process only, because RecBole adds up whole tables of "
            "gradients among several: use learner=adam, or leave --nproc and --world_size out."
        )
