"""Search files, and one sentence for every mistake in them."""

from pathlib import Path

import pytest

from recbole_hns import Error
from recbole_hns.bridge.config import PROPERTIES
from recbole_hns.sampling import SAMPLERS
from recbole_hns.tuning import make_plan
from recbole_hns.tuning.space import Domain, count_trials, read_space

FIXED = {"sampler": "dns", "N": 20}


def plan(text, settings=FIXED, **more):
    Path("search.yaml").write_text(text)
    return make_plan("MF", "ml-100k", settings, Path("search.yaml"), **more)


def test_domains_are_read():
    Path("s.yaml").write_text(
        "M: {grid: [1, 5]}\nlearning_rate: {loguniform: [1.0e-4, 1.0e-2]}\ntau: {choice: [0.1, 1]}\n"
        "pool_alpha: {uniform: [0, 1]}\nN: {randint: [5, 50]}\n"
    )
    space = read_space(Path("s.yaml"))
    assert space["M"] == Domain("grid", (1, 5))
    assert space["learning_rate"] == Domain("loguniform", (1e-4, 1e-2))
    assert space["N"].examples == (5, 49)
    assert count_trials(space, 3) == 6


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_ships_a_grid_that_its_configuration_accepts(sampler):
    file = PROPERTIES / "search" / f"{sampler}.yaml"
    assert make_plan("MF", "ml-100k", {"sampler": sampler}, file).space


def test_the_papers_grids():
    assert read_space(PROPERTIES / "search" / "dns.yaml")["M"].values == (1, 2, 3, 4, 5, 10, 20)
    assert read_space(PROPERTIES / "search" / "softmax_v.yaml")["rho"].values == (0.01, 0.1, 1, 10, 100)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mm: {grid: [1]}", ["Mm"]),
        ("M: {grid: []}", ["M", "empty grid"]),
        ("M: [1, 2]", ["needs one domain"]),
        ("M: {grd: [1]}", ["grd", "did you mean grid?"]),
        ("learning_rate: {uniform: [0.1, 0.01]}", ["the low end comes first"]),
        ("learning_rate: {loguniform: [0, 1]}", ["above 0"]),
        ("learning_rate: {loguniform: [1]}", ["two numbers"]),
        ("N: {randint: [1.5, 3]}", ["whole numbers"]),
        ("M: {grid: [1, 30]}", ["M=30", "from 1 to 20"]),
        ("rho: {grid: [1]}", ["rho is not a setting of sampler=dns"]),
        ("seed: {grid: [1, 2]}", ["--seeds"]),
        ("N: {grid: [5, 50]}", ["N is both given and searched"]),
        ("", ["searches nothing"]),
    ],
)
def test_a_mistake_gets_one_sentence(text, words):
    with pytest.raises(Error) as error:
        plan(text)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"settings": {"sampler": "dns", "valid_metric": "NDCG@7"}}, "NDCG@7"),
        ({"num_samples": 0}, "num_samples=0"),
        ({"seeds": -1}, "seeds=-1"),
        ({"seeds": 0, "refit": True}, "seeds=0"),
    ],
)
def test_so_does_one_in_the_options(more, words):
    with pytest.raises(Error, match=words):
        plan("M: {grid: [1, 5]}", **more)


def test_population_based_training_needs_something_to_change():
    with pytest.raises(Error, match="scheduler=pbt"):
        plan("weight_decay: {choice: [0.0, 0.1]}", scheduler="pbt")


def test_a_model_with_a_procedure_of_its_own_is_refused():
    Path("search.yaml").write_text("M: {grid: [1]}")
    with pytest.raises(Error, match="NCL trains by a procedure of its own"):
        make_plan("NCL", "ml-100k", {"sampler": "dns"}, Path("search.yaml"))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"lr_gamma": 0.6}, "lr_step_size: {grid: [3, 5]}"),
        ({}, "M: {grid: [5, 300]}\nN: {grid: [400]}"),
    ],
)
def test_settings_that_need_each_other_may_be_searched(settings, text, tmp_path):
    file = tmp_path / "search.yaml"
    file.write_text(text)
    plan = make_plan("MF", "ml-100k", {"sampler": "dns", **settings}, file)
    assert plan.settings == {"sampler": "dns", **settings}
