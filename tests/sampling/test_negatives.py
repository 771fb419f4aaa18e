"""What a sampler hands on: its mass, and draws of one negative from it."""

import numpy as np
import torch
from scipy.stats import chisquare

from recbole_hns.kernels import Candidates
from recbole_hns.sampling.negatives import Negatives, draw_places


def test_the_mass_is_what_falls_on_each_item():
    ids = torch.tensor([[3, 1], [1, 1], [0, 3]], dtype=torch.int32)
    weights = torch.tensor([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    mass = Negatives(Candidates(ids), weights).mass(5)
    torch.testing.assert_close(mass, torch.tensor([0.9, 1.5, 0, 0.6, 0]))


def test_draw_one_follows_the_weights(generator):
    candidates = Candidates(torch.tensor([[3, 7, 9]]).repeat(20_000, 1).int())
    weights = torch.tensor([[0.5, 0.2, 0.3]]).repeat(20_000, 1)
    chosen = Negatives(candidates, weights).draw_one(generator)
    assert chosen.dtype == torch.int64
    counts = np.bincount(chosen, minlength=10)[[3, 7, 9]]
    assert chisquare(counts, [10_000, 4_000, 6_000]).pvalue > 1e-4


def test_the_only_negative_is_the_one_whatever_it_weighs(generator):
    candidates = Candidates(torch.tensor([[3], [8]], dtype=torch.int32))
    assert Negatives(candidates, torch.zeros(2, 1)).draw_one(generator).tolist() == [3, 8]


def test_places_are_drawn_in_proportion_and_never_where_nothing_weighs(generator):
    """χ² at α = 10⁻⁴, seed fixed; weights need not sum to 1."""
    weights = torch.tensor([[0.0, 3.0, 0.0, 1.0, 0.0], [2.0, 0.0, 0.0, 0.0, 2.0]])
    places = draw_places(weights, generator, 40_000)
    assert places.shape == (2, 40_000)
    for row, p in zip(places.numpy(), weights.numpy()):
        counts = np.bincount(row, minlength=5)
        assert counts[p == 0].sum() == 0
        assert chisquare(counts[p > 0], 40_000 * p[p > 0] / p.sum()).pvalue > 1e-4
