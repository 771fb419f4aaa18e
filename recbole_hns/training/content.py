"""What the parts of a checkpoint are: checked as they are read, before anything is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from recbole_hns.errors import Error

MOST_VALUES = 10_000_000  # in all that is no tensor

_NUMBER = (int, float)
_NOTHING = type(None)
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("model", "dataset"), (str,)),
    **dict.fromkeys(("settings", "final", "state_dict", "optimizer", "moment", "versions"), (dict,)),
    **dict.fromkeys(("epoch", "batch", "cur_step"), (int,)),
    **dict.fromkeys(("seconds", "best_valid_score"), _NUMBER),
    "data": (str, _NOTHING),
    "loss": (*_NUMBER, list, tuple, torch.Tensor, _NOTHING),
    **dict.fromkeys(("best_valid_result", "other_parameter"), (dict, _NOTHING)),
    "history": (list,),
    "finished": (bool,),
}
_MOMENT: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("random", "sampler", "memory"), (dict,)),
    "generator": (torch.Tensor,),
    "loaders": (list,),
}
_OF_A_RUN = ("epoch", "cur_step", "best_valid_score", "moment")


def refuse_wrong_kinds(content: Mapping[str, Any], file: Path) -> None:
    """Refuse a checkpoint whose parts are not what their names say."""
    wrong = _wrong_part(content)
    if wrong is not None:
        raise Error(f"checkpoint {file} is malformed: {wrong}.")


def _wrong_part(content: Mapping[str, Any]) -> str | None:
    for key, value in content.items():
        if key in _KINDS and not _is_a(value, _KINDS[key]):
            return f"its {key} is a {type(value).__name__}"
    tensors = content["state_dict"].items()
    if not all(isinstance(name, str) and isinstance(one, torch.Tensor) for name, one in tensors):
        return "its state_dict holds more than tensors by name"
    if not all(isinstance(name, str) for name in content.get("other_parameter") or ()):
        return "its other_parameter has no names"
    for key in ("settings", "final", "history", "best_valid_result", "versions"):
        if key in content and not _is_plain(content[key]):
            return f"its {key} holds more than plain data"
    if not all(isinstance(row, dict) and _is_a(row.get("epoch"), (int,)) for row in _history(content)):
        return "a row of its history is none"
    # A run of epochs=0 saves its model before the first epoch, which is number -1.
    if content.get("epoch", 0) < -1 or any(content.get(key, 0) < 0 for key in ("batch", "cur_step")):
        return "it counts from below 0"
    return _wrong_run(content) if "optimizer" in content else None


def _wrong_run(content: Mapping[str, Any]) -> str | None:
    missing = [key for key in _OF_A_RUN if key not in content]
    if missing:
        return f"it has no {missing[0]}"
    moment = content["moment"]
    for key, kinds in _MOMENT.items():
        if not _is_a(moment.get(key), kinds):
            return f"the {key} of its moment is a {type(moment.get(key)).__name__}"
    if not all(isinstance(name, str) for name in moment["memory"]):
        return "the memory of its moment has no names"
    return None


def _history(content: Mapping[str, Any]) -> list[Any]:
    rows: list[Any] = content.get("history", [])
    return rows


def _is_a(value: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _is_plain(value: Any) -> bool:
    """Words, numbers, and lists and mappings of them, of a size that is no trap."""
    try:
        return _count(value, {}) <= MOST_VALUES
    except (TypeError, RecursionError):
        return False


def _count(value: Any, known: dict[int, int]) -> int:
    """How many values there are, each looked at once, however often it is repeated."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return 1
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a key that is no word")
        members = list(value.values())
    elif isinstance(value, (list, tuple)):
        members = list(value)
    else:
        raise TypeError(f"a {type(value).__name__}")
    known[id(value)] = 1 + sum(_count(one, known) for one in members)
    return known[id(value)]
