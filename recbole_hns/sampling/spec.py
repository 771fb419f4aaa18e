"""The sampler of a run: checked once, when the configuration is built."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from recbole_hns.errors import Error
from recbole_hns.kernels import BACKENDS
from recbole_hns.losses import PAIR_LOSSES, PairLoss
from recbole_hns.sampling.method import POOL_KEYS, Method
from recbole_hns.sampling.pools import POOLS
from recbole_hns.sampling.registry import SAMPLERS, Entry, get_entry
from recbole_hns.settings import checks
from recbole_hns.settings.checks import read_settings


@dataclass(frozen=True)
class SamplerSpec:
    """A sampler's name with all its settings."""

    sampler: str
    method: Method
    N: int | None  # None where the method has no number of candidates
    pool: str
    pool_alpha: float
    pool_block: int
    backend: str
    pair_loss: PairLoss

    @classmethod
    def from_config(
        cls, config: dict[str, Any], given: Iterable[str] = (), model_keys: Iterable[str] = ()
    ) -> SamplerSpec:
        """Read the spec out of a configuration.

        ``given`` are the keys that the user wrote, ``model_keys`` those that the model has too.
        """
        entry = get_entry(config["sampler"])
        given = set(given) - set(model_keys)
        _refuse_foreign_keys(entry, given)
        N = None
        if "N" in entry.keys:
            N = checks.integer(config, "N", "the number of candidates drawn per pair")
        method = entry.method(**read_settings(entry.method, config))
        method.check(N)
        alpha = checks.number(config, "pool_alpha", "the power of an item's count")
        if alpha < 0:
            raise Error(f"pool_alpha={alpha} is negative: the power of an item's count is ≥ 0.")
        return cls(
            sampler=entry.name,
            method=method,
            N=N,
            pool=entry.pool or checks.one_of(config, "pool", POOLS),
            pool_alpha=alpha,
            pool_block=checks.integer(config, "pool_block", "the number of pairs that share candidates"),
            backend=checks.one_of(config, "hns_backend", BACKENDS),
            pair_loss=_read_pair_loss(config, entry, given),
        )

    @property
    def entry(self) -> Entry:
        """The sampler as it is registered."""
        return SAMPLERS[self.sampler]

    @property
    def settings(self) -> dict[str, Any]:
        """The sampler and everything that it was set to, for results and logs."""
        values = {key: getattr(self, key) for key in POOL_KEYS if key in self.entry.keys}
        own = {key: getattr(self.method, key) for key in self.entry.own_keys}
        loss = {"pair_loss": self.loss_name, **asdict(self.pair_loss)}
        return {"sampler": self.sampler, **own, **values, **loss, "hns_backend": self.backend}

    @property
    def loss_name(self) -> str:
        """The name of the pair loss."""
        return next(name for name, loss in PAIR_LOSSES.items() if type(self.pair_loss) is loss)

    def __str__(self) -> str:
        values = [f"{k}={v}" for k, v in self.settings.items() if k not in ("sampler", "hns_backend")]
        return f"{self.sampler}({', '.join(values)})"


def sampler_keys() -> set[str]:
    """The settings of all samplers together."""
    return {key for entry in SAMPLERS.values() for key in entry.keys}


def pair_loss_keys() -> dict[str, str]:
    """The settings of all pair losses, and the loss that each goes with."""
    return {one.name: name for name, loss in PAIR_LOSSES.items() for one in fields(loss)}


def _read_pair_loss(config: dict[str, Any], entry: Entry, given: set[str]) -> PairLoss:
    name = checks.one_of(config, "pair_loss", PAIR_LOSSES)
    loss, method = PAIR_LOSSES[name], entry.method
    if method.pair_loss not in (None, name):
        raise Error(
            f"pair_loss={name} is not allowed: sampler={entry.name} is defined with "
            f"pair_loss={method.pair_loss}; leave it out, or use another sampler."
        )
    if loss.needs_log_q and not method.knows_q:
        raise Error(
            f"pair_loss={name} corrects for how often an item is drawn, which sampler={entry.name} does "
            "not know of what it draws: use pair_loss=infonce, or another sampler."
        )
    defaults = {one.name: one.default for one in fields(loss)}
    for key, owner in pair_loss_keys().items():
        if key in given and key not in defaults:
            raise Error(f"{key} is not a setting of pair_loss={name}: it goes with pair_loss={owner}.")
    return loss(**read_settings(loss, {**defaults, **config}))


def _refuse_foreign_keys(entry: Entry, given: set[str]) -> None:
    foreign = sorted((sampler_keys() - set(entry.keys)) & given)
    if foreign:
        key, has = foreign[0], ", ".join(entry.keys) or "none"
        owners = [name for name, other in SAMPLERS.items() if key in other.keys]
        owners = " or ".join(owners) if len(owners) < 4 else ", ".join([*owners[:3], "…"])
        raise Error(
            f"{key} is not a setting of sampler={entry.name}, which has {has}: it goes with "
            f"sampler={owners}."
        )
