"""What runs can name: parts of four kinds, and methods, by name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import Any, TypeVar, overload

import msgspec

from recbole_hns.errors import Error
from recbole_hns.settings.parts import Part, settings_of
from recbole_hns.settings.words import nearest, plain_word

GROUP = "recbole_hns.parts"  # of entry points: packages whose import registers parts
C = TypeVar("C")

_SAME_NAMES = {"rule": "method", "method": "rule"}  # both are what `sampler` can name

_TABLES: dict[str, dict[str, Any]] = {}
_IMPORTED: list[str] = []  # modules that were imported for their parts, for workers to import too
_OWNERS: dict[tuple[str, str], str] = {}  # the module that registered a part


@overload
def register(part: C, *, name: str | None = None) -> C: ...
@overload
def register(*, name: str | None = None) -> Callable[[C], C]: ...
def register(part: C | None = None, *, name: str | None = None) -> C | Callable[[C], C]:
    """Make a part, or a method, known by name: on the command line, in files, searches and reports.

    ``@register`` over a subclass of Pool, Rule, Loss or Scorer takes the class's name in small letters;
    ``register(Method(…), name="…")`` names a combination.

    Raises:
        Error: if the name is taken.
    """
    owner = str(sys._getframe(1).f_globals.get("__name__", ""))
    if part is None:
        return lambda one: _enter(one, name, owner)
    _enter(part, name, owner)
    return part


def _enter(part: Any, name: str | None, owner: str) -> Any:
    kind = getattr(part, "kind", "")
    if not kind or not (isinstance(part, type) or kind == "method"):
        raise Error(
            f"{part!r} cannot be registered: it is no Pool, Rule, Loss or Scorer, and no Method."
        )
    if not isinstance(part, type) and name is None:
        raise Error("a method is registered under a name: register(Method(…), name='…').")
    own = name or part.part_name()
    _refuse_required(own, part)
    taken = [table(k)[own] for k in (kind, _SAME_NAMES.get(kind, kind)) if own in table(k)]
    if taken and not _is_reload(taken[0], part):
        raise Error(f"the name {own} is taken by {_describe(taken[0])}: choose another name.")
    table(kind)[own] = part
    _OWNERS[kind, own] = owner
    return part


def _refuse_required(name: str, part: Any) -> None:
    """A part must be something without a word from the user: what can be chosen by name is so made."""
    for one in settings_of(part) if isinstance(part, type) and issubclass(part, Part) else ():
        if one.default is msgspec.NODEFAULT:
            raise Error(f"{name} cannot be registered: its setting {one.key} needs a default.")


def table(kind: str) -> dict[str, Any]:
    """Everything of a kind by name, in the order of registration."""
    return _TABLES.setdefault(kind, {})


def find(kind: str, name: object, key: str | None = None) -> Any:
    """The part of that name, or a sentence with the names that there are."""
    known = table(kind)
    if not isinstance(name, str) or name not in known:
        word = plain_word(name)
        raise Error(
            f"{key or kind}={word} is unknown{nearest(word, known)}: choose one of {', '.join(known)}."
        )
    return known[name]


def name_of(part: Part) -> str:
    """The name under which a part's class is registered; of an unregistered one, the class's."""
    return name_of_class(type(part))


def name_of_class(part: type[Part]) -> str:
    """Likewise, of the class."""
    known = table(part.kind).items()
    return next((name for name, one in known if one is part), part.part_name())


def import_parts(modules: Iterable[str]) -> None:
    """Import modules that register parts: ``--import`` and the entry points of installed packages."""
    for module in modules:
        if module in _IMPORTED:
            continue
        if "" not in sys.path:
            sys.path.insert(0, "")  # as python -m does: modules of the folder one stands in
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module.partition(".")[0] and error.name != module:
                raise
            raise Error(
                f"import={module} is not found: it must be a module on Python's path."
            ) from error
        _IMPORTED.append(module)


def import_installed() -> None:
    """Import what installed packages declare under the entry-point group ``recbole_hns.parts``."""
    import_parts(entry.value.partition(":")[0] for entry in metadata.entry_points(group=GROUP))


def imported() -> list[str]:
    """The modules imported for their parts."""
    return list(_IMPORTED)


def registered_here() -> Iterator[tuple[str, str, Any]]:
    """(kind, name, part) of what no importable module registers: workers are handed these themselves."""
    for (kind, name), owner in _OWNERS.items():
        if not owner.startswith("recbole_hns.") and owner not in _IMPORTED:
            yield kind, name, _TABLES[kind][name]


def adopt(parts: Iterable[tuple[str, str, Any]]) -> None:
    """Take over what another process has registered."""
    for kind, name, part in parts:
        table(kind)[name] = part
        _OWNERS[kind, name] = ""


def _is_reload(old: Any, new: Any) -> bool:
    """A notebook's cell, or a module, that is run again."""
    same = (getattr(old, "__module__", None), getattr(old, "__qualname__", None))
    if not isinstance(new, type):  # a method
        return bool(old == new)
    return same == (new.__module__, new.__qualname__)


def _describe(part: Any) -> str:
    return f"{part.__module__}.{part.__qualname__}" if isinstance(part, type) else repr(part)
