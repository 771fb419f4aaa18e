"""Parts by name: registered, found, imported, and handed to workers."""

import sys
from importlib import metadata
from typing import Annotated

import pytest

from recbole_hns import Error, HNSConfig, Loss, Method, Pool, Rule, register, rules
from recbole_hns.models.scorer import Scorer
from recbole_hns.sampling.methods import all_methods, named
from recbole_hns.settings import Flag, Positive, registry, setting
from recbole_hns.settings.registry import find, name_of, table

MODULE = '''"""Parts of one's own."""
import recbole_hns as hns
from recbole_hns.settings import Positive, Flag

@hns.register
class {name}(hns.Rule):
    """p_cij ∝ exp(ℓ/heat)."""
    heat: Positive = 2.0
    def weigh(self, s):
        return (s.ell / self.heat).softmax(1)
'''


@pytest.fixture(autouse=True)
def no_trace(monkeypatch):
    """What a test registers or imports is forgotten."""
    monkeypatch.setattr(registry, "_TABLES", {k: dict(v) for k, v in registry._TABLES.items()})
    monkeypatch.setattr(registry, "_OWNERS", dict(registry._OWNERS))
    monkeypatch.setattr(registry, "_IMPORTED", list(registry._IMPORTED))
    modules = dict(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - set(modules):
        if name.startswith("own_"):
            del sys.modules[name]


def a_rule(name="Mine", **members):
    return type(name, (Rule,), {"__annotations__": {}, **members}, frozen=True)


def refusal(function, *args, **kwargs) -> str:
    with pytest.raises(Error) as error:
        function(*args, **kwargs)
    assert "\n" not in str(error.value)
    return str(error.value)


# ----------------------------------------------------------------------------------- registering


@pytest.mark.parametrize(
    ("base", "kind"), [(Pool, "pool"), (Rule, "rule"), (Loss, "loss"), (Scorer, "scorer")]
)
def test_the_base_class_says_of_which_kind_a_part_is(base, kind):
    frozen = {} if base is Scorer else {"frozen": True}
    part = type("MyOwn", (base,), {"__annotations__": {}}, **frozen)
    assert register(part) is part
    assert find(kind, "my_own") is part
    assert list(table(kind))[-1] == "my_own"


def test_a_part_may_be_given_a_name():
    @register(name="other")
    class Mine(Rule):
        """Mine."""

    assert find("rule", "other") is Mine
    assert "mine" not in table("rule")
    assert (name_of(Mine()), name_of(a_rule("Unknown")())) == ("other", "unknown")


def test_a_name_that_is_taken_is_refused_in_a_sentence():
    register(a_rule("Mine"))
    other = a_rule("Mine", __module__="elsewhere")
    sentence = f"the name mine is taken by {__name__}.Mine: choose another name."
    assert refusal(register, other) == sentence
    assert refusal(register, a_rule("Other"), name="mine") == sentence
    assert refusal(register, a_rule("DNS")).startswith("the name dns is taken by recbole_hns.")


def test_rules_and_methods_share_their_names_for_both_are_what_sampler_names():
    assert refusal(register, a_rule("Kernel")).startswith("the name kernel is taken by Named(")
    register(a_rule("Mine"))
    assert refusal(register, Method(), name="mine").startswith(
        f"the name mine is taken by {__name__}.Mine"
    )
    register(Method(), name="yours")
    assert refusal(register, a_rule("Yours")).startswith("the name yours is taken by Method(")


def test_a_cell_of_a_notebook_can_be_run_again():
    register(a_rule("Mine"))
    again = register(a_rule("Mine"))
    assert find("rule", "mine") is again
    for _ in range(2):
        register(Method(rule=rules.DNS(M=3)), name="three")
    assert refusal(register, Method(rule=rules.DNS(M=4)), name="three").startswith(
        "the name three is taken"
    )


@pytest.mark.parametrize("part", [3, object, Rule(), "dns", None])
def test_what_is_no_part_is_refused(part):
    function = register(name="x") if part is None else register
    sentence = f"{part!r} cannot be registered: it is no Pool, Rule, Loss or Scorer, and no Method."
    assert refusal(function, part) == sentence


def test_a_method_needs_a_name():
    assert refusal(register, Method()).startswith("a method is registered under a name")


def test_a_part_that_can_be_chosen_by_name_has_defaults():
    """Or every command that lists the methods would fail."""

    class Hot(Rule):
        """As hot as told."""

        heat: Positive

    assert refusal(register, Hot) == "hot cannot be registered: its setting heat needs a default."
    assert "hot" not in all_methods()


@pytest.mark.parametrize(("name", "hint"), [("unifrm", " (did you mean uniform?)"), (3, ""), (None, "")])
def test_an_unknown_name_is_refused_with_those_that_there_are(name, hint):
    sentence = refusal(find, "pool", name)
    assert sentence == f"pool={name} is unknown{hint}: choose one of {', '.join(table('pool'))}."
    assert refusal(find, "loss", name, "pair_loss").startswith(f"pair_loss={name} is unknown")


def test_a_setting_may_be_true_or_false():
    @register
    class Careful(Rule):
        """Careful, if told."""

        careful: Annotated[Flag, setting("whether to be")] = False

    def careful(text):
        return HNSConfig(
            "BPR", "ml-100k", command_line=["--sampler=careful", f"--careful={text}"]
        ).method.rule.careful

    assert careful("true") is careful("True") is True
    assert careful("false") is False
    assert named("careful").build({}).rule.careful is False
    for text in ("no", "0", "none"):
        assert refusal(careful, text).endswith(
            "is not allowed: it must be true or false (whether to be)."
        )


# ----------------------------------------------------------------------------------- importing


def test_a_module_of_the_folder_one_stands_in_registers_its_parts(tmp_path):
    (tmp_path / "own_hot.py").write_text(MODULE.format(name="Hot"))
    registry.import_parts(["own_hot"])
    registry.import_parts(["own_hot"])  # once
    assert named("hot").keys() == ["heat", "N", "pool", "pool_block", "pair_loss"]
    assert [name for name in registry.imported() if name.startswith("own_")] == ["own_hot"]


def test_a_module_that_is_not_there_is_refused_and_a_fault_in_one_is_its_authors(tmp_path):
    sentence = "import=own_nothing is not found: it must be a module on Python's path."
    assert refusal(registry.import_parts, ["own_nothing"]) == sentence
    (tmp_path / "own_broken.py").write_text("import a_package_that_is_not_there\n")
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
        registry.import_parts(["own_broken"])
    assert not {"own_broken", "own_nothing"} & set(registry.imported())


def test_installed_packages_are_found_by_their_entry_point(tmp_path, monkeypatch):
    """A package's metadata, as pip leaves it on the path."""
    (tmp_path / "own_installed.py").write_text(MODULE.format(name="Installed"))
    info = tmp_path / "own_installed-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-installed\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[recbole_hns.parts]\nown = own_installed\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [one.value for one in metadata.entry_points(group=registry.GROUP)] == ["own_installed"]
    registry.import_installed()
    assert named("installed").build({"heat": 3}).rule.settings == {"heat": 3.0}


def test_workers_are_handed_what_no_importable_module_registers(tmp_path):
    """An interactive session's parts; those of imported modules they import themselves."""
    (tmp_path / "own_hot.py").write_text(MODULE.format(name="Hot"))
    registry.import_parts(["own_hot"])
    mine, method = register(a_rule("Mine")), register(Method(rule=rules.DNS(M=3)), name="three")
    here = list(registry.registered_here())
    assert here == [("rule", "mine", mine), ("method", "three", method)]
    registry._TABLES["rule"].pop("mine")
    registry._TABLES["method"].pop("three")
    registry.adopt(here)
    assert find("rule", "mine") is mine
    assert named("three").method == method
