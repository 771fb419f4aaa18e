"""Methods: named combinations of a pool, a rule and a loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from recbole_hns.errors import Error
from recbole_hns.losses import BPR, Hinge, Loss
from recbole_hns.sampling import pools, rules
from recbole_hns.sampling.pools import Pool
from recbole_hns.sampling.rules import Rule
from recbole_hns.sampling.sampler import Sampler
from recbole_hns.sampling.world import World
from recbole_hns.settings.kinds import Count, Kind, Text, about_of, convert, is_whole, setting
from recbole_hns.settings.parts import Part, Setting, settings_of
from recbole_hns.settings.registry import find, name_of, table
from recbole_hns.settings.words import nearest, plain_word

COMMON: dict[str, Kind] = {  # settings of methods, beside their parts' own
    "N": Annotated[Count, setting("candidates drawn per positive")],
    "pool": Annotated[Text, setting("where candidates come from")],
    "pool_block": Annotated[Count, setting("pairs that share one drawn candidate set; 16 is faster")],
    "pair_loss": Annotated[Text, setting("the loss of a pair")],
}

WANTED = {  # of a pool, by rules and losses: what for, and what a pool without it lacks
    "q": ("corrects for how often an item is drawn", "does not know how often it draws an item"),
    "ids": ("draws one of the candidates", "has no list of candidates"),
    "line": ("draws candidates one by one", "cannot draw one by one"),
    "blocks": ("lets pairs share candidates", "draws for each pair by itself"),
}


class Method(msgspec.Struct, frozen=True):
    """For each positive (c, i), weights p_cij over negatives, and the loss Σ_j p_cij ℓ(r_ci, r_cj).

    Args:
        pool: where candidates come from.
        rule: how much each candidate counts.
        loss: what is minimised.
        N: the number of candidates per positive; None where the pool or the rule sets it.
        block: pairs of a batch that share one drawn candidate set.

    Raises:
        Error: for parts that do not go together.
    """

    kind: ClassVar[str] = "method"

    pool: Pool = pools.Uniform()
    rule: Rule = rules.SoftmaxV()
    loss: Loss = BPR()
    N: int | None = 200
    block: int = 1

    def __post_init__(self) -> None:
        for key, value in (("N", self.N), ("pool_block", self.block)):
            if value is not None:
                convert(key, value, COMMON[key])
        if not self.takes_N:
            msgspec.structs.force_setattr(self, "N", None)
        self._refuse_what_does_not_fit()
        self.rule.check(self.N)

    @property
    def takes_N(self) -> bool:
        """Whether a number of candidates is set."""
        return "ids" in self.pool.gives and self.rule.takes_N

    @property
    def knows_q(self) -> bool:
        """Whether the probability of each negative's draw is known."""
        return "q" in self.pool.gives and not self.rule.hides_q

    def why_vectors(self) -> str:
        """Why the model must score by a dot product; empty if it need not."""
        return self.pool.needs_vectors or self.rule.needs_vectors

    def why_pair_loss(self) -> str:
        """Why a model's own loss, which takes one negative, will not do; empty if it will."""
        return self.pool.needs_pair_loss or self.rule.needs_pair_loss

    def beta(self) -> float | None:
        """The β of the OPAUC(β) that is optimised; None where it varies with the scores."""
        return self.rule.beta(self.N) if self.pool.stands_for_all else None

    def open(self, world: World) -> Sampler:
        """The sampler of a run."""
        return (self.pool.sampler() or self.rule.sampler())(self, world)

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that it is set to, by key."""
        own = values_of(self.rule, self.pool, self.loss)
        own |= {} if self.N is None else {"N": self.N}
        own["pool"] = name_of(self.pool)
        own |= {"pool_block": self.block} if "blocks" in self.pool.gives else {}
        return {**own, "pair_loss": name_of(self.loss)}

    def _refuse_what_does_not_fit(self) -> None:
        pool, rule, loss = name_of(self.pool), name_of(self.rule), name_of(self.loss)
        for need in sorted(self.rule.needs - self.pool.gives):
            why, lacks = WANTED[need]
            raise Error(
                f"pool={pool} does not go with {rule}, which {why}: {pool} {lacks}; use pool=uniform."
            )
        if self.rule.loss not in ("", loss):
            raise Error(
                f"pair_loss={loss} is not allowed: {rule} is defined with pair_loss={self.rule.loss}; "
                "leave it out, or use another sampler."
            )
        if "q" in self.loss.needs and not self.knows_q:
            raise Error(
                f"pair_loss={loss} {WANTED['q'][0]}, which {rule} over pool={pool} does not know of what "
                "it draws: use pair_loss=infonce, or another sampler."
            )
        if self.block != 1 and not ("blocks" in self.pool.gives and self.rule.takes_N):
            raise Error(
                f"pool_block={self.block} is not possible with {rule} over pool={pool}: each pair has "
                "draws of its own."
            )


class Named(NamedTuple):
    """A method as a run can name it; its parts' settings are defaults, and some parts can be replaced."""

    name: str
    method: Method
    about: str = ""
    title: str = ""  # as the paper writes it, with settings in braces: "DNS({M}, {N})"
    open_pool: bool = False  # whether `pool` chooses
    loss_free_title: str = ""  # where the title is that of its loss, and another is minimised
    original: tuple[tuple[str, object], ...] = ()  # settings that make it a known method, a baseline

    def build(self, values: Mapping[str, Any]) -> Method:
        """The method with the settings that are given, by key."""
        pool, rule, loss = self.parts(values)
        given: dict[str, dict[str, Any]] = {"pool": {}, "rule": {}, "loss": {}}
        for key, part, one in spelled(rule, pool, loss):
            if key in values:
                given[part.kind][one.key] = values[key]
        return Method(
            pool=type(pool).from_settings(given["pool"], pool),
            rule=type(rule).from_settings(given["rule"], rule),
            loss=type(loss).from_settings(given["loss"], loss),
            N=values.get("N", self.method.N),
            block=values.get("pool_block", self.method.block),
        )

    def parts(self, values: Mapping[str, Any]) -> tuple[Pool, Rule, Loss]:
        """The pool, rule and loss that are chosen, as they are by default."""
        pool, loss = self.method.pool, self.method.loss
        if "pool" in values and self.open_pool:
            chosen = find("pool", values["pool"])
            pool = pool if chosen is type(pool) else chosen()
        if "pair_loss" in values:
            wanted = find("loss", values["pair_loss"], "pair_loss")
            loss = loss if wanted is type(loss) else wanted()
        return pool, self.method.rule, loss

    def defaults(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """All settings that the method has beside what ``values`` chooses."""
        pool, rule, loss = self.parts(values)
        N = values.get("N")
        if is_whole(N) and N > 0:
            rule = rule.by_default(N)
        own, method = values_of(rule, pool, loss), self.method
        if method.N is not None and "ids" in pool.gives:
            own["N"] = method.N
        if self.open_pool:
            own["pool"] = name_of(pool)
        if "blocks" in pool.gives and rule.takes_N:
            own["pool_block"] = method.block
        return {**own, "pair_loss": name_of(loss)}

    def keys(self, values: Mapping[str, Any] | None = None) -> list[str]:
        """Every setting that the method heeds, its own first."""
        return list(self.defaults(values or {}))

    def kinds(self, values: Mapping[str, Any] | None = None) -> dict[str, Kind]:
        """What each of these settings may be."""
        pool, rule, loss = self.parts(values or {})
        return {**COMMON, **{key: one.kind for key, _, one in spelled(rule, pool, loss)}}

    def searched(self) -> dict[str, tuple[Any, ...]]:
        """What a search varies by default."""
        found = {key: one.about.search for key, _, one in spelled(self.method.rule, self.method.pool)}
        return {key: values for key, values in found.items() if values}


def spelled(*parts: Part) -> Iterator[tuple[str, Part, Setting]]:
    """The settings of a method's parts, the rule's first, each with its part and under a key of its own.

    Where the pool has a setting of the same name as the rule's ``tau``, it is ``pool_tau``.
    """
    taken = set(COMMON)
    for part in parts:
        for one in settings_of(type(part)):
            key = f"{part.kind}_{one.key}" if one.key in taken else one.key
            taken.add(key)
            yield key, part, one


def values_of(*parts: Part) -> dict[str, Any]:
    """What the parts are set to, by these keys."""
    return {key: getattr(part, one.field) for key, part, one in spelled(*parts)}


# ----------------------------------------------------------------------------------- by name


def all_methods() -> dict[str, Named]:
    """All methods by name: those of the paper in its table's order, registered ones, and every rule."""
    found: dict[str, Named] = {}
    for name, one in table("method").items():
        found[name] = one if isinstance(one, Named) else Named(name, one, _parts_line(one), name)
    for name, rule in table("rule").items():
        if name not in found:
            found[name] = Named(name, Method(rule=rule()), rule.about(), rule.title or name, True)
    return found


def named(name: object) -> Named:
    """The method of that name.

    Raises:
        Error: if there is none, with the nearest.
    """
    known = all_methods()
    if not isinstance(name, str) or name not in known:
        hint = nearest(plain_word(name), known)
        raise Error(f"sampler={plain_word(name)} is unknown{hint}: choose one of {', '.join(known)}.")
    return known[name]


def title(name: str, pair_loss: str = "") -> str:
    """What reports call a method, without its settings: DNS, PRIS(U)."""
    return _title(name, pair_loss).partition("({")[0]


def _title(name: str, pair_loss: object = "") -> str:
    one = all_methods().get(name)
    if one is None:
        return name
    of_its_loss = pair_loss in ("", None, own_loss(name))
    return one.title or name if of_its_loss else one.loss_free_title or one.title or name


def own_loss(name: str) -> str:
    """The loss that a method is defined with; BPR for unknown ones."""
    one = all_methods().get(name)
    return name_of(BPR() if one is None else one.method.loss)


def original(name: str, settings: Mapping[str, Any]) -> str:
    """The settings, ``M = 1``, that make the method one that was known before; else nothing."""
    one = all_methods().get(name)
    if one is None or not one.original or any(settings.get(k) != v for k, v in one.original):
        return ""
    return ", ".join(f"{symbol(key)} = {value}" for key, value in one.original)


def label(name: str, settings: Mapping[str, Any]) -> str:
    """What reports call a method with its settings: DNS(5, 200)."""
    text = _title(name, settings.get("pair_loss"))
    shown = {key: f"{v:g}" if isinstance(v, float) else v for key, v in settings.items()}
    try:
        return text.format_map(shown) if name in all_methods() else name
    except (KeyError, ValueError, IndexError):  # a record without these settings
        return text.partition("({")[0]


def symbol(key: str) -> str:
    """How the paper writes a setting: ρ for rho."""
    for kind in ("rule", "pool", "loss"):
        for part in table(kind).values():
            for one in settings_of(part):
                if one.key == key and one.about.symbol:
                    return one.about.symbol
    return key


def place(name: str) -> int:
    """The method's place in the paper's table; unknown ones come last."""
    known = list(all_methods())
    return known.index(name) if name in known else len(known)


def setting_kinds() -> dict[str, Kind]:
    """What every setting of methods, pools, rules and losses may be, by key.

    Where parts share a key, the one that says least of itself speaks for all.
    """
    found: dict[str, Kind] = {}
    for kind in ("rule", "pool", "loss"):
        for part in table(kind).values():
            for one in settings_of(part):
                known = found.setdefault(one.key, one.kind)
                if len(one.about.text) < len(about_of(known).text):
                    found[one.key] = one.kind
    return {**COMMON, **found}


def owners(key: str) -> list[str]:
    """The methods, and the losses, that a setting goes with."""
    found = [f"sampler={name}" for name, one in all_methods().items() if key in one.defaults({})]
    losses = [f"pair_loss={name}" for name, loss in table("loss").items() if key in _keys(loss)]
    return losses or found or [f"pool={n}" for n, pool in table("pool").items() if key in _keys(pool)]


def _keys(part: type[Part]) -> list[str]:
    return [one.key for one in settings_of(part)]


def _parts_line(method: Method) -> str:
    return f"{name_of(method.rule)} over pool {name_of(method.pool)}, loss {name_of(method.loss)}"


for _one in (
    Named(
        "uniform",
        Method(rule=rules.Uniform(), N=1),
        "BPR: N uniform negatives",
        "BPR",
        True,
        loss_free_title="Uniform",
    ),
    Named(
        "popularity",
        Method(pools.Popularity(), rules.Uniform(), N=1),
        "N negatives ∝ count^pool_alpha",
        "Popularity",
    ),
    Named(
        "aobpr",
        Method(pools.AOBPR(), rules.Uniform(), N=1),
        "AOBPR: what ranks high in a factor of the context",
        "AOBPR",
    ),
    Named(
        "warp",
        Method(rule=rules.WARP(), loss=Hinge()),
        "WARP: the first violator, weighed by rank",
        "WARP",
        True,
    ),
    Named("irgan", Method(rule=rules.IRGAN()), "IRGAN: a generator learns to draw", "IRGAN", True),
    Named(
        "kernel",
        Method(pools.Kernel(), rules.Softmax(), N=5),
        "candidates from a quadratic kernel, softmax weights",
        "Kernel",
    ),
    Named(
        "pris_u", Method(rule=rules.Softmax()), "PRIS(U): importance weights, uniform pool", "PRIS(U)"
    ),
    Named(
        "pris_p",
        Method(pools.Popularity(), rules.Softmax()),
        "PRIS(P): importance weights, popularity pool",
        "PRIS(P)",
    ),
    Named(
        "adasir_u",
        Method(pools.AdaSIR(), rules.Uniform(), N=5),
        "AdaSIR(U): a resampled pool per user",
        "AdaSIR(U)",
    ),
    Named(
        "adasir_p",
        Method(pools.PopularAdaSIR(), rules.Uniform(), N=5),
        "AdaSIR(P): the same, popular proposals",
        "AdaSIR(P)",
    ),
    Named(
        "non_sampling",
        Method(pools.Everything(), rules.Uniform()),
        "the full BPR loss over all negatives",
        "Non-Sampling",
    ),
    Named(
        "softmax",
        Method(rule=rules.Softmax()),
        "softmax of the scores at a fixed temperature",
        "Softmax",
        True,
    ),
    Named(
        "dns",
        Method(rule=rules.DNS()),
        "DNS(M, N): the M hardest of N candidates",
        "DNS({M}, {N})",
        True,
        original=(("M", 1),),
    ),
    Named(
        "softmax_v",
        Method(rule=rules.SoftmaxV()),
        "Softmax-v(ρ, N): softmax whose temperature adapts",
        "Softmax-v({rho}, {N})",
        True,
    ),
):
    table("method")[_one.name] = _one
