"""RecBole's optimisers under our trainer: fused where they can be, and with the same steps."""

import itertools

import pytest
import torch
from trained import by_hand, losses_of, trainer_for

from recbole_hns.models.optim import FusedSparseAdam, fuse
from recbole_hns.sampling.methods import all_methods


def test_adam_is_fused_on_the_cpu_and_steps_as_before(tiny):
    """The fused step is RecBole's Adam with the same numbers."""
    weights = []
    for fused in (True, False):
        trainer, loader = trainer_for("BPR", tiny, epochs=2)
        assert trainer.optimizer.param_groups[0]["fused"] is True
        trainer.optimizer.param_groups[0]["fused"] = fused
        trainer.fit(loader, saved=False)
        weights.append(trainer.model.item_embedding.weight.detach())
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("learner", "optimizer"),
    [
        ("adam", torch.optim.Adam),
        ("adamw", torch.optim.AdamW),
        ("sgd", torch.optim.SGD),
        ("adagrad", torch.optim.Adagrad),
        ("rmsprop", torch.optim.RMSprop),
    ],
)
def test_fit_is_a_plain_loop_with_torchs_optimiser(tiny, learner, optimizer):
    settings = {"epochs": 3, "learning_rate": 0.05, "weight_decay": 0.01, "train_batch_size": 64}
    trainer, loader = trainer_for("BPR", tiny, **settings, learner=learner)
    assert type(trainer.optimizer) is optimizer
    trainer.fit(loader, saved=False)
    plain, loader = trainer_for("BPR", tiny, **settings)
    optimizer = optimizer(plain.model.parameters(), lr=0.05, weight_decay=0.01)
    assert losses_of(trainer) == pytest.approx(by_hand(plain, loader, optimizer, 3), rel=1e-5)


@pytest.mark.parametrize("block", [1, 4])
def test_sparse_adam_moves_only_the_rows_that_a_step_touches(tiny, backend, block):
    trainer, loader = trainer_for(
        "BPR",
        tiny,
        learner="sparse_adam",
        hns_backend=backend,
        train_batch_size=4,
        sampler="dns",
        M=2,
        pool_block=block,
    )
    trainer.prepare(loader)
    model, optimizer = trainer.model, trainer.optimizer
    tables = (model.user_embedding.weight, model.item_embedding.weight)
    for batch in itertools.islice(loader, 3):
        before = [table.detach().clone() for table in tables]
        optimizer.zero_grad()
        query = trainer.scorer.encode(batch)
        negatives = trainer.sampler.select(batch["user_id"], query)
        trainer.scorer.loss(batch, query, negatives, None).backward()
        optimizer.step()
        touched = batch["user_id"], torch.cat([batch["item_id"], negatives.ids.flatten()])
        for table, old, rows in zip(tables, before, touched):
            moved = (table != old).any(dim=1).nonzero()[:, 0]
            assert torch.equal(moved, rows.unique())


DRAWING = [name for name, one in all_methods().items() if not one.method.pool.dense_gradient]


@pytest.mark.parametrize("sampler", DRAWING)
def test_sparse_adam_steps_as_torchs_does(tiny, sampler):
    """The rows of our pass against torch's gathers and scatters, through two epochs of training."""
    states = []
    for backend, kind in (("auto", FusedSparseAdam), ("torch", torch.optim.SparseAdam)):
        more = {"learner": "sparse_adam", "learning_rate": 0.01, "train_batch_size": 64}
        trainer, loader = trainer_for("BPR", tiny, epochs=2, sampler=sampler, **more)
        trainer.optimizer = fuse(torch.optim.SparseAdam(trainer.model.parameters(), lr=0.01), backend)
        assert type(trainer.optimizer) is kind
        trainer.fit(loader, saved=False)
        state = trainer.optimizer.state_dict()["state"]
        states.append(
            [*trainer.model.parameters(), *(v for row in state.values() for v in row.values())]
        )
    assert len(states[0]) == 2 + 2 * 3  # step, exp_avg and exp_avg_sq of both tables
    for ours, theirs in zip(*states):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_hns_backend_decides_whose_sparse_adam_it_is(tiny, backend):
    trainer, _ = trainer_for("BPR", tiny, learner="sparse_adam", hns_backend=backend)
    kind = {"numba": FusedSparseAdam, "torch": torch.optim.SparseAdam}[backend]
    assert type(trainer.optimizer) is kind
    assert all(table.sparse for table in trainer.model.children() if hasattr(table, "sparse"))


def test_sparse_adam_learns_the_same_with_shared_candidates_in_mixed_precision(tiny, backend):
    losses = []
    for enable_amp in (True, False):
        more = {"learner": "sparse_adam", "hns_backend": backend, "pool_block": 16}
        trainer, loader = trainer_for("BPR", tiny, epochs=3, enable_amp=enable_amp, **more)
        trainer.fit(loader, saved=False)
        losses.append(losses_of(trainer))
    assert losses[0] == losses[1]
