"""Hard negative sampling for RecBole.

Shi et al., "On the Theories Behind Hard Negative Sampling for Recommendation", WWW 2023.

Everything here is loaded when it is first used; importing the package changes nothing in others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from recbole_hns import losses
    from recbole_hns.api import train, tune
    from recbole_hns.errors import Error
    from recbole_hns.losses import Loss
    from recbole_hns.models.scorer import Scorer
    from recbole_hns.runs.artifact import load
    from recbole_hns.runs.config import HNSConfig
    from recbole_hns.runs.run import run_recbole_hns
    from recbole_hns.sampling import DotQuery, Method, Pool, Rule, World, pools, rules, step
    from recbole_hns.settings.registry import register
    from recbole_hns.training.stopping import RunStopped

_WHERE = {  # name: the module that has it
    "train": "api",
    "load": "runs.artifact",
    "tune": "api",
    "Method": "sampling",
    "Pool": "sampling",
    "Rule": "sampling",
    "Loss": "losses",
    "Scorer": "models.scorer",
    "register": "settings.registry",
    "Error": "errors",
    # for a loop of one's own
    "World": "sampling",
    "DotQuery": "sampling",
    "step": "sampling",
    # as RecBole's users know it
    "run_recbole_hns": "runs.run",
    "HNSConfig": "runs.config",
    "RunStopped": "training.stopping",
}
_MODULES = {"pools": "sampling.pools", "rules": "sampling.rules", "losses": "losses"}

__all__ = [
    "DotQuery",
    "Error",
    "HNSConfig",
    "Loss",
    "Method",
    "Pool",
    "Rule",
    "RunStopped",
    "Scorer",
    "World",
    "load",
    "losses",
    "pools",
    "register",
    "rules",
    "run_recbole_hns",
    "step",
    "train",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"recbole_hns.{_MODULES[name]}")
    if name in _WHERE:
        return getattr(import_module(f"recbole_hns.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'recbole_hns' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
