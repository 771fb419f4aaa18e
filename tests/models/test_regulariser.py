"""Squared norms of rows as often as they occur, against gathers and autograd."""

import pytest
import torch

from recbole_hns.models.regulariser import mass_of, squared_norms


@pytest.mark.parametrize("sparse", [False, True])
def test_value_and_gradient_are_those_of_gathered_rows(generator, sparse):
    table = torch.randn(9, 4, generator=generator, requires_grad=True)
    ids, weights = torch.tensor([3, 3, 8, 0, 3]), torch.tensor([1.0, 0.5, 2.0, 1.0, 0.25])
    value = squared_norms(table, mass_of(table, ids, weights), sparse)
    expected = (weights * table[ids].square().sum(dim=1)).sum()
    torch.testing.assert_close(value, expected)
    (ours,), (theirs,) = (torch.autograd.grad(3 * one, table) for one in (value, expected))
    assert ours.is_sparse == sparse
    torch.testing.assert_close(ours.to_dense(), theirs)
    if sparse:
        assert ours.coalesce().indices()[0].tolist() == [0, 3, 8]


def test_the_mass_is_what_falls_on_each_row():
    table = torch.zeros(5, 2)
    mass = mass_of(table, torch.tensor([1, 4, 1]), torch.tensor([0.5, 1.0, 2.0]))
    assert mass.tolist() == [0.0, 2.5, 0.0, 0.0, 1.0]
