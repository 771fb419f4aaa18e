"""OPAUC and its family against double loops from the paper, scikit-learn and RecBole's GAUC."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from recbole_hns import Error
from recbole_hns.kernels import get_kernels
from recbole_hns.metrics import RankCounts, llpauc, nopauc, opauc, opauc_at_k

NUMBA = get_kernels("numba", torch.device("cpu"))
BETAS = [0.05, 0.1, 0.3, 0.77, 1.0]


def random_case(generator, users=9, items=40, ties=False):
    """Scores with −inf for items that do not take part, and 1 to 7 positives per user."""
    scores = torch.randn(users, items, generator=generator)
    if ties:
        scores = scores.mul(2).round().div(2)
    scores[:, 0] = -torch.inf
    pairs = []
    for user in range(users):
        chosen = torch.randperm(items - 1, generator=generator) + 1
        pairs += [(user, int(item)) for item in chosen[: 1 + user % 7]]
        scores[user, chosen[-6:]] = -torch.inf
    order = torch.randperm(len(pairs), generator=generator)  # in no particular order
    positive_u, positive_i = torch.tensor(pairs)[order].T
    return scores, positive_u, positive_i


def labels_and_scores(scores, positive_u, positive_i):
    """(labels, scores) of each user, masked items removed."""
    for user in range(len(scores)):
        labels = np.zeros(scores.shape[1])
        labels[positive_i[positive_u == user]] = 1
        taking_part = np.isfinite(scores[user].numpy())
        yield labels[taking_part], scores[user].numpy()[taking_part]


def opauc_by_loops(labels, scores, b):
    """Equation 8: pairs won against the b highest-scored negatives, over n₊ n₋; ties count half."""
    positives, negatives = scores[labels == 1], np.sort(scores[labels == 0])[::-1]
    won = sum(float(r_ci > r_cj) + 0.5 * (r_ci == r_cj) for r_ci in positives for r_cj in negatives[:b])
    return won / len(positives) / len(negatives)


def test_opauc_is_the_papers_estimator(kernels, generator):
    case = random_case(generator)
    counts = RankCounts.from_scores(*case, kernels)
    users = list(labels_and_scores(*case))
    for k in (1, 3, 10):
        expected = np.mean([opauc_by_loops(labels, scores, k) for labels, scores in users])
        assert opauc_at_k(counts, k) == pytest.approx(expected, abs=1e-9)
    one = [np.flatnonzero(case[1] == 3)]
    alone = RankCounts.from_scores(
        case[0][3:4], torch.zeros(len(one[0])).long(), case[2][one[0]], kernels
    )
    n_neg = int((users[3][0] == 0).sum())
    for b in (1, 5, n_neg):
        assert opauc(alone, b / n_neg) == pytest.approx(opauc_by_loops(*users[3], b), abs=1e-9)


@pytest.mark.parametrize("beta", BETAS)
def test_nopauc_is_scikit_learns_partial_auc(kernels, generator, beta):
    case = random_case(generator)
    counts = RankCounts.from_scores(*case, kernels)
    expected = [roc_auc_score(y, s, max_fpr=beta) for y, s in labels_and_scores(*case)]
    assert nopauc(counts, beta) == pytest.approx(np.mean(expected), abs=1e-6)


@pytest.mark.parametrize("levels", [2, 6, 30])
@pytest.mark.parametrize("beta", [0.001, *BETAS])
def test_with_ties_it_is_scikit_learns_too(kernels, generator, beta, levels):
    """Also where β falls among the ties: the ROC curve passes them in a straight line."""
    scores, *positives = random_case(generator, users=30, items=80)
    taking_part = scores > -torch.inf
    drawn = torch.randint(levels, scores.shape, generator=generator).float()
    case = (torch.where(taking_part, drawn, scores), *positives)
    counts = RankCounts.from_scores(*case, kernels)
    expected = [roc_auc_score(y, s, max_fpr=beta) for y, s in labels_and_scores(*case)]
    assert nopauc(counts, beta) == pytest.approx(np.mean(expected), abs=1e-9)
    # scikit-learn's value, un-normalised: McClish (1989)
    area = beta**2 / 2 + (2 * np.array(expected) - 1) * (beta - beta**2 / 2)
    assert opauc(counts, beta) == pytest.approx(area.mean(), abs=1e-9)


def test_ties_among_which_the_rate_falls_count_by_the_straight_line_through_them(kernels):
    """One positive among 4 tied negatives below 1 of 10: the line rises from 0.1 to 0.5."""
    scores = torch.tensor([[9.0, 5.0, 5.0, 5.0, 5.0, 5.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    counts = RankCounts.from_scores(scores, torch.tensor([0]), torch.tensor([3]), kernels)
    assert (counts.above.tolist(), counts.tied.tolist(), counts.n_neg.tolist()) == ([3], [4], [10])
    for beta, area in ((0.1, 0), (0.2, 0.0125), (0.3, 0.05), (0.5, 0.2), (1, 0.7)):
        assert opauc(counts, beta) == pytest.approx(area, abs=1e-12)
    assert opauc_at_k(counts, 3) == pytest.approx(0.05)
    assert llpauc(counts, 1, 0.3) == pytest.approx(0.05)
    assert opauc(counts, 0.3, alpha=0.2) == pytest.approx(0.0375)


def test_with_ties_beta_1_is_auc(kernels, generator):
    case = random_case(generator, ties=True)
    counts = RankCounts.from_scores(*case, kernels)
    expected = np.mean([roc_auc_score(y, s) for y, s in labels_and_scores(*case)])
    assert opauc(counts, 1) == pytest.approx(expected, abs=1e-9)
    assert nopauc(counts, 1) == pytest.approx(expected, abs=1e-9)


def test_the_range_form_is_a_difference(kernels, generator):
    counts = RankCounts.from_scores(*random_case(generator), kernels)
    assert opauc(counts, 0.5, alpha=0.2) == pytest.approx(opauc(counts, 0.5) - opauc(counts, 0.2))


def test_llpauc_keeps_the_best_ranked_positives(kernels, generator):
    case = random_case(generator)
    counts = RankCounts.from_scores(*case, kernels)
    for alpha in (0.3, 0.5, 1.0):
        expected = []
        for labels, scores in labels_and_scores(*case):
            positives, negatives = np.sort(scores[labels == 1])[::-1], scores[labels == 0]
            best = positives[: int(np.ceil(round(alpha * len(positives), 9)))]
            areas = [max(0, 0.4 - (negatives > r_ci).mean()) for r_ci in best]
            expected.append(sum(areas) / len(positives))
        assert llpauc(counts, alpha, 0.4) == pytest.approx(np.mean(expected))
    assert llpauc(counts, 1, 0.4) == pytest.approx(opauc(counts, 0.4))


rankings = st.lists(st.booleans(), min_size=2, max_size=20).filter(lambda r: any(r) and not all(r))


def counts_of(ranking, transform=lambda s: s):
    """A single user whose items are ranked as told, best first; True is a positive."""
    scores = transform(torch.arange(len(ranking), 0, -1, dtype=torch.float32))[None]
    positive_i = torch.tensor([i for i, positive in enumerate(ranking) if positive])
    return RankCounts.from_scores(scores, torch.zeros_like(positive_i), positive_i, NUMBA)


@settings(max_examples=150, deadline=None)
@given(rankings, st.floats(0.01, 1))
def test_opauc_lies_between_0_and_beta_and_grows_with_it(ranking, beta):
    value = opauc(counts_of(ranking), beta)
    assert -1e-12 <= value <= beta + 1e-12
    assert opauc(counts_of(ranking), beta / 2) <= value + 1e-12


@settings(max_examples=100, deadline=None)
@given(rankings, st.floats(0.01, 1))
def test_opauc_depends_on_the_order_of_scores_alone(ranking, beta):
    value = opauc(counts_of(ranking), beta)
    assert opauc(counts_of(ranking, lambda s: torch.exp(s / 3) - 7), beta) == pytest.approx(value)


@settings(max_examples=100, deadline=None)
@given(rankings, st.floats(0.01, 1), st.data())
def test_moving_a_positive_above_its_neighbour_never_lowers_opauc(ranking, beta, data):
    swaps = [i for i in range(len(ranking) - 1) if not ranking[i] and ranking[i + 1]]
    if swaps:
        i = data.draw(st.sampled_from(swaps))
        better = [*ranking[:i], True, False, *ranking[i + 2 :]]
        assert opauc(counts_of(better), beta) >= opauc(counts_of(ranking), beta) - 1e-12


def test_a_user_without_negatives_is_left_out(kernels):
    scores = torch.tensor([[-torch.inf, 1.0, 2.0], [-torch.inf, 1.0, 2.0]])
    counts = RankCounts.from_scores(scores, torch.tensor([0, 0, 1]), torch.tensor([1, 2, 2]), kernels)
    kept, left_out = counts.with_negatives()
    assert left_out == 1
    assert opauc(kept, 1) == 1.0


def test_nan_scores_raise(kernels):
    scores = torch.tensor([[0.0, float("nan"), 1.0]])
    with pytest.raises(Error, match="NaN"):
        RankCounts.from_scores(scores, torch.tensor([0]), torch.tensor([2]), kernels)


def test_senseless_rates_are_refused(generator):
    counts = RankCounts.from_scores(*random_case(generator), NUMBA)
    for call in (
        lambda: opauc(counts, 0),
        lambda: opauc(counts, 1.5),
        lambda: opauc(counts, 0.1, alpha=0.1),
        lambda: opauc(counts, 0.1, alpha=-0.1),
        lambda: llpauc(counts, 0, 0.1),
    ):
        with pytest.raises(Error):
            call()
