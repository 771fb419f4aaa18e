"""A training step in a loop of one's own."""

from __future__ import annotations

import torch

from recbole_hns.errors import Error
from recbole_hns.kernels import Candidates
from recbole_hns.losses import Loss
from recbole_hns.sampling.pools.base import of_chosen
from recbole_hns.sampling.query import DotQuery
from recbole_hns.sampling.rules import Rule
from recbole_hns.sampling.sampler import Sampler
from recbole_hns.sampling.scored import Scored
from recbole_hns.settings.registry import name_of


def step(
    query: DotQuery,
    candidates: Candidates,
    rule: Rule,
    loss: Loss,
    log_q: torch.Tensor | None = None,
) -> torch.Tensor:
    """The mean loss of a batch, for ``.backward()``: candidates weighed by the rule, without gradient.

    A loss that corrects for q takes the candidates' ``log_q``, (B, N) or (B, 1), where they do not bring it:
    uniform ones, for which it is ``source.log_q(users, candidates, candidates)``.

    Raises:
        Error: for a rule or a loss that needs more than this.
    """
    if rule.sampler() is not Sampler:
        raise Error(
            f"{name_of(rule)} does not only weigh candidates: open a Method with it, "
            "and call its select(users, query) and the loss of what that gives."
        )
    rule.check(candidates.ids.shape[1])
    with torch.no_grad():
        negatives = rule.choose(Scored(query, candidates, loss))
    if "q" in loss.needs:
        log_q = _log_q_of(candidates, loss) if log_q is None else log_q
        negatives.log_q = of_chosen(log_q, candidates, negatives.candidates)
    return negatives.loss(query, loss)


def _log_q_of(candidates: Candidates, loss: Loss) -> torch.Tensor:
    if candidates.log_q is None:
        raise Error(
            f"{name_of(loss)} corrects for how often an item is drawn, and these candidates do not tell: "
            "give step(…, log_q=source.log_q(users, candidates, candidates))."
        )
    return candidates.log_q
