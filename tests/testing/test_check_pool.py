"""Our own pools pass; a broken one is caught by the sentence that says what is broken."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import pytest
import torch

from recbole_hns.kernels import Candidates
from recbole_hns.sampling import pools
from recbole_hns.sampling.pools import LinePool, LineSource, Pool, Source
from recbole_hns.settings import Positive, setting
from recbole_hns.settings.registry import table
from recbole_hns.testing import check_pool


@pytest.mark.parametrize("pool", table("pool").values(), ids=list(table("pool")))
def test_our_own_pool_passes(pool):
    check_pool(pool)


@pytest.mark.parametrize(
    "pool",
    [pools.Popularity(alpha=0.0), pools.AdaSIR(keep=0.0, tau=0.1), pools.Kernel(kernel_alpha=0.5)],
)
def test_with_other_settings(pool):
    check_pool(pool)


def broken(drawing=None, **declared):
    """A pool whose sources draw as ``drawing(source, users, N, query)`` does."""

    class Opened(LineSource):
        def draw(self, users, N, query=None):
            return drawing(self, users, N, query) if drawing else own(self, users, N)

        log_q = Source.log_q if drawing else LineSource.log_q

    class Broken(Pool, frozen=True):
        """Not right."""

        gives: ClassVar[frozenset[str]] = declared.get("gives", frozenset({"ids"}))
        stands_for_all: ClassVar[bool] = declared.get("even", False)

        def open(self, world, block=1):
            return Opened(world, world.line)

    return Broken()


def own(source, users, N):
    """A right draw."""
    return LineSource.draw(source, users, N)


def any_item(source, users, N, query):
    first = source.world.positives.first
    shape = (len(users), N)
    ids = torch.randint(first, source.world.n_items, shape, generator=source.generator)
    return Candidates(ids.int())


def past_the_end(source, users, N, query):
    drawn = own(source, users, N)
    drawn.ids[0, 0] = source.world.n_items
    return drawn


def turned(source, users, N, query):
    return Candidates(own(source, users, N).ids.T.contiguous())


def with_torchs_generator(source, users, N, query):
    source.generator.manual_seed(torch.randint(2**31, ()).item())
    return own(source, users, N)


def always_the_same(source, users, N, query):
    source.generator.manual_seed(3)
    return own(source, users, N)


def remembering(source, users, N, query):
    """Every other draw is another, which no state tells."""
    source.drawn = getattr(source, "drawn", 0) + 1
    drawn = own(source, users, N)
    return Candidates(drawn.ids.flip(1)) if source.drawn % 2 else drawn


def twice_q(source, users, N, query):
    drawn = own(source, users, N)
    n = source.line.mass[users].double()
    drawn.log_q = (2 / n).log().float()[:, None].expand(-1, N).contiguous()
    return drawn


def wrong_q(source, users, N, query):
    """Right in sum: an even pool that tells a q that is not even."""
    drawn = own(source, users, N)
    weights = torch.arange(1.0, source.world.n_items + 1)
    totals = torch.stack(
        [weights.sum() - weights[list(source.world.positives[int(u)])].sum() for u in users]
    )
    drawn.log_q = (weights[drawn.ids.long()] / totals[:, None]).log()
    return drawn


def asking_for_vectors(source, users, N, query):
    query.vectors  # noqa: B018
    return own(source, users, N)


def the_highest(source, users, N, query):
    if query is None:
        return own(source, users, N)
    drawn = own(source, users, 8 * N)
    ids, _ = query.top(drawn, N)
    return Candidates(ids)


def by_scores(source, users, N, query):
    return Candidates(query.top(own(source, users, N), N)[0])


Q = frozenset({"ids", "q"})


@pytest.mark.parametrize(
    ("pool", "sentence"),
    [
        (broken(any_item), r"item \[\d+\] is drawn for user \d, who took it"),
        (broken(past_the_end), r"ids from \d+ to 24 are drawn, and there are 0 to 23\."),
        (broken(turned), r"ids has the shape \(1, 40\), and must have \(40, 1\)\."),
        (broken(with_torchs_generator), r"with the same seed \d+ of 1080 draws differ"),
        (broken(always_the_same), r"another seed draws the same 1080 items\."),
        (broken(remembering), r"resumed from its state_dict it draws \d+ of 240 items otherwise"),
        (broken(gives=frozenset({"ids", "q", "line"})), None),
        (broken(twice_q, gives=Q), r"log_q is 0\.693, and cannot be above 0\."),
        (broken(wrong_q, gives=Q), r"item \d+ is drawn \d+ times of 20000 where \d+ are expected"),
        (broken(the_highest, even=True), r"stands_for_all says is drawn evenly: item \d+ is drawn"),
        (
            broken(asking_for_vectors),
            r"draw fails: AttributeError: 'ScoresOnly' object has no .*'vectors'",
        ),
        (broken(lambda s, u, N, q: 1 / 0), r"pool broken: draw fails: ZeroDivisionError"),
        (
            broken(the_highest, gives=frozenset({"ids", "line"})),
            r"gives 'line', and \d+ of its draws depend",
        ),
        (
            broken(by_scores, gives=frozenset({"ids", "line"})),
            r"draw without a query, as gives = \{'line'\} prom",
        ),
    ],
)
def test_a_broken_pool_is_told(pool, sentence):
    if sentence is None:
        check_pool(pool)
        return
    with pytest.raises(AssertionError, match=sentence):
        check_pool(pool)


def test_a_promised_q_that_is_not_told():
    class NoQ(Pool, frozen=True):
        """Promises q."""

        gives: ClassVar[frozenset[str]] = Q

        def open(self, world, block=1):
            class Drawn(Source):
                def draw(self, users, N, query=None):
                    return LineSource(self.world, self.world.line).draw(users, N)

            return Drawn(world)

    with pytest.raises(
        AssertionError, match=r"log_q, which gives = \{'q'\} promises, fails: NotImplemented"
    ):
        check_pool(NoQ)


def test_weights_that_are_not_those_of_the_draws():
    class Tail(LinePool, frozen=True):
        """Draws evenly for the first half of the items, whatever its weights say."""

        def weights(self, world):
            return np.arange(world.n_items) + 1 - world.positives.first

        def open(self, world, block=1):
            source = super().open(world, block)
            return LineSource(world, world.line, block, source.log_weights)

    with pytest.raises(
        AssertionError, match=r"by its log_q: item \d+ is drawn|cannot be above 0|sums to"
    ):
        check_pool(Tail())


def test_settings_that_are_not_checked():
    class Loose(pools.Uniform, frozen=True):
        """Forgets what its annotation says."""

        power: Annotated[Positive, setting("a power")] = 1.0

        def __post_init__(self):
            """Nothing."""

    with pytest.raises(
        AssertionError, match=r"takes power=None, which its annotation forbids: it must be a numb"
    ):
        check_pool(Loose())


def test_no_docstring_and_no_pool():
    class Silent(pools.Uniform, frozen=True):
        pass

    with pytest.raises(AssertionError, match="pool silent has no docstring"):
        check_pool(Silent)
    with pytest.raises(AssertionError, match=r"'uniform' is no Pool: derive it from Pool\."):
        check_pool("uniform")


def test_an_open_that_gives_no_source():
    class Empty(Pool, frozen=True):
        """Opens nothing."""

        def open(self, world, block=1):
            return None

    with pytest.raises(AssertionError, match="open gives NoneType, and must give a Source"):
        check_pool(Empty)


def test_all_items_with_a_weight_on_what_was_taken():
    from recbole_hns.sampling.pools.everything import AllNegatives, AllSampler, Everything

    class Wrong(AllNegatives):
        def mass(self, n_items):
            return super().mass(n_items).roll(1)

    class WrongSampler(AllSampler):
        def select(self, users, query):
            return Wrong(self.world, self.method, users, query)

    class Shifted(Everything, frozen=True):
        """One off."""

        @classmethod
        def sampler(cls):
            return WrongSampler

    with pytest.raises(
        AssertionError, match=r"pool shifted .*: the weight that falls on the items: .* instead of"
    ):
        check_pool(Shifted)
