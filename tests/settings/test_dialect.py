"""YAML 1.2 everywhere: the same words mean the same in files, in searches and on the command line."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from recbole.config import Config

from recbole_hns import Error, HNSConfig
from recbole_hns.settings import dialect
from recbole_hns.settings.dialect import parse_value, read_command_line, read_yaml, to_yaml
from recbole_hns.tuning.space import named_space

SPELLED = {
    # numbers, also where YAML 1.1 sees words
    **{"1e-3": 0.001, "1E5": 100000.0, "-1.5e+3": -1500.0, "5.": 5.0, ".5": 0.5, "-0.0": -0.0},
    **{"+3": 3, "007": 7, "0o17": 15, "0x1F": 31, "12": 12, "-.INF": -math.inf, ".inf": math.inf},
    # words, also where YAML 1.1 sees truths, times, dates and octal numbers
    **{word: word for word in ("yes", "no", "on", "off", "Yes", "NO", "y", "n", "tRUE", "none", "nUll")},
    **{word: word for word in ("1:30", "12:30:45", "2001-01-01", "1_000", "0b11", "0o8", "=", "<<")},
    **{word: word for word in ("inf", "nan", "1e5.5", ".", "-a", "a b", "dns")},
    **{"'1'": "1", '"null"': "null", "'true'": "true"},
    # truths and nothing; Python's None is RecBole's users' null
    **{"true": True, "TRUE": True, "True": True, "false": False, "False": False},
    **{"~": None, "null": None, "Null": None, "NULL": None, "None": None},
    # on one line
    **{"[1, 2.5, no]": [1, 2.5, "no"], "[]": [], "{}": {}, "{RS: [8, 1, 1], order: ~}": None},
    **{"[1, [None, 1e-3]]": [1, [None, 0.001]], "1 # c": 1},
}
SPELLED["{RS: [8, 1, 1], order: ~}"] = {"RS": [8, 1, 1], "order": None}


@pytest.mark.parametrize(("text", "value"), SPELLED.items())
def test_a_text_means_the_same_in_a_file_a_search_and_on_the_command_line(tmp_path, text, value):
    own, search = tmp_path / "own.yaml", tmp_path / "search.yaml"
    own.write_text(f"key: {text}\n")
    search.write_text(f"key:\n  choice:\n    - {text}\n")
    found = [
        read_yaml(own)["key"],
        named_space(str(search))["key"].values[0],
        read_command_line([f"--key={text}"])["key"],
        parse_value(text),
    ]
    assert found == [value] * 4
    assert [type(one) for one in found] == [type(value)] * 4


def test_a_run_is_told_the_same_in_all_of_its_places(tmp_path):
    """1e-3 with YAML 1.1, RecBole's, is a word."""
    (tmp_path / "own.yaml").write_text("learning_rate: 1e-3\nclip_grad_norm: None\n")
    given = ["--learning_rate=1e-3", "--clip_grad_norm=None"]
    for config in (
        HNSConfig("BPR", "ml-100k", ["own.yaml"]),
        HNSConfig("BPR", "ml-100k", command_line=given),
        HNSConfig("BPR", "ml-100k", config_dict={"learning_rate": "1e-3", "clip_grad_norm": "None"}),
    ):
        assert (config["learning_rate"], config["clip_grad_norm"]) == (0.001, None)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "# a",
            "a: b",
            "- a",
            "[5,inf)",
            "[1,2);[3,4]",
            "[a",
            "{a",
            "'",
            "*x",
            "@x",
            "`x",
            "|",
        ),
        *("a\nb", "[1,\n2]", "{a: 1, a: 2}", "!!python/name:os.system", "1" * 5000),
    ],
)
def test_what_is_no_value_of_one_line_is_the_text_itself(text):
    assert parse_value(text) == text


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def typed(value):
    """The value with all types in it: True == 1 == 1.0 otherwise."""
    if isinstance(value, dict):
        return {key: typed(one) for key, one in value.items()}
    return [typed(one) for one in value] if isinstance(value, list) else (type(value), value)


@given(values)
def test_what_is_written_is_read_again(tmp_path_factory, value):
    file = tmp_path_factory.getbasetemp() / "written.yaml"
    file.write_text(to_yaml({"key": value}), encoding="utf-8")
    assert typed(read_yaml(file)) == typed({"key": value})


@given(values)
def test_recbole_reads_what_is_written_too(value):
    """By its own loader, for YAML 1.1 with numbers like 1e-3."""
    loader = Config._build_yaml_loader(Config.__new__(Config))
    assert typed(yaml.load(to_yaml({"key": value}), Loader=loader)) == typed({"key": value})


@given(values)
def test_a_written_value_can_be_given_on_the_command_line(value):
    """On one line, as YAML's flow style has it."""
    line = yaml.dump(value, Dumper=dialect._Dumper, default_flow_style=True, width=math.inf)
    text = line.removesuffix("...\n").removesuffix("\n")
    assert typed(read_command_line([f"--key={text}"])["key"]) == typed(value)


@given(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_prints_is_read_as_it_is(value):
    """Results and commands that messages suggest spell values by str."""
    assert typed(parse_value(str(value))) == typed(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", ["the key a stands twice", "line 3, column 1"]),
        ("a: &a [1, *a]\n", ["a value holds itself"]),
        ("x: 1\na: {b: 1, b: 2}\n", ["the key b stands twice", "line 2, column 11"]),
        ("a:\n  - {1: 2, 0x1: 3}\n", ["the key 1 stands twice", "line 2"]),
        ("3\n", ["must hold `key: value` lines"]),
        ("- a\n", ["must hold `key: value` lines"]),
        ("1: 2\n", ["has the key 1: keys are words"]),
        ("null: 2\n", ["has the key None: keys are words"]),
        ("a: [\n", ["is not valid YAML", "line 2"]),
        ("a: 1\n---\nb: 2\n", ["is not valid YAML", "another document"]),
        ("? [1, 2]\n: 3\n", ["is not valid YAML", "unhashable key"]),
        ("a: !!python/object/apply:os.system [ls]\n", ["is not valid YAML", "python/object/apply"]),
        ("a: " + "[" * 5000, ["is not valid YAML"]),
        ("a: " + "1" * 5000, ["is not valid YAML"]),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_place(tmp_path, text, words):
    file = tmp_path / "own.yaml"
    file.write_text(text)
    with pytest.raises(Error) as error:
        read_yaml(file, "search file")
    sentence = str(error.value)
    assert sentence.startswith(f"search file {file} ")
    assert "\n" not in sentence
    for word in words:
        assert word in sentence


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(Error, match=r"^config file .*nowhere\.yaml cannot be read: No such file"):
        read_yaml(tmp_path / "nowhere.yaml")
    with pytest.raises(Error, match="cannot be read: Is a directory"):
        read_yaml(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    with pytest.raises(Error, match="is not valid YAML"):
        read_yaml(tmp_path / "latin.yaml")


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "\ufeff"])
def test_an_empty_file_has_no_settings(tmp_path, text):
    (tmp_path / "own.yaml").write_text(text, encoding="utf-8")
    assert read_yaml(tmp_path / "own.yaml") == {}


def test_a_byte_order_mark_and_anchors_are_read(tmp_path):
    (tmp_path / "own.yaml").write_text("\ufeffa: &x [1]\nb: *x\n", encoding="utf-8")
    assert read_yaml(tmp_path / "own.yaml") == {"a": [1], "b": [1]}


def test_the_command_line_is_keys_and_values():
    given = ["--a=1", "--b=x=y", "--c=", "--a=1", "--d=[1,inf)"]
    assert read_command_line(given) == {"a": 1, "b": "x=y", "c": "", "d": "[1,inf)"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--a=1", "--a=2"], "--a is given twice, as 1 and as 2: give it once."),
        (["a=1"], "argument 'a=1' is not understood: write --key=value."),
        (["--a"], "argument '--a' is not understood: write --key=value."),
        (["--=1"], "argument '--=1' is not understood: write --key=value."),
    ],
)
def test_other_arguments_are_refused(arguments, sentence):
    with pytest.raises(Error) as error:
        read_command_line(arguments)
    assert str(error.value) == sentence
