"""What is searched, and one sentence for every mistake in it."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from recbole_hns import Error, HNSConfig
from recbole_hns.sampling.methods import all_methods, named
from recbole_hns.tuning import make_plan
from recbole_hns.tuning.space import Domain, named_space, points

FIXED = {"sampler": "dns", "N": 20}


def plan(text, typed=FIXED, **more):
    Path("search.yaml").write_text(text)
    return make_plan("MF", "ml-100k", typed, "search.yaml", **more)


def test_domains_are_read():
    Path("s.yaml").write_text(
        "M: {grid: [1, 5]}\nlearning_rate: {loguniform: [1e-4, 1e-2]}\ntau: {choice: [0.1, 1]}\n"
        "pool_alpha: {uniform: [0, 1]}\nN: {randint: [5, 50]}\n"
    )
    space = named_space("s.yaml")
    assert space["M"] == Domain("grid", (1, 5))
    assert space["learning_rate"] == Domain("loguniform", (1e-4, 1e-2))
    assert space["N"].examples == (5, 49)
    assert named_space({"M": [1, 5], "tau": {"uniform": [0, 1]}})["M"] == space["M"]


def test_trials_are_the_whole_grid_for_each_sample_with_draws_from_the_ranges():
    space = {
        "M": Domain("grid", (1, 5)),
        "rate": Domain("loguniform", (1e-4, 1e-2)),
        "N": Domain("randint", (5, 8)),
        "rho": Domain("choice", (1, 10)),
        "tau": Domain("grid", ("a", "b", "c")),
    }
    found = points(space, 200, seed=3)
    assert found == points(space, 200, seed=3)
    assert found != points(space, 200, seed=4)
    assert [(p["M"], p["tau"]) for p in found] == list(itertools.product((1, 5), "abc")) * 200
    assert {p["N"] for p in found} == {5, 6, 7}
    assert {p["rho"] for p in found} == {1, 10}
    logs = np.array([math.log10(p["rate"]) for p in found])
    assert -4 <= logs.min() < logs.max() <= -2
    # The mean of 1200 uniform draws over a range of 2: a standard error of 2/√(12 · 1200).
    assert abs(logs.mean() + 3) < 4 * 2 / math.sqrt(12 * len(logs))


@pytest.mark.parametrize("sampler", list(all_methods()))
def test_every_sampler_has_a_default_search_and_the_papers(sampler):
    default = make_plan("MF", "ml-100k", {"sampler": sampler})
    assert set(default.space) == {*named(sampler).searched(), "reg_weight"}
    paper = make_plan("MF", "ml-100k", {"sampler": sampler}, "paper")
    assert {"weight_decay", "learning_rate", "reg_weight"} <= set(paper.space)
    config = paper.config()
    assert (config["reg_weight"], config["learning_rate"], config["weight_decay"]) == (0, 0.001, 2.4e-5)


def test_the_papers_grids():
    dns = make_plan("MF", "ml-100k", {"sampler": "dns"}, "paper").domains
    assert dns["M"].values == (1, 2, 3, 4, 5, 10, 20)
    softmax_v = make_plan("MF", "ml-100k", {"sampler": "softmax_v"}, "paper").domains
    assert softmax_v["rho"].values == (0.01, 0.1, 1, 10, 100)
    assert softmax_v["weight_decay"].values == (2.4e-5, 2.4e-6, 2.4e-7, 2.4e-8)


def test_the_default_search_leaves_out_what_is_given_and_what_is_not_possible():
    given = make_plan("MF", "ml-100k", {"sampler": "dns", "N": 5, "reg_weight": 0.03})
    assert given.domains == {"M": Domain("grid", (1, 2, 3, 4, 5))}
    with pytest.raises(Error, match="nothing is left to search"):
        make_plan("MF", "ml-100k", {"sampler": "uniform", "reg_weight": 0.03})


def test_a_model_without_reg_weight_is_searched_over_the_weight_decay():
    assert HNSConfig("SASRec", "ml-100k")["reg_weight"] is None
    found = make_plan("SASRec", "ml-100k", {"sampler": "dns"})
    assert list(found.space) == ["M", "weight_decay"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mm: {grid: [1]}\nrhoo: {grid: [1]}", ["Mm", "rhoo (did you mean rho?)"]),
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
        ({"typed": {"sampler": "dns", "valid_metric": "NDCG@7"}}, "NDCG@7"),
        (
            {"typed": {"sampler": "dns", "eval_step": 0}},
            "eval_step=0 leaves a search nothing to choose by",
        ),
        ({"num_samples": 0}, "num_samples=0"),
        ({"seeds": -1}, "seeds=-1"),
        ({"seeds": 0, "refit": True}, "seeds=0"),
        ({"scheduler": "hyperband"}, "scheduler='hyperband' is not allowed"),
    ],
)
def test_so_does_one_in_the_options(more, words):
    with pytest.raises(Error, match=words):
        plan("M: {grid: [1, 5]}", **more)


def test_population_based_training_needs_something_to_change():
    with pytest.raises(Error, match=r"scheduler=pbt changes M, learning_rate, weight_decay, reg_weight"):
        plan("embedding_size: {choice: [8, 16]}", scheduler="pbt")


def test_a_model_with_a_procedure_of_its_own_is_refused():
    with pytest.raises(Error, match="NCL trains by a procedure of its own"):
        make_plan("NCL", "ml-100k", {"sampler": "dns"}, {"M": [1]})


@pytest.mark.parametrize(
    ("typed", "search"),
    [
        ({"lr_gamma": 0.6}, {"lr_step_size": [3, 5]}),
        ({}, {"M": [5, 300], "N": [400]}),
    ],
)
def test_settings_that_need_each_other_may_be_searched(typed, search):
    found = make_plan("MF", "ml-100k", {"sampler": "dns", **typed}, search)
    assert found.typed == {"sampler": "dns", **typed}


def test_samplers_may_be_searched():
    found = make_plan("MF", "ml-100k", {}, {"sampler": ["dns", "uniform", "softmax_v"]})
    assert [found.config(point).sampler for point in found.points()] == ["dns", "uniform", "softmax_v"]


def test_ends_of_domains():
    grid = Domain("grid", (5, 1, 3))
    assert [grid.is_end(value) for value in (1, 3, 5)] == [True, False, True]
    assert not Domain("grid", (5,)).is_end(5)
    assert not Domain("grid", ("a", "b")).is_end("a")
    assert [Domain("uniform", (0, 1)).is_end(value) for value in (0.01, 0.5, 0.99)] == [
        True,
        False,
        True,
    ]
    assert [Domain("uniform", (0, 1)).clip(value) for value in (-1, 0.5, 2)] == [0, 0.5, 1]
