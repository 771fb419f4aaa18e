"""Parts: frozen objects whose fields are settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec

from recbole_hns.errors import Error
from recbole_hns.settings.kinds import About, Kind, about_of, convert

P = TypeVar("P", bound="Part")


class Setting(NamedTuple):
    """A field of a part, as the command line and a property file know it."""

    key: str
    field: str
    kind: Kind
    default: Any  # msgspec.NODEFAULT where a value must be given

    @property
    def about(self) -> About:
        """What it is for."""
        return about_of(self.kind)


class Part(msgspec.Struct, frozen=True):
    """What methods are made of: pools, rules, losses, and scorers.

    A subclass declares its settings as annotated fields. From them come the keys of the command line and
    of property files, checks, help, labels in reports and what a search varies by default. A part that
    exists is one whose settings are allowed.
    """

    kind: ClassVar[str] = ""  # pool, rule, loss, scorer: set by the four base classes
    name: ClassVar[str] = ""  # what users write; of the class's name unless given
    title: ClassVar[str] = ""  # what reports write

    def __post_init__(self) -> None:
        for one in settings_of(type(self)):
            value = convert(one.key, getattr(self, one.field), one.kind, why=one.about.text)
            msgspec.structs.force_setattr(self, one.field, value)

    @classmethod
    def part_name(cls) -> str:
        """``name``, or the class's name in small letters: SoftmaxV is softmax_v."""
        return str(vars(cls).get("name") or small(cls.__name__))

    @classmethod
    def about(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or cls.__name__).strip().splitlines()[0]

    @classmethod
    def from_settings(cls: type[P], values: Mapping[str, Any], but: P | None = None) -> P:
        """The part with those of its settings that ``values`` has, and else as ``but`` has them."""
        given = {one.field: values[one.key] for one in settings_of(cls) if one.key in values}
        if but is not None:
            given = {**{one.field: getattr(but, one.field) for one in settings_of(cls)}, **given}
        missing = [
            one.key
            for one in settings_of(cls)
            if one.field not in given and one.default is msgspec.NODEFAULT
        ]
        if missing:
            raise Error(f"{cls.part_name()} needs {missing[0]}: give --{missing[0]}=….")
        return cls(**given)

    @property
    def settings(self) -> dict[str, Any]:
        """What the part is set to, by key."""
        return {one.key: getattr(self, one.field) for one in settings_of(type(self))}


def small(name: str) -> str:
    """A class's name in small letters: SoftmaxV is softmax_v."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@cache
def settings_of(part: type[Part]) -> tuple[Setting, ...]:
    """The settings that a kind of part declares."""
    fields = msgspec.structs.fields(part)
    return tuple(Setting(one.encode_name, one.name, one.type, _default(one)) for one in fields)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    """A field's default; a list or mapping is one made anew."""
    made_anew = field.default_factory
    return field.default if made_anew is msgspec.NODEFAULT else made_anew()
