"""The JSON Schema of all settings: it takes every file that we and RecBole ship, and no wrong value."""

import json
import re

import pytest

from recbole_hns.bridge import keys
from recbole_hns.bridge.config import RECBOLE_PROPERTIES
from recbole_hns.bridge.properties import PROPERTIES
from recbole_hns.bridge.schema import json_schema
from recbole_hns.cli.main import main
from recbole_hns.sampling.methods import all_methods, setting_kinds
from recbole_hns.settings.dialect import read_yaml
from recbole_hns.settings.registry import table

SCHEMA = json_schema()
TYPES = {
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
    "null": lambda v: v is None,
}
BOUNDS = {
    "minimum": lambda v, bound: v >= bound,
    "maximum": lambda v, bound: v <= bound,
    "exclusiveMinimum": lambda v, bound: v > bound,
    "exclusiveMaximum": lambda v, bound: v < bound,
    "enum": lambda v, words: v in words,
}
HEEDED = {"type", "anyOf", "items", "properties", "patternProperties", "additionalProperties", *BOUNDS}
SILENT = {"$schema", "title", "description", "examples"}


def faults(value, schema=SCHEMA, where=""):
    """Where a value is not what a schema says: as much of JSON Schema as ours uses."""
    assert set(schema) <= HEEDED | SILENT, schema
    if "type" in schema and not TYPES[schema["type"]](value):
        return [f"{where}: {value!r} is no {schema['type']}"]
    if "anyOf" in schema and all(faults(value, one, where) for one in schema["anyOf"]):
        return [f"{where}: {value!r} is none of {schema['anyOf']}"]
    found = [
        f"{where}: {value!r}, {word}"
        for word in BOUNDS
        if word in schema and not BOUNDS[word](value, schema[word])
    ]
    if isinstance(value, list) and "items" in schema:
        found += [fault for one in value for fault in faults(one, schema["items"], f"{where}[]")]
    if isinstance(value, dict) and "properties" in schema:
        for key, one in value.items():
            found += faults_of_key(key, one, schema, f"{where}/{key}")
    return found


def faults_of_key(key, value, schema, where):
    own = [schema["properties"][key]] if key in schema["properties"] else []
    own += [
        one for pattern, one in schema.get("patternProperties", {}).items() if re.search(pattern, key)
    ]
    if not own and schema.get("additionalProperties") is False:
        return [f"{where} is unknown"]
    return [fault for one in own for fault in faults(value, one, where)]


SHIPPED = [file for file in sorted(PROPERTIES.rglob("*.yaml")) if file.parent.name != "search"]
RECBOLES = [*sorted((RECBOLE_PROPERTIES / "model").glob("*.yaml")), RECBOLE_PROPERTIES / "overall.yaml"]
RECBOLES += [RECBOLE_PROPERTIES / "dataset" / name for name in ("ml-100k.yaml", "sample.yaml")]


@pytest.mark.parametrize(
    "file", [*SHIPPED, *RECBOLES], ids=lambda file: f"{file.parent.name}/{file.stem}"
)
def test_every_property_file_that_is_shipped_fits(file):
    settings = {key: value for key, value in read_yaml(file).items() if value is not None}
    assert faults(settings) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"N": 0},
        {"N": 1.5},
        {"N": "many"},
        {"N": True},
        {"M": -1},
        {"rho": 0},
        {"rho": "hard"},
        {"keep": 1},
        {"epochs": -1},
        {"learning_rate": 0},
        {"learning_rate": 1e9},
        {"train_batch_size": [64]},
        {"topk": [0]},
        {"topk": {}},
        {"metrics": [1]},
        {"hns_backend": "cuda"},
        {"use_gpu": "yes"},
        {"refit": 1},
        {"USER_ID_FIELD": 3},
        {"user_inter_num_interval": 5},
        {"eval_args": {"splits": {}}},
        {"eval_args": {"order": 3}},
        {"load_col": ["user_id"]},
        {"opauc_beta": 0},
        {"opauc_beta": [1.5]},
        {"opauc_k": [0]},
        {"llpauc_alpha": "x"},
    ],
    ids=str,
)
def test_a_wrong_value_does_not_fit(settings):
    assert len({one.partition(":")[0] for one in faults(settings)}) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"N": 5, "M": 2, "rho": 1, "sampler": "dns", "learner": "Adam", "seed": 2**32 - 1},
        {"topk": 5, "metrics": "NDCG", "result_dir": None, "lr_step_size": None},
        {"user_inter_num_interval": "[5,inf)", "entity_num_interval": [1, 5], "X_FIELD": "x"},
        {"eval_args": {"split": {"LS": "valid_only"}, "mode": {"valid": "uni5"}, "group_by": None}},
        {"opauc_beta": [0.1, 1], "opauc_k": 5, "another_tools_key": {"a": 1}, "reg_weight": [0.1, 0.2]},
    ],
    ids=str,
)
def test_what_may_be_written_fits(settings):
    assert faults(settings) == []


def test_every_setting_stands_in_it_with_a_sentence():
    known = {*keys.RECBOLE, *keys.OURS, *keys.MEASURED, *setting_kinds()}
    named = {
        *SCHEMA["properties"],
        *(p.replace("^", "").replace("$", "").replace(".*", "*") for p in SCHEMA["patternProperties"]),
    }
    assert known <= named
    for schema in (*SCHEMA["properties"].values(), *SCHEMA["patternProperties"].values()):
        assert "another kind" not in schema.get("description", "")


def test_editors_are_given_the_names_that_there_are():
    properties = json_schema()["properties"]
    assert properties["sampler"]["examples"] == list(all_methods())
    assert properties["pool"]["examples"] == list(table("pool"))
    assert properties["pair_loss"]["examples"] == list(table("loss"))
    assert properties["learner"]["examples"][:2] == ["adam", "adamw"]
    assert properties["state"]["examples"][0] == "INFO"


def test_the_command_prints_it(capsys):
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()
