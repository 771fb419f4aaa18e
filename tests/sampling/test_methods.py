"""Named methods: the paper's, their settings, what goes together, and combinations of a user's own."""

import math
from typing import Annotated, Literal

import msgspec
import pytest
from conftest import prepare

from recbole_hns import Error, HNSConfig, Method, Rule, losses, pools, register, rules
from recbole_hns.sampling import methods
from recbole_hns.sampling.methods import all_methods, named
from recbole_hns.settings import Positive, registry, setting

# The paper's table: what candidates, which weights, which loss, and the number of candidates.
PAPER = {
    "uniform": Method(pools.Uniform(), rules.Uniform(), losses.BPR(), N=1),
    "popularity": Method(pools.Popularity(alpha=1.0), rules.Uniform(), losses.BPR(), N=1),
    "aobpr": Method(pools.AOBPR(lam=500.0), rules.Uniform(), losses.BPR(), N=1),
    "warp": Method(pools.Uniform(), rules.WARP(max_trials=200), losses.Hinge(margin=1.0)),
    "irgan": Method(pools.Uniform(), rules.IRGAN(tau=0.2), losses.BPR(), N=200),
    "kernel": Method(pools.Kernel(kernel_alpha=100.0), rules.Softmax(tau=1.0), losses.BPR(), N=5),
    "pris_u": Method(pools.Uniform(), rules.Softmax(tau=1.0), losses.BPR(), N=200),
    "pris_p": Method(pools.Popularity(alpha=1.0), rules.Softmax(tau=1.0), losses.BPR(), N=200),
    "adasir_u": Method(pools.AdaSIR(tau=1.0), rules.Uniform(), losses.BPR(), N=5),
    "adasir_p": Method(pools.PopularAdaSIR(tau=1.0, alpha=1.0), rules.Uniform(), losses.BPR(), N=5),
    "non_sampling": Method(pools.Everything(), rules.Uniform(), losses.BPR()),
    "softmax": Method(pools.Uniform(), rules.Softmax(tau=1.0), losses.BPR(), N=200),
    "dns": Method(pools.Uniform(), rules.DNS(M=20), losses.BPR(), N=200),
    "softmax_v": Method(pools.Uniform(), rules.SoftmaxV(rho=0.5), losses.BPR(), N=200),
}


@pytest.fixture(autouse=True)
def no_trace(monkeypatch):
    """What a test registers is forgotten."""
    monkeypatch.setattr(registry, "_TABLES", {k: dict(v) for k, v in registry._TABLES.items()})
    monkeypatch.setattr(registry, "_OWNERS", dict(registry._OWNERS))


def refusal(function, *args, **kwargs) -> str:
    with pytest.raises(Error) as error:
        function(*args, **kwargs)
    assert "\n" not in str(error.value)
    return str(error.value)


# ----------------------------------------------------------------------------------- by name


def test_the_methods_of_the_paper_are_these_combinations_in_this_order():
    assert {name: one.method for name, one in all_methods().items()} == PAPER
    assert list(all_methods()) == list(PAPER)
    assert [methods.place(name) for name in PAPER] == list(range(len(PAPER)))


@pytest.mark.parametrize("name", PAPER)
def test_a_method_built_from_its_own_settings_is_the_same(name):
    """From its defaults, and from what a result records of it."""
    one = named(name)
    assert one.build({}) == one.build(one.defaults({})) == one.build(one.method.settings) == PAPER[name]
    assert set(one.keys()) <= set(one.kinds())


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("dns", ["M", "N", "pool", "pool_block", "pair_loss"]),
        ("pris_p", ["tau", "pool_alpha", "N", "pool_block", "pair_loss"]),
        ("warp", ["max_trials", "margin", "pool", "pair_loss"]),
        ("non_sampling", ["pair_loss"]),
    ],
)
def test_the_settings_of_a_method_are_those_of_its_parts(name, keys):
    assert named(name).keys() == keys


def test_a_pool_and_a_loss_that_are_chosen_bring_their_settings():
    values = {"pool": "popularity", "pair_loss": "hinge"}
    keys = named("dns").keys(values)
    assert keys == ["M", "pool_alpha", "margin", "N", "pool", "pool_block", "pair_loss"]
    built = named("dns").build({**values, "M": 2, "N": 9, "pool_alpha": 0.5, "margin": 3})
    assert built == Method(pools.Popularity(alpha=0.5), rules.DNS(M=2), losses.Hinge(margin=3.0), N=9)
    assert (
        named("pris_u").build({"pool": "popularity"}).pool == pools.Uniform()
    )  # its own, whatever is set


@pytest.mark.parametrize(
    ("word", "hint"), [("dsn", " (did you mean dns?)"), (3, ""), (None, ""), ("", "")]
)
def test_an_unknown_method_is_refused_with_the_nearest(word, hint):
    sentence = f"sampler={word} is unknown{hint}: choose one of {', '.join(PAPER)}."
    assert refusal(named, word) == sentence


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"pool": "unifrm"}, "pool=unifrm is unknown (did you mean uniform?): choose one of"),
        ({"pair_loss": "bprr"}, "pair_loss=bprr is unknown (did you mean bpr?): choose one of"),
        ({"M": "x"}, "M='x' is not allowed: it must be a whole number from 1 to 1000000 (how many"),
        ({"M": True}, "M=True is not allowed: it must be a whole number"),
        ({"N": 0}, "N=0 is not allowed: it must be a whole number from 1 to 1000000."),
        ({"M": 9, "N": 8}, "M=9 is not allowed: a whole number from 1 to 8 is needed"),
    ],
)
def test_settings_that_are_not_allowed_are_refused(values, sentence):
    assert refusal(named("dns").build, values).startswith(sentence)


def test_labels_titles_and_symbols_are_the_papers():
    assert methods.label("dns", {"M": 5, "N": 200}) == "DNS(5, 200)"
    assert methods.label("softmax_v", {"rho": 0.1, "N": 200}) == "Softmax-v(0.1, 200)"
    assert methods.label("softmax_v", {}) == methods.title("softmax_v") == "Softmax-v"
    assert methods.label("pris_u", {"tau": 1.0}) == methods.title("pris_u") == "PRIS(U)"
    assert methods.label("unheard_of", {}) == methods.title("unheard_of") == "unheard_of"
    assert [methods.symbol(key) for key in ("rho", "tau", "lam", "M")] == ["ρ", "τ", "λ", "M"]
    assert methods.place("unheard_of") == len(PAPER)


def test_a_setting_knows_whose_it_is():
    assert methods.owners("M") == ["sampler=dns"]
    assert methods.owners("margin") == ["pair_loss=hinge"]
    assert methods.owners("pool_alpha") == [f"sampler={n}" for n in ("popularity", "pris_p", "adasir_p")]


def test_what_a_search_varies_is_declared_with_the_settings():
    assert named("dns").searched() == {"M": (1, 2, 3, 4, 5, 10, 20)}
    assert set(named("pris_p").searched()) == {"tau", "pool_alpha"}
    assert named("non_sampling").searched() == {}


# ----------------------------------------------------------------------------------- what goes together


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            {"pool": pools.AdaSIR(), "rule": rules.WARP(), "loss": losses.Hinge()},
            "pool=adasir_u does not go with warp, which draws candidates one by one: adasir_u cannot draw "
            "one by one; use pool=uniform.",
        ),
        (
            {"pool": pools.Everything(), "rule": rules.IRGAN()},
            "pool=all does not go with irgan, which draws one of the candidates: all has no list of "
            "candidates; use pool=uniform.",
        ),
        (
            {"rule": rules.WARP(), "loss": losses.BPR()},
            "pair_loss=bpr is not allowed: warp is defined with pair_loss=hinge; leave it out, or use "
            "another sampler.",
        ),
        (
            {"pool": pools.AOBPR(), "rule": rules.Uniform(), "loss": losses.SampledSoftmax()},
            "pair_loss=softmax corrects for how often an item is drawn, which uniform over pool=aobpr does "
            "not know of what it draws: use pair_loss=infonce, or another sampler.",
        ),
        (
            {"rule": rules.IRGAN(), "loss": losses.SampledSoftmax()},
            "pair_loss=softmax corrects for how often an item is drawn, which irgan over pool=uniform does "
            "not know of what it draws: use pair_loss=infonce, or another sampler.",
        ),
        (
            {"pool": pools.Kernel(), "block": 4},
            "pool_block=4 is not possible with softmax_v over pool=kernel: each pair has draws of its own.",
        ),
        (
            {"rule": rules.WARP(), "loss": losses.Hinge(), "block": 4},
            "pool_block=4 is not possible with warp over pool=uniform: each pair has draws of its own.",
        ),
        ({"block": 0}, "pool_block=0 is not allowed: it must be a whole number from 1 to 1000000."),
    ],
)
def test_parts_that_do_not_go_together_are_refused_in_a_sentence(parts, sentence):
    assert refusal(Method, **parts) == sentence


@pytest.mark.parametrize(
    ("method", "beta"),
    [
        (Method(rule=rules.DNS(M=5), N=50), 0.1),
        (Method(rule=rules.SoftmaxV(rho=2.0)), math.exp(-2)),
        (Method(rule=rules.Uniform(), N=1), 1.0),
        (Method(pools.Everything(), rules.SoftmaxV(rho=2.0)), math.exp(-2)),
        (Method(pools.Everything(), rules.DNS(M=5)), None),  # M of all: another share for every user
        (Method(pools.Popularity(), rules.DNS(M=5)), None),  # no fair sample of all negatives
        (Method(rule=rules.Softmax()), None),
    ],
    ids=str,
)
def test_beta_is_known_where_candidates_stand_for_all_negatives(method, beta):
    assert method.beta() == (beta if beta is None else pytest.approx(beta))


def test_a_number_of_candidates_is_set_only_where_candidates_are_listed():
    assert Method(pools.Everything(), rules.DNS(M=300), N=200).N is None
    assert Method(rule=rules.WARP(), loss=losses.Hinge(), N=200).N is None
    assert Method(rule=rules.DNS(M=20)).N == 200


# ----------------------------------------------------------------------------------- a user's own


class Alike(Rule):
    """All alike."""

    def weigh(self, s):
        return s.r_cj * 0 + 1 / s.shape[1]


def test_a_registered_rule_is_a_method_that_takes_any_pool():
    register(Alike)
    one = named("alike")
    assert (one.method, one.about, one.title) == (Method(rule=Alike()), "All alike.", "alike")
    assert one.build({"pool": "popularity", "N": 7}) == Method(pools.Popularity(), Alike(), N=7)
    assert list(all_methods()) == [*PAPER, "alike"]


def test_a_registered_combination_is_a_method_with_its_own_defaults(tiny):
    own = Method(pools.Popularity(alpha=0.5), rules.DNS(M=3), losses.Hinge(margin=2.0), N=30)
    register(own, name="popular_dns")
    assert named("popular_dns").method == own
    config, *_ = prepare(**tiny, sampler="popular_dns", M=4)
    assert config.method == msgspec.structs.replace(own, rule=rules.DNS(M=4))
    sentence = refusal(
        HNSConfig, "BPR", "tiny", config_dict={**tiny, "sampler": "popular_dns", "pool": "all"}
    )
    assert sentence.startswith(
        "pool is not a setting of sampler=popular_dns, which has M, pool_alpha, margin"
    )


def test_a_rule_and_a_pool_with_a_setting_of_one_name_keep_their_own():
    own = Method(pools.AdaSIR(tau=2.0), rules.Softmax(tau=0.3))
    register(own, name="both")
    one = named("both")
    assert one.method.settings["tau"] == 0.3
    assert one.method.settings["pool_tau"] == 2.0
    assert one.build({}) == one.build(own.settings) == own
    assert one.build({"tau": 5}) == Method(pools.AdaSIR(tau=2.0), rules.Softmax(tau=5.0))
    assert one.build({"pool_tau": 5}) == Method(pools.AdaSIR(tau=5.0), rules.Softmax(tau=0.3))
    assert refusal(one.build, {"pool_tau": 0}).startswith("tau=0 is not allowed")


def test_a_setting_of_ones_own_may_have_any_name_and_kind(tiny):
    """``tau`` is a positive number elsewhere, and stays one there; N is the number of candidates."""

    @register
    class Warm(Rule):
        """As warm as told."""

        tau: Annotated[Literal["low", "high"], setting("how warm")] = "low"
        N: Annotated[Positive, setting("a number")] = 0.25

    config, *_ = prepare(**tiny, sampler="warm", tau="high", N=10)
    assert config.method == Method(rule=Warm(tau="high", N=0.25), N=10)
    assert prepare(**tiny, sampler="warm", rule_N=0.5)[0].method == Method(rule=Warm(N=0.5))
    assert prepare(**tiny, sampler="softmax", tau=0.5)[0].method == Method(rule=rules.Softmax(tau=0.5))
    for sampler, value in (("warm", "hot"), ("softmax", "high")):
        sentence = refusal(
            HNSConfig, "BPR", "tiny", config_dict={**tiny, "sampler": sampler, "tau": value}
        )
        assert sentence.startswith(f"tau='{value}' is not allowed: it must be ")
