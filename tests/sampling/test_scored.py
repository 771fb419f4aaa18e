"""What rules see of candidates: computed when asked for, and once."""

import pytest
import torch

from recbole_hns.kernels import Candidates
from recbole_hns.losses import BPR, Hinge
from recbole_hns.sampling.scored import Rows, Scored


class Counting:
    """A query that counts what it is asked."""

    def __init__(self, r_ci, r_cj):
        self.r_ci, self.r_cj, self.asked = r_ci, r_cj, 0

    def score(self, candidates):
        self.asked += 1
        return self.r_cj

    def top(self, candidates, M):
        scores, place = self.r_cj.topk(M, dim=1)
        return candidates.ids.gather(1, place), scores


@pytest.fixture
def query():
    return Counting(torch.tensor([1.0, -1.0]), torch.tensor([[0.0, 2.0, 1.5], [-3.0, 0.5, 0.0]]))


CANDIDATES = Candidates(torch.tensor([[4, 7, 5], [9, 3, 2]], dtype=torch.int32))


def test_nothing_is_scored_until_a_rule_asks_and_then_once(query):
    scored = Scored(query, CANDIDATES)
    assert scored.shape == (2, 3)
    assert (scored.known("r_cj"), scored.known("ell"), query.asked) == (None, None, 0)
    assert torch.equal(scored.ell, scored.ell)
    assert torch.equal(scored.known("r_cj"), query.r_cj)
    assert query.asked == 1


@pytest.mark.parametrize("loss", [BPR(), Hinge(margin=0.7)], ids=str)
def test_ell_is_the_losses_of_single_negatives(query, loss):
    ell = Scored(query, CANDIDATES, loss).ell
    for b in range(2):
        for n in range(3):
            t = query.r_ci[b] - query.r_cj[b, n]
            expected = torch.log1p(torch.exp(-t)) if isinstance(loss, BPR) else max(0.7 - t, 0 * t)
            torch.testing.assert_close(ell[b, n], expected)


def test_the_loss_is_bpr_unless_told(query):
    assert Scored(query, CANDIDATES).loss == BPR()


def test_top_is_the_querys(query):
    ids, scores = Scored(query, CANDIDATES).top(2)
    assert ids.tolist() == [[7, 5], [3, 2]]
    assert scores.tolist() == [[2.0, 1.5], [0.5, 0.0]]


def test_log_q_is_the_candidates():
    log_q = torch.tensor([[-1.0]])
    assert Scored(None, Candidates(CANDIDATES.ids, log_q=log_q)).log_q is log_q


def test_rows_of_scores_read_like_scored_candidates(query):
    rows = Rows(query.r_ci, query.r_cj, BPR())
    assert rows.shape == (2, 3)
    assert rows.log_q is None
    torch.testing.assert_close(rows.ell, Scored(query, CANDIDATES).ell)
