"""BPR over all negatives against the definition, element by element in double precision."""

import pytest
import torch
import torch.nn.functional as F

from recbole_hns.kernels.numba.all_pairs import TILE, bpr_over_all


@pytest.mark.parametrize("spread", [0.01, 1.0, 8.0, 30.0, 300.0])  # the last two: too far apart for e^r
def test_sums_are_those_of_every_pair_and_every_negative(spread, generator):
    n_items = 2 * TILE + 100
    owner = torch.tensor([0] * 60 + [1] + [2] * 3 + [3] * 7)
    scores = spread * torch.randn(4, n_items, generator=generator)
    r_ci = spread * torch.randn(len(owner), generator=generator)
    scores[torch.rand(4, n_items, generator=generator) < 0.1] = -torch.inf
    scores[1, 5:] = -torch.inf

    v = scores.double()[owner] - r_ci.double()[:, None]
    losses, slopes = F.softplus(v), v.sigmoid()
    values = torch.zeros(4, dtype=torch.float64).index_add_(0, owner, losses.sum(dim=1))
    G = torch.zeros(4, n_items, dtype=torch.float64).index_add_(0, owner, slopes)

    ours = bpr_over_all(r_ci, scores.clone(), owner)
    for number, expected in zip(ours, (values, slopes.sum(dim=1), G)):
        torch.testing.assert_close(number.double(), expected, rtol=2e-5, atol=1e-6)


def test_what_is_not_a_number_stays_none(generator):
    scores, owner = torch.randn(3, 10, generator=generator), torch.tensor([0, 1, 1, 2])
    scores[1, 4] = torch.nan
    values, sums, G = bpr_over_all(torch.zeros(4), scores, owner)
    assert values.isnan().tolist() == [False, True, False]
    assert sums.isnan().tolist() == [False, True, True, False]
    assert G[1, 4].isnan()
    assert int(G.isnan().sum()) == 1
