"""Ranks by counting against loops, on both backends."""

from __future__ import annotations

import torch


def test_negatives_above_by_loops(kernels, generator):
    scores = torch.randn(9, 50, generator=generator).round(decimals=1)  # ties
    scores[torch.rand(9, 50, generator=generator) < 0.2] = -torch.inf  # takes no part
    scores[4] = torch.randn(50, generator=generator)
    scores[7, 3] = torch.nan
    n_pos = torch.tensor([3, 1, 0, 5, 2, 1, 0, 2, 4])  # a user may have none
    first = torch.cat([torch.zeros(1, dtype=torch.long), n_pos.cumsum(0)])
    own = [scores[u].isfinite().nonzero()[:n, 0].tolist() for u, n in enumerate(n_pos)]
    values = torch.tensor([float(scores[u, i]) for u, items in enumerate(own) for i in items])

    above, tied, n_items = kernels.negatives_above(scores, first, values)
    expected, ties = [], []
    for u, items in enumerate(own):
        others = [x for j, x in enumerate(scores[u].tolist()) if j not in items and x > -torch.inf]
        for i in items:
            value = float(scores[u, i])
            ties.append(sum(x == value for x in others))
            expected.append(sum(x > value for x in others) + ties[-1] / 2)
        taking_part = int((scores[u] > -torch.inf).sum())
        assert int(n_items[u]) == (-1 if u == 7 else taking_part)
    assert above.tolist() == expected
    assert tied.tolist() == ties
    assert any(ties)
