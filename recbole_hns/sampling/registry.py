"""The samplers by name. A package of your own can add to them; the README has an example."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import Any

from recbole_hns.errors import Error
from recbole_hns.sampling.method import Method
from recbole_hns.sampling.sampler import NegativeSampler
from recbole_hns.settings.checks import nearest


@dataclass(frozen=True)
class Entry:
    """A sampler that a run can name."""

    name: str
    method: type[Method]
    sampler: type[NegativeSampler]
    about: str  # one line
    pool: str | None = None  # the pool that the name stands for; None where `pool` chooses
    N: int | None = None  # the default number of candidates, unless a property file says so

    @cached_property
    def own_keys(self) -> list[str]:
        """The method's own settings."""
        return [one.name for one in fields(self.method)]

    @cached_property
    def keys(self) -> list[str]:
        """Every setting that the sampler heeds."""
        general = [key for key in self.method.takes if self.pool is None or key != "pool"]
        if self.pool == "uniform":
            general = [key for key in general if key != "pool_alpha"]
        return [*self.own_keys, *general]

    @property
    def defaults(self) -> dict[str, Any]:
        """What the sampler sets below its property file."""
        own = fields(self.method)
        values = {one.name: one.default for one in own if one.default is not MISSING}
        if self.N is not None:
            values["N"] = self.N
        return values


SAMPLERS: dict[str, Entry] = {}


def register_sampler(
    name: str,
    method: type[Method],
    sampler: type[NegativeSampler] = NegativeSampler,
    pool: str | None = None,
    about: str | None = None,
    N: int | None = 200,
) -> None:
    """Make a sampler known under ``--sampler=name``.

    Args:
        name: what users write.
        method: the settings as a frozen dataclass; a :class:`Rule` also says how candidates are weighed.
        sampler: the class that draws, where a pool and a rule are not enough.
        pool: the pool that the name stands for, if it stands for one.
        about: one line for lists; the first line of the method's docstring by default.
        N: the default number of candidates.
    """
    if about is None:
        about = (method.__doc__ or name).strip().splitlines()[0]
    SAMPLERS[name] = Entry(name, method, sampler, about, pool, N)


def get_entry(name: Any) -> Entry:
    """The sampler of that name."""
    if str(name) not in SAMPLERS:
        raise Error(
            f"sampler={name} is unknown{nearest(name, SAMPLERS)}: choose one of {', '.join(SAMPLERS)}."
        )
    return SAMPLERS[str(name)]
