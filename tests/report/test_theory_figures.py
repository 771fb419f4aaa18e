"""The figures of the simulations show what was simulated."""

import numpy as np
from matplotlib.figure import Figure

from recbole_hns.report.theory_figures import plot_correlation, plot_sampling
from recbole_hns.theory.correlation import CorrelationResult
from recbole_hns.theory.sampling import Curve


def drawn(plot, shown, monkeypatch, tmp_path):
    """The axes of the figure that is written."""
    figures, save = [], Figure.savefig

    def keep(figure, *arguments, **settings):
        figures.append(figure)
        save(figure, *arguments, **settings)

    monkeypatch.setattr(Figure, "savefig", keep)
    plot(shown, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    (figure,) = figures
    return figure.axes


def test_each_curve_is_drawn_with_its_maximum(monkeypatch, tmp_path):
    betas = np.array([0.01, 0.1, 1.0])
    curves = {"Recall": np.array([[0.2, 0.9, 0.5]]), "NDCG": np.array([[0.8, 0.6, 0.4]])}
    result = CorrelationResult(betas, [5], curves, {name: rows[:, -1] for name, rows in curves.items()})
    recall, ndcg = drawn(plot_correlation, result, monkeypatch, tmp_path)
    assert recall.get_title() == "Recall@K"
    for axis, best in ((recall, (0.1, 0.9)), (ndcg, (0.01, 0.8))):
        line, maximum = axis.lines
        assert line.get_xdata().tolist() == betas.tolist()
        assert (maximum.get_xdata()[0], maximum.get_ydata()[0]) == best
    assert recall.lines[0].get_ydata().tolist() == [0.2, 0.9, 0.5]


def test_a_single_beta_can_be_drawn(monkeypatch, tmp_path):
    rows = np.array([[0.5]])
    result = CorrelationResult(np.array([1.0]), [1], {"NDCG": rows}, {"NDCG": rows[:, -1]})
    (axis,) = drawn(plot_correlation, result, monkeypatch, tmp_path)
    assert len(axis.lines) == 2


def test_the_exact_form_lies_over_the_simulation(monkeypatch, tmp_path):
    simulated, exact = np.array([0.3, 0.7, 1.0]), np.array([1 / 3, 2 / 3, 1.0])
    curves = [
        Curve("uniform", "M", simulated, exact, reference=True),
        Curve("Softmax-v(1, 200)", "ρ", simulated, None),
    ]
    left, right = drawn(plot_sampling, curves, monkeypatch, tmp_path)
    assert left.get_title() == "the effect of M"
    assert [line.get_ydata().tolist() for line in left.lines] == [simulated.tolist(), exact.tolist()]
    assert left.lines[1].get_linestyle() == "--"
    assert left.lines[0].get_color() == "grey"
    assert len(right.lines) == 1
    assert left.lines[0].get_xdata().tolist() == [1, 2, 3]
