"""The sampler of a run: checked once, when the configuration is built."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from recbole_hns import checks
from recbole_hns.errors import HNSError
from recbole_hns.kernels import BACKENDS
from recbole_hns.sampler.method import POOL_KEYS, Method, read_settings
from recbole_hns.sampler.pool import POOLS
from recbole_hns.sampler.registry import SAMPLERS, Entry, get_entry


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

    @classmethod
    def from_config(
        cls, config: dict[str, Any], given: Iterable[str] = (), model_keys: Iterable[str] = ()
    ) -> SamplerSpec:
        """Read the spec out of a configuration.

        ``given`` are the keys that the user wrote, ``model_keys`` those that the model has too.
        """
        entry = get_entry(config["sampler"])
        _refuse_foreign_keys(entry, set(given) - set(model_keys))
        N = None
        if "N" in entry.keys:
            N = checks.integer(config, "N", "the number of candidates drawn per pair")
        method = entry.method(**read_settings(entry.method, config))
        method.check(N)
        alpha = checks.number(config, "pool_alpha", "the power of an item's count")
        if alpha < 0:
            raise HNSError(f"pool_alpha={alpha} is negative: the power of an item's count is ≥ 0.")
        return cls(
            sampler=entry.name,
            method=method,
            N=N,
            pool=entry.pool or checks.one_of(config, "pool", POOLS),
            pool_alpha=alpha,
            pool_block=checks.integer(config, "pool_block", "the number of pairs that share candidates"),
            backend=checks.one_of(config, "hns_backend", BACKENDS),
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
        return {"sampler": self.sampler, **own, **values, "hns_backend": self.backend}

    def __str__(self) -> str:
        values = [f"{k}={v}" for k, v in self.settings.items() if k not in ("sampler", "hns_backend")]
        return f"{self.sampler}({', '.join(values)})"


def sampler_keys() -> set[str]:
    """The settings of all samplers together."""
    return {key for entry in SAMPLERS.values() for key in entry.keys}


def _refuse_foreign_keys(entry: Entry, given: set[str]) -> None:
    foreign = sorted((sampler_keys() - set(entry.keys)) & given)
    if foreign:
        has = ", ".join(entry.keys) or "none"
        raise HNSError(f"{foreign[0]} is not a setting of sampler={entry.name}, which has {has}.")
