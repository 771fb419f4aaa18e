"""The fused row-wise Adam against torch's own, beyond what a training step gives it."""

import copy

import pytest
import torch

from recbole_hns.models.optim import FUSED_ON_CPU, FusedSparseAdam, fuse


def a_gradient(rows, n_rows, generator):
    """A sparse gradient as it is: rows in any order, with repeats."""
    rows = torch.tensor(rows)
    return torch.sparse_coo_tensor(
        rows[None], torch.randn(len(rows), 7, generator=generator), (n_rows, 7), check_invariants=False
    )


@pytest.mark.parametrize("maximize", [False, True])
def test_steps_and_state_are_torchs_for_any_sparse_gradient(generator, maximize):
    start = torch.randn(50, 7, generator=generator)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    settings = {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-4, "maximize": maximize}
    optimizers = FusedSparseAdam([ours], **settings), torch.optim.SparseAdam([theirs], **settings)
    for rows in ([3, 4, 9], [9, 3, 3, 40], [49], [0, 1, 2, 3, 49], []):
        ours.grad = theirs.grad = a_gradient(rows, 50, generator) if rows else None
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(ours, theirs)
    for key, value in optimizers[1].state_dict()["state"][0].items():
        torch.testing.assert_close(optimizers[0].state_dict()["state"][0][key], value)


def test_a_checkpoint_of_torchs_optimiser_goes_on_in_ours(generator):
    first, second = (torch.nn.Parameter(torch.ones(9, 7)) for _ in range(2))
    torchs = torch.optim.SparseAdam([first], lr=0.1)
    first.grad = second.grad = a_gradient([1, 5], 9, generator)
    torchs.step()
    second.data.copy_(first)
    ours = FusedSparseAdam([second], lr=0.3)
    ours.load_state_dict(copy.deepcopy(torchs.state_dict()))
    for optimizer in (torchs, ours):
        optimizer.step()
    torch.testing.assert_close(first, second)


def test_fuse_keeps_the_settings_of_every_group():
    tables = [torch.nn.Parameter(torch.ones(4, 2)) for _ in range(2)]
    groups = [{"params": tables[:1], "lr": 0.5}, {"params": tables[1:], "betas": (0.1, 0.2)}]
    fused = fuse(torch.optim.SparseAdam(groups, lr=0.01))
    assert type(fused) is FusedSparseAdam
    assert [group["lr"] for group in fused.param_groups] == [0.5, 0.01]
    assert [group["betas"] for group in fused.param_groups] == [(0.9, 0.999), (0.1, 0.2)]
    assert [group["params"][0] for group in fused.param_groups] == tables


def test_fuse_leaves_to_torch_what_is_torchs():
    """hns_backend=torch takes torch's own SparseAdam; Adam is fused, SGD has nothing to fuse."""
    table = torch.nn.Parameter(torch.ones(4, 2))
    assert type(fuse(torch.optim.SparseAdam([table]), "torch")) is torch.optim.SparseAdam
    adam = torch.optim.Adam([table], lr=0.1)
    assert fuse(adam) is adam
    assert adam.param_groups[0]["fused"] is (torch.optim.Adam in FUSED_ON_CPU)
    sgd = torch.optim.SGD([table], lr=0.1)
    assert fuse(sgd) is sgd
    assert not sgd.param_groups[0]["fused"]
