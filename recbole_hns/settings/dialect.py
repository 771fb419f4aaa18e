"""One dialect for property files, search files and the command line: YAML 1.2's core schema.

``1e-3`` is a number, ``no`` a word, and a key stands once. RecBole's users also write Python's ``None``,
which means null here too. No tag builds an object: nothing that is read can run code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import yaml

from recbole_hns.errors import Error
from recbole_hns.files import a_path
from recbole_hns.settings.words import shown

MOST_LETTERS = 1_000_000  # of a file of settings
MOST_VALUES = 100_000  # that it may stand for

# PyYAML's own, and what its constructors raise for a tag that its value does not go with.
_UNREADABLE = (
    *(yaml.YAMLError, ValueError, RecursionError, ArithmeticError),
    *(AttributeError, KeyError, TypeError),
)

_CORE = {  # tag: what is written so, and the characters it can begin with
    "null": (r"~|null|Null|NULL|None|", "~nN\0"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
}


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which speaks YAML 1.1, with the words of 1.2."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    composed = 0  # values so far

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node:
        """A value and all within it: no more of them than a file may hold."""
        self.composed += 1
        _refuse_many(self.composed)
        node: yaml.Node = super().compose_node(parent, index)
        return node

    def get_single_data(self) -> Any:
        """The content, in which nothing holds itself, as an alias within its own anchor would.

        What aliases repeat is counted before anything is built: a few lines can stand for more values
        than there is memory.
        """
        node = self.get_single_node()
        if node is None:
            return None
        _refuse_many(_count(node, {}))
        return self.construct_document(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are all different: with PyYAML the last of equal ones would win."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (str, int, float, bool)) and key in seen:
                mark = key_node.start_mark
                raise yaml.constructor.ConstructorError(None, None, f"the key {key} stands twice", mark)
            if isinstance(key, (str, int, float, bool)):
                seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


class _Dumper(yaml.SafeDumper):
    """Quotes what YAML 1.1 or 1.2 would take for something else than a word."""


def _refuse_many(values: int) -> None:
    if values > MOST_VALUES:
        raise yaml.YAMLError(f"it stands for more than {MOST_VALUES:,} values")


def _count(node: yaml.Node, known: dict[int, int | None]) -> int:
    """How many values a node stands for; every node is counted once, whatever aliases repeat it."""
    if id(node) in known:
        count = known[id(node)]
        if count is None:
            raise yaml.YAMLError("a value holds itself")
        return count
    known[id(node)] = None  # being counted
    members = node.value if isinstance(node, yaml.CollectionNode) else ()
    if isinstance(node, yaml.MappingNode):
        members = [one for pair in node.value for one in pair]
    known[id(node)] = count = 1 + sum(_count(one, known) for one in members)
    return count


def _read_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _read_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node).lower().replace(".inf", "inf").replace(".nan", "nan"))


def _write_str(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Escaped where a line would end that is none: PyYAML loses such characters otherwise."""
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


for _tag, (_pattern, _first) in _CORE.items():
    for _class in (_Loader, _Dumper):
        _compiled = re.compile(rf"^(?:{_pattern})$")
        _starts = ["" if c == "\0" else c for c in _first]
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _compiled, _starts)
_Dumper.add_representer(str, _write_str)
_Loader.add_constructor("tag:yaml.org,2002:int", _read_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _read_float)


def read_yaml(file: str | Path, what: str = "config file") -> dict[str, Any]:
    """The ``key: value`` lines of a file."""
    try:
        with open(a_path(file), encoding="utf-8-sig") as stream:
            text = stream.read(MOST_LETTERS + 1)
        if len(text) > MOST_LETTERS:
            raise Error(f"{what} {file} is longer than {MOST_LETTERS:,} characters.")
        content = yaml.load(text, Loader=_Loader)
    except Error:
        raise
    except OSError as error:
        raise Error(f"{what} {file} cannot be read: {error.strerror}.") from error
    except _UNREADABLE as error:
        reason = " ".join(str(error).split())
        raise Error(f"{what} {file} is not valid YAML: {reason}.") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise Error(f"{what} {file} must hold `key: value` lines.")
    for key in content:
        if not isinstance(key, str):
            raise Error(f"{what} {file} has the key {shown(key)}: keys are words.")
    return content


def to_yaml(values: Mapping[str, Any]) -> str:
    """Lines that :func:`read_yaml`, and RecBole, read as these values again."""
    return str(yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True))


def parse_value(text: str) -> Any:
    """What a value on the command line spells: as in a file, where a file would have it on one line."""
    if "\n" in text:
        return text
    try:
        node = yaml.compose(text, Loader=_Loader)
        if node is None or (isinstance(node, yaml.CollectionNode) and not node.flow_style):
            return text  # nothing, a comment, `a: b` or `- a`: words
        if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
            return text  # a block of lines, which no single line is
        return yaml.load(text, Loader=_Loader)
    except _UNREADABLE:
        return text  # such as [5,inf)


def read_command_line(arguments: Sequence[str]) -> dict[str, Any]:
    """Settings given as ``--key=value``."""
    values: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument[2:].partition("=")
        if not argument.startswith("--") or not key or not equals:
            raise Error(f"argument {argument!r} is not understood: write --key=value.")
        if values.setdefault(key, value) != value:
            raise Error(f"--{key} is given twice, as {values[key]} and as {value}: give it once.")
    return {key: parse_value(value) for key, value in values.items()}
