"""A JSON Schema of all settings, so that editors complete and check property files."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from recbole_hns.bridge import keys
from recbole_hns.bridge.config import RECBOLE_PROPERTIES
from recbole_hns.sampling.methods import all_methods, setting_kinds
from recbole_hns.settings.dialect import read_yaml
from recbole_hns.settings.kinds import Kind, about_of, bare, fits_of, words_of
from recbole_hns.settings.registry import table


def json_schema() -> dict[str, Any]:
    """What a property file may hold: RecBole's settings, its models', ours, and all samplers'."""
    models, ours = _of_models(), {**keys.OURS, **keys.MEASURED, **setting_kinds()}
    named = {key: _schema(*kinds) for key, kinds in models.items()}
    named |= {key: _schema(kind) for key, kind in keys.RECBOLE.items()}
    named |= {key: _schema(*models.get(key, ()), kind) for key, kind in ours.items()}
    for key, names in (
        ("sampler", all_methods()),
        ("pool", table("pool")),
        ("pair_loss", table("loss")),
    ):
        named[key]["examples"] = list(names)
    named["eval_args"] = {
        "type": "object",
        "properties": {key: _schema(kind) for key, kind in keys.EVAL_ARGS.items()},
        "additionalProperties": False,
    }
    patterns = {key: named.pop(key) for key in list(named) if "*" in key}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of recbole-hns and RecBole",
        "type": "object",
        "properties": dict(sorted(named.items())),
        "patternProperties": {
            "^" + re.escape(key).replace(r"\*", ".*") + "$": schema for key, schema in patterns.items()
        },
    }


def _schema(*kinds: Kind) -> dict[str, Any]:
    """What one of the kinds takes, in the words of the last."""
    last = kinds[-1]
    about, words, fits = about_of(last).text, words_of(last), fits_of(last)
    # The last of a type says most of it: models share keys with each other and with us.
    of_type = {str(one.get("type")): one for one in (msgspec.json.schema(bare(kind)) for kind in kinds)}
    schemas = list(of_type.values())
    schema: dict[str, Any] = {**schemas[0]} if len(schemas) == 1 else {"anyOf": schemas}
    if fits and fits[-1].choices:
        schema["examples"] = list(fits[-1].choices)
    return {**schema, "description": f"{about}: {words}" if about else words}


def _of_models() -> dict[str, list[Kind]]:
    """The settings of RecBole's models, of the kinds of their defaults."""
    found: dict[str, list[Kind]] = {}
    for file in sorted((RECBOLE_PROPERTIES / "model").glob("*.yaml")):
        for key, default in read_yaml(file).items():
            kind = keys.like(default)
            if kind is not None:
                found.setdefault(key, []).append(kind)
    return found
