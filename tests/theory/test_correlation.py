import csv
from math import log2

import numpy as np
import pytest

from recbole_hns.errors import Error
from recbole_hns.theory import correlation
from recbole_hns.theory.correlation import METRICS, _Moments, opauc_values, topk_values

TOPK = (5, 10, 20, 50)


@pytest.fixture(scope="module")
def result():
    return correlation(permutations=20_000, topk=TOPK, progress=False)


def reference(ranking, topk, b):
    """Everything of one ranking by the paper's definitions, item by item."""
    positives = [rank for rank, label in enumerate(ranking, 1) if label]
    negatives = [rank for rank, label in enumerate(ranking, 1) if not label]
    values = {metric: [] for metric in METRICS}
    for k in topk:
        top = [rank for rank in positives if rank <= k]
        ideal = sum(1 / log2(rank + 1) for rank in range(1, min(len(positives), k) + 1))
        values["Precision"].append(len(top) / k)
        values["Recall"].append(len(top) / len(positives))
        values["NDCG"].append(sum(1 / log2(rank + 1) for rank in top) / ideal)
    pairs = len(positives) * len(negatives)
    return values, [sum(i < j for i in positives for j in negatives[:n]) / pairs for n in b]


def test_values_are_those_of_the_definitions():
    rng = np.random.default_rng(3)
    labels = np.array([rng.permutation([1] * 7 + [0] * 23) for _ in range(50)], np.uint8)
    topk, b = (1, 5, 12, 30), (1, 2, 9, 23)
    metrics, opauc = topk_values(labels, topk), opauc_values(labels, b)
    for row, ranking in enumerate(labels):
        values, expected = reference(ranking, topk, b)
        np.testing.assert_allclose(opauc[row], expected, rtol=1e-12)
        for metric in METRICS:
            np.testing.assert_allclose(metrics[metric][row], values[metric], rtol=1e-12)


@pytest.mark.parametrize("rows", [1, 17, 60])
def test_moments_give_pearsons_r_however_the_rows_are_split(rows):
    rng = np.random.default_rng(4)
    X = rng.normal(5, 2, (60, 3))
    Y = X[:, :2] + rng.normal(size=(60, 2))
    X[:, 2] = 0.1  # constant: no correlation
    moments = _Moments()
    for start in range(0, 60, rows):
        moments.add(X[start : start + rows], Y[start : start + rows])
    expected = [[np.corrcoef(x, y)[0, 1] for y in Y.T] for x in X.T[:2]]
    np.testing.assert_allclose(moments.correlation()[:2], expected, atol=1e-12)
    assert (moments.correlation()[2] == 0).all()


def test_opauc_correlates_and_auc_hardly_does(result):
    for metric in METRICS:
        assert (result.auc[metric] < 0.4).all()
        best = [result.best(metric, k) for k in TOPK]
        assert all(r > 0.9 for _, r in best)
        betas = [beta for beta, _ in best]
        assert betas == sorted(set(betas))  # a larger K, a larger β


def test_auc_correlation_is_that_of_a_uniform_rank(result):
    """AUC is a sum of ranks and Recall@K one of indicators: r ≈ √(3 p (1 − p)), p = K/(N₊ + N₋)."""
    p = np.array(TOPK) / 1000
    np.testing.assert_allclose(result.auc["Recall"], np.sqrt(3 * p * (1 - p)), atol=0.03)


def test_grid_of_betas(result):
    assert result.betas[0] == 1 / 800
    assert result.betas[-1] == 1
    assert (np.diff(result.betas) > 0).all()
    assert len(result.betas) <= 40
    for metric in METRICS:
        assert result.correlations[metric].shape == (len(TOPK), len(result.betas))
        assert (result.correlations[metric][:, -1] == result.auc[metric]).all()
    assert correlation(3, 1, 10, (1,), progress=False).betas.tolist() == [1]


def test_precision_and_recall_are_proportional(result):
    np.testing.assert_allclose(result.correlations["Precision"], result.correlations["Recall"])


def test_a_metric_that_is_constant_has_no_correlation():
    result = correlation(5, 9, 50, (3, 14), progress=False)
    assert (result.correlations["Recall"][1] == 0).all()
    assert (result.correlations["Recall"][0] > 0).any()


def test_same_seed_same_result():
    first, second, other = (correlation(20, 50, 300, (5,), seed=s, progress=False) for s in (1, 1, 2))
    for metric in METRICS:
        assert (first.correlations[metric] == second.correlations[metric]).all()
        assert (first.correlations[metric] != other.correlations[metric]).any()


def test_progress_goes_to_stderr(capsys):
    correlation(5, 9, 50, (3,))
    out, err = capsys.readouterr()
    assert out == ""
    assert "50/50" in err


def test_rows(result):
    rows = result.rows()
    assert [row[:2] for row in rows] == [(metric, k) for metric in METRICS for k in TOPK]
    assert rows[1] == ("Precision", 10, *result.best("Precision", 10), result.auc["Precision"][1])


def test_csv_holds_every_point(result, tmp_path):
    result.write_csv(tmp_path / "curves.csv")
    with open(tmp_path / "curves.csv", newline="") as file:
        points = list(csv.DictReader(file))
    assert len(points) == len(METRICS) * len(TOPK) * len(result.betas)
    betas = result.betas.tolist()
    for point in points:
        row, g = TOPK.index(int(point["K"])), betas.index(float(point["beta"]))
        assert float(point["correlation"]) == result.correlations[point["metric"]][row, g]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"n_pos": 0}, "n_pos=0"),
        ({"n_neg": 0}, "n_neg=0"),
        ({"permutations": 1}, "permutations=1"),
        ({"n_betas": 1}, "n_betas=1"),
        ({"topk": ()}, "topk"),
        ({"topk": (5, 0)}, ": 0 is not"),
        ({"topk": (5, 1001)}, "1001 is not"),
    ],
)
def test_impossible_settings_are_refused(settings, key):
    with pytest.raises(Error, match=key):
        correlation(**settings, progress=False)
