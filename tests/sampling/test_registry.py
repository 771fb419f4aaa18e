"""The samplers by name, and one of a user's own."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import prepare

from recbole_hns import Error, Rule, register_sampler, run_recbole_hns
from recbole_hns.bridge.config import PROPERTIES
from recbole_hns.sampling.registry import SAMPLERS

README = Path(__file__).parents[2] / "README.md"
PAPER = {"uniform", "popularity", "aobpr", "warp", "irgan", "kernel", "dns", "pris_u", "pris_p"}
PAPER |= {"adasir_u", "adasir_p", "non_sampling", "softmax", "softmax_v"}


def test_every_method_of_the_paper_has_a_name_and_a_property_file():
    assert set(SAMPLERS) >= PAPER
    assert {file.stem for file in (PROPERTIES / "sampler").glob("*.yaml")} == PAPER


@pytest.fixture
def no_trace():
    before = dict(SAMPLERS)
    yield
    SAMPLERS.clear()
    SAMPLERS.update(before)


def test_the_readmes_own_sampler_trains(tiny, no_trace):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    (example,) = [block for block in blocks if "register_sampler" in block]
    exec(compile(example, "README.md", "exec"), {})
    (name,) = set(SAMPLERS) - PAPER
    (key,) = SAMPLERS[name].own_keys
    settings = {**tiny, "epochs": 2, "N": 20, key: 0.5}
    result = run_recbole_hns("MF", "tiny", name, config_dict=settings)
    assert result["sampler"]["sampler"] == name
    assert result["sampler"][key] == 0.5
    assert prepare(**tiny, sampler=name)[0].spec.N == 200
    with pytest.raises(Error, match=f"{key}=-1"):
        prepare(**tiny, sampler=name, **{key: -1})


def test_a_rule_without_settings_needs_no_more_than_its_weights(tiny, no_trace):
    @dataclass(frozen=True)
    class Alike(Rule):
        """All alike."""

        def weigh(self, r_cj, L, log_q):
            return L * 0 + 1 / L.shape[1]

    register_sampler("alike", Alike)
    assert SAMPLERS["alike"].about == "All alike."
    run_recbole_hns("MF", "tiny", "alike", config_dict={**tiny, "epochs": 1, "N": 5})
