"""Does a pool keep its contract?"""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import torch
from scipy.special import chdtrc

from recbole_hns.kernels import Candidates
from recbole_hns.sampling.methods import Method
from recbole_hns.sampling.pools import LineSource, Pool, Source
from recbole_hns.sampling.rules import Uniform
from recbole_hns.sampling.world import World
from recbole_hns.testing.methods import check_negatives_of_all
from recbole_hns.testing.parts import check_part, made
from recbole_hns.testing.say import (
    called,
    failing_as,
    require,
    require_close,
    require_finite,
    require_shape,
)
from recbole_hns.testing.worlds import (
    BACKENDS,
    N_USERS,
    ScoresOnly,
    begin,
    made_query,
    made_users,
    made_world,
    made_worlds,
    negatives_of,
    query_for,
)

DRAWS = 20_000
LEAST = 1e-5  # of a χ² test with a fixed seed


def check_pool(pool: Pool | type[Pool]) -> None:
    """Negatives of the user and nothing else, the same for the same seed, with the q that it tells.

    Raises:
        AssertionError: with what is broken, in a sentence.
    """
    pool = made(pool, Pool)
    check_part(pool)
    if "ids" not in pool.gives:
        for world, where in made_worlds():
            check_negatives_of_all(Method(pool, Uniform()), world, f"{called(pool)} ({where})")
        return
    for world, where in made_worlds():
        for block in (1, 3) if "blocks" in pool.gives else (1,):
            _check_draws(pool, world, block, f"{called(pool)} ({where}, block {block})")
    for backend in BACKENDS:
        _check_seed(pool, backend)
        _check_state(pool, backend)
        _check_frequencies(pool, backend)
    _check_declared(pool)


def draw(pool: Pool, source: Source, users: torch.Tensor, N: int) -> Candidates:
    """N candidates, drawn with a query that shows vectors only to a pool that says it needs them."""
    world = source.world
    with failing_as(f"{called(pool)}: draw"), torch.no_grad():
        return source.draw(users, N, query_for(world, users, pool.needs_vectors))


def _opened(pool: Pool, world: World, block: int = 1) -> Source:
    with failing_as(f"{called(pool)}: open"):
        source = pool.open(world, block)
    require(
        isinstance(source, Source),
        f"{called(pool)}: open gives {type(source).__name__}, and must give a Source.",
    )
    begin(world, source, 0)
    return source


def _check_draws(pool: Pool, world: World, block: int, what: str) -> None:
    """Shape, range, and that nobody is given what they took."""
    source = _opened(pool, world, block)
    for N in (1, 7, 40):
        users = made_users()
        drawn = draw(pool, source, users, N)
        require_shape(drawn.ids, (len(users), N), f"{what}: ids")
        require(
            not drawn.ids.is_floating_point(),
            f"{what}: ids are {drawn.ids.dtype}, and must be whole numbers.",
        )
        least, most, first = int(drawn.ids.min()), int(drawn.ids.max()), world.positives.first
        require(
            least >= first and most < world.n_items,
            f"{what}: ids from {least} to {most} are drawn, and there are {first} to {world.n_items - 1}.",
        )
        for user, row in zip(users.tolist(), drawn.ids.tolist(), strict=True):
            wrong = sorted(set(row) & world.positives[user])
            require(not wrong, f"{what}: item {wrong[:1]} is drawn for user {user}, who took it.")
        _check_log_q(pool, source, users, drawn, what)


def _check_log_q(pool: Pool, source: Source, users: torch.Tensor, drawn: Candidates, what: str) -> None:
    """log q has a shape that losses take, and is the same for some of the drawn as for all."""
    if drawn.log_q is not None:
        require_shape(drawn.log_q, tuple(drawn.ids.shape), f"{what}: log_q")
        require(not drawn.log_q.requires_grad, f"{what}: log_q has a gradient: detach it.")
    if "q" not in pool.gives:
        return
    with failing_as(f"{what}: log_q, which gives = {{'q'}} promises,"):
        of_all = source.log_q(users, drawn, drawn)
        N = drawn.ids.shape[1]
        columns = torch.arange(N - 1, -1, -2).expand(len(users), -1)
        of_some = source.log_q(users, drawn, Candidates(drawn.ids.gather(1, columns)))
    require_finite(of_all, f"{what}: log_q")
    require(
        float(of_all.max()) <= 1e-4,
        f"{what}: log_q is {float(of_all.max()):.3g}, and cannot be above 0.",
    )
    of_all, of_some = of_all.expand(-1, N), of_some.expand(-1, columns.shape[1])
    require_close(of_some, of_all.gather(1, columns), f"{what}: log_q of some of the drawn")


def _check_seed(pool: Pool, backend: str) -> None:
    """The same seed and epoch draw the same; another draws something else."""
    users, drawn = made_users(), {}
    for name, seed, epoch in (("a", 1, 2), ("b", 1, 2), ("seed", 2, 2), ("epoch", 1, 3)):
        world = made_world(backend, seed=seed)
        source = _opened(pool, world)
        begin(world, source, epoch)
        drawn[name] = torch.cat([draw(pool, source, users, 9).ids for _ in range(3)])
    what = f"{called(pool)} (hns_backend={backend})"
    differ = int((drawn["a"] != drawn["b"]).sum())
    require(
        differ == 0,
        f"{what}: with the same seed {differ} of {drawn['a'].numel()} draws differ: "
        "all randomness must come from the source's generator.",
    )
    for name in ("seed", "epoch"):
        same = torch.equal(drawn["a"], drawn[name])
        require(not same, f"{what}: another {name} draws the same {drawn['a'].numel()} items.")


def _check_state(pool: Pool, backend: str) -> None:
    """A source that goes on from a state draws what the one that was not stopped draws."""
    users, what = made_users(), f"{called(pool)} (hns_backend={backend})"
    world = made_world(backend)
    source = _opened(pool, world)
    begin(world, source, 1)
    draw(pool, source, users[:20], 6)
    state = read_back(source.state_dict(), what)
    at = world.generator.get_state()
    expected = draw(pool, source, users, 6).ids
    again = made_world(backend)
    resumed = _opened(pool, again)
    begin(again, resumed, 1)
    with failing_as(f"{what}: load_state_dict"):
        resumed.load_state_dict(state)
    again.generator.set_state(at)
    differ = int((draw(pool, resumed, users, 6).ids != expected).sum())
    require(
        differ == 0,
        f"{what}: resumed from its state_dict it draws {differ} of {expected.numel()} items otherwise: "
        "what it remembers from batch to batch must be in its state.",
    )


def read_back(state: dict[str, Any], what: str) -> dict[str, Any]:
    """The state as a checkpoint gives it back: tensors and plain data."""
    file = io.BytesIO()
    with failing_as(f"{what}: the state_dict, which must be tensors and plain data,"):
        torch.save(copy.deepcopy(state), file)
        file.seek(0)
        read: dict[str, Any] = torch.load(file, weights_only=True)
    return read


# ----------------------------------------------------------------------------------- frequencies


def _check_frequencies(pool: Pool, backend: str) -> None:
    """How often items are drawn is what log q tells, and what the pool declares."""
    blocks = (1, 3) if "blocks" in pool.gives else (1,)
    for user in (0, N_USERS // 2, N_USERS - 2):
        for block in blocks:
            world = made_world(backend)
            source = _opened(pool, world, block)
            what = f"{called(pool)} (hns_backend={backend}, block {block}), user {user}"
            if "q" in pool.gives:
                observed, q = _counted(pool, source, user, block)
                check_q(observed, q, what)
            if pool.stands_for_all:
                observed, _ = _counted(pool, source, user, block, with_q=False)
                free = negatives_of(world, user)
                even = np.zeros(len(observed))
                even[free] = 1 / len(free)
                check_counts(observed, even, f"{what}, which stands_for_all says is drawn evenly")


def _counted(pool: Pool, source: Source, user: int, block: int, with_q: bool = True) -> tuple[Any, Any]:
    """How often each item is drawn for a user, and its q.

    One pair of each block is counted, so that draws are independent.
    """
    N, world = 50, source.world
    users = torch.randint(N_USERS, (DRAWS // N * block,), generator=torch.Generator().manual_seed(6))
    users[::block] = user
    drawn = draw(pool, source, users, N)
    ids = drawn.ids[::block].flatten().long()
    observed = np.bincount(ids.numpy(), minlength=world.n_items)
    if not with_q:
        return observed, None
    log_q = source.log_q(users, drawn, drawn).expand(-1, N)[::block].flatten().double()
    low = torch.full((world.n_items,), torch.inf, dtype=torch.float64).scatter_reduce(
        0, ids, log_q, "amin"
    )
    high = torch.full((world.n_items,), -torch.inf, dtype=torch.float64).scatter_reduce(
        0, ids, log_q, "amax"
    )
    spread = float((high - low)[torch.from_numpy(observed > 0)].max())
    require(
        spread < 1e-3, f"{called(pool)}: log_q of one user's item differs by {spread:.3g} between draws."
    )
    return observed, np.where(observed > 0, np.exp(high.numpy()), 0)


def check_q(observed: Any, q: Any, what: str) -> None:
    """Frequencies against q, of which only that of drawn items is known."""
    total = float(q.sum())
    require(
        total <= 1.001,
        f"{what}: q of the items that are drawn sums to {total:.4g}, and must not be above 1.",
    )
    check_counts(np.append(observed, 0), np.append(q, max(0.0, 1 - total)), f"{what}, by its log_q")


def check_counts(observed: Any, q: Any, what: str) -> None:
    """χ²; items that are expected fewer than 5 times are counted together."""
    expected = q * observed.sum()
    few = expected < 5
    cells = [(observed[~few], expected[~few]), (observed[few].sum()[None], expected[few].sum()[None])]
    seen, wanted = (np.concatenate(parts).astype(float) for parts in zip(*cells, strict=True))
    kept = wanted > 0
    require(seen[~kept].sum() == 0, f"{what}: {int(seen[~kept].sum())} draws of items that have no q.")
    chi2 = float(((seen[kept] - wanted[kept]) ** 2 / wanted[kept]).sum())
    p = float(chdtrc(max(1, kept.sum() - 1), chi2))
    worst = int(np.argmax(np.abs(observed - expected)))
    require(
        p > LEAST,
        f"{what}: item {worst} is drawn {int(observed[worst])} times of {int(observed.sum())} where "
        f"{expected[worst]:.0f} are expected (χ² {chi2:.0f}, p {p:.1e}).",
    )


def _check_declared(pool: Pool) -> None:
    """What ``gives`` promises beside ids and q."""
    world, users = made_world(), made_users()
    if "line" not in pool.gives:
        return
    source = _opened(pool, world)
    require(isinstance(source, LineSource), f"{called(pool)} gives 'line' and opens no LineSource.")
    by_query = source.draw(users, 5, ScoresOnly(made_query(world, users))).ids
    world.start_epoch(0)
    with failing_as(f"{called(pool)}: draw without a query, as gives = {{'line'}} promises,"):
        differ = int((source.draw(users, 5).ids != by_query).sum())
    require(differ == 0, f"{called(pool)} gives 'line', and {differ} of its draws depend on the model.")
