"""Every model that a sampler can train, on tiny data: RecBole's own scores, losses and gradients."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import random_pairs, write_inter
from recbole.data import create_dataset, data_preparation
from recbole.data.dataloader import KnowledgeBasedDataLoader
from recbole.data.interaction import Interaction
from recbole.utils import KGDataLoaderState, get_model, init_seed

from recbole_hns import HNSConfig
from recbole_hns.bridge.world import world_of
from recbole_hns.data.loader import positives_only
from recbole_hns.kernels import Candidates, get_kernels
from recbole_hns.models.cards import NOT_POSSIBLE, all_support, has_vectors, missing_package, scorer_of
from recbole_hns.models.composed import RememberedForward
from recbole_hns.models.predict import PredictQuery
from recbole_hns.sampling import DotQuery, Negatives, all_methods, pools
from recbole_hns.settings.dialect import to_yaml
from recbole_hns.settings.registry import table
from recbole_hns.training.trainer import make_trainer

SUPPORTED = [row for row in all_support() if row.path != NOT_POSSIBLE]
MODELS = [row.model for row in SUPPORTED]
COUNTS = {
    **{("fused", "general"): 2, ("composed", "general"): 5, ("own loss", "general"): 4},
    **{("composed", "knowledge"): 4, ("own loss", "knowledge"): 4},
    **{("composed", "sequential"): 23, ("own loss", "sequential"): 1},
}
WITH_VECTORS = [name for name in MODELS if has_vectors(get_model(name))]

# What a model needs besides the defaults; small, so that a test takes a fraction of a second.
SMALL = {"embedding_size": 8, "hidden_size": 8, "inner_size": 8, "train_batch_size": 128}
SMALL |= {"sampler": "dns", "N": 6, "M": 2}
SMALL |= {"n_layers": 1, "n_heads": 2, "epochs": 1, "MAX_ITEM_LIST_LENGTH": 6, "show_progress": False}
EXTRA = {
    "ConvNCF": {"cnn_channels": [1, 4, 4], "cnn_kernels": [2, 2], "cnn_strides": [2, 2]},
    "DGCF": {"n_factors": 2, "n_iterations": 1, "cor_weight": 0.01},
    "LightGCN": {"reg_weight": 0.1},
    "KGAT": {"layers": [8]},
    "MCCLK": {"k": 3},
    "NARM": {"n_layers": 1},
    "SINE": {"prototype_size": 6, "interest_size": 2},
    "HRM": {"high_order": 2},
    "NextItNet": {"block_num": 1, "dilations": [1, 2]},
    "LightSANs": {"k_interests": 2},
    "SRGNN": {"step": 1},
    "HGN": {"pooling_type": "average"},
    "GRU4Rec": {"num_layers": 1},
    "FEARec": {"n_layers": 2},
    "NCL": {"num_clusters": 4},
}
FEATURES = {"GRU4RecF", "SASRecF", "FDSA", "S3Rec"}  # items with a feature `class`
ENTITIES = {"KSR", "GRU4RecKG"}  # sequential, with vectors of entities trained elsewhere


@pytest.fixture(scope="module")
def data_path(tmp_path_factory):
    """A data set with everything that any model asks for: features, entities, links, vectors."""
    folder = tmp_path_factory.mktemp("models")
    pairs = random_pairs(n_users=30, n_items=40, per_user=9, seed=3)
    write_inter(folder, "tiny", pairs)
    items = sorted({item for _, item in pairs})
    rng = np.random.default_rng(5)
    own = folder / "tiny"

    def write(suffix, header, rows):
        lines = ["\t".join(header), *("\t".join(map(str, row)) for row in rows)]
        (own / f"tiny.{suffix}").write_text("\n".join(lines) + "\n")

    classes = [(item, " ".join(rng.choice(list("abcd"), 2, replace=False))) for item in items]
    write("item", ["item_id:token", "class:token_seq"], classes)
    write("link", ["item_id:token", "entity_id:token"], [(item, f"e{item}") for item in items])
    entities = [f"e{item}" for item in items] + [f"x{n}" for n in range(10)]
    heads = rng.choice(entities, 120)
    triples = [(h, f"r{rng.integers(3)}", rng.choice(entities)) for h in heads]
    header = ["head_id:token", "relation_id:token", "tail_id:token"]
    write("kg", header, sorted(set(triples)))

    def vector():
        return " ".join(f"{x:.4f}" for x in rng.normal(size=8))

    write("ent", ["ent_id:token", "ent_emb:float_seq"], [(e, vector()) for e in entities])
    write("rel", ["rel_id:token", "rel_emb:float_seq"], [(f"r{n}", vector()) for n in range(3)])
    return str(folder)


def settings_for(name, data_path):
    """The settings of a model on that data."""
    settings = {**SMALL, "data_path": data_path, **EXTRA.get(name, {})}
    if name in FEATURES:
        settings["load_col"] = {
            "inter": ["user_id", "item_id", "timestamp"],
            "item": ["item_id", "class"],
        }
        settings["selected_features"] = ["class"]
        settings["item_attribute"] = "class"
    if name in ENTITIES:
        settings["load_col"] = {
            "inter": ["user_id", "item_id", "timestamp"],
            "kg": ["head_id", "relation_id", "tail_id"],
            "link": ["item_id", "entity_id"],
            "ent": ["ent_id", "ent_emb"],
            "rel": ["rel_id", "rel_emb"],
        }
        settings["additional_feat_suffix"] = ["ent", "rel"]
        settings["alias_of_entity_id"] = ["ent_id"]
        settings["alias_of_relation_id"] = ["rel_id"]
        settings["preload_weight"] = {"ent_id": "ent_emb", "rel_id": "rel_emb"}
        settings["kg_embedding_size"] = 8
        settings["eval_args"] = {"split": {"LS": "valid_and_test"}, "order": "TO", "mode": "full"}
    return settings


def prepared(name, settings):
    """(config, training data, validation data), from a file, which may name settings of other models."""
    Path("own.yaml").write_text(to_yaml(settings))
    init_seed(7, True)  # RecBole splits the data by torch's global generator
    config = HNSConfig(name, "tiny", ["own.yaml"])
    return (config, *data_preparation(config, create_dataset(config))[:2])


def model_for(name, data_path, tmp_path, **more):
    """(config, model, training loader, validation data)."""
    if missing_package(name):
        pytest.skip(f"{name} needs {missing_package(name)}")
    settings = {**settings_for(name, data_path), **more}
    if name == "S3Rec":
        pretrained_s3rec(settings, tmp_path)
    config, train_data, valid_data = prepared(name, settings)
    loader = positives_only(config, train_data)
    init_seed(8, True)
    model = config.model_class(config, loader._dataset)
    for part in model.modules():  # large enough for scores that differ
        if isinstance(part, torch.nn.Embedding):
            torch.nn.init.normal_(part.weight, std=0.5)
    if name == "NCL":  # what its E-step, faiss' k-means, would have found
        for side, n in (("user", model.n_users), ("item", model.n_items)):
            setattr(model, f"{side}_centroids", torch.nn.functional.normalize(torch.randn(4, 8)))
            setattr(model, f"{side}_2cluster", torch.randint(4, (n,)))
    return config, model, loader, valid_data


def pretrained_s3rec(settings, tmp_path):
    """S3Rec is fine-tuned from a file: write one, of the right shapes."""
    from recbole.config import Config
    from recbole.model.sequential_recommender import S3Rec

    own = {**settings, "train_stage": "pretrain", "train_neg_sample_args": None}
    own["loss_type"] = "CE"
    config = Config("S3Rec", "tiny", config_dict=own)
    model = S3Rec(config, create_dataset(config))
    torch.save({"state_dict": model.state_dict()}, tmp_path / "pretrained.pth")
    settings |= {"train_stage": "finetune", "pre_model_path": str(tmp_path / "pretrained.pth")}


@pytest.fixture(autouse=True)
def quiet_command_line(monkeypatch):
    """RecBole's own Config, which S3Rec's pretraining takes, reads sys.argv."""
    monkeypatch.setattr("sys.argv", ["pytest"])


def a_batch(loader):
    """The first batch as a model gets it; a knowledge model's also holds triples."""
    if isinstance(loader, KnowledgeBasedDataLoader):
        loader.set_mode(KGDataLoaderState.RSKG)
    return next(iter(loader))


def make_scorer(model, dataset):
    return scorer_of(type(model))(model, dataset, get_kernels("numba", torch.device("cpu")))


def test_all_of_recboles_models_that_rank_pairs_are_here():
    """So many of each kind; a model that RecBole adds is to be added here."""
    kinds = [(row.path, row.kind) for row in SUPPORTED]
    assert {pair: kinds.count(pair) for pair in set(kinds)} == COUNTS


@pytest.mark.parametrize("name", MODELS)
def test_an_epoch_learns_every_pair_once_by_the_sampled_loss(name, data_path, tmp_path):
    """What the trainer reports is the sum of the losses of its batches, and the model has changed."""
    config, model, loader, valid_data = model_for(name, data_path, tmp_path)
    before = copy.deepcopy(model.state_dict())
    trainer = make_trainer(config, model)
    steps, sampled_loss = [], trainer.sampled_loss

    def spy(batch):
        loss = sampled_loss(batch)
        parts = loss if isinstance(loss, tuple) else (loss,)
        users, items = batch["user_id"].tolist(), batch["item_id"].tolist()
        steps.append((sorted(zip(users, items)), sum(float(part.detach().sum()) for part in parts)))
        return loss

    trainer.sampled_loss = spy
    score, result = trainer.fit(loader, valid_data, saved=False)
    dataset = loader._dataset.inter_feat
    pairs = sorted(zip(dataset["user_id"].tolist(), dataset["item_id"].tolist()))
    assert sorted(pair for step, _ in steps for pair in step) == pairs
    reported, total = trainer.history[-1]["train_loss"], sum(loss for _, loss in steps)
    if name == "KGAT":  # its trainer adds an epoch over the triples
        assert reported > total
    else:  # NCL's leaves out a small term in its first epochs
        assert reported == pytest.approx(total, rel=1e-4 if name == "NCL" else 1e-5)
    assert score == result[config["valid_metric"].lower()]
    assert any(not torch.equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", WITH_VECTORS)
def test_vectors_score_as_the_models_own_predict(name, data_path, tmp_path):
    _, model, loader, _ = model_for(name, data_path, tmp_path)
    model.eval()  # no drop-out: both encode alike
    dataset = loader._dataset
    batch = a_batch(loader)
    ids = torch.randint(1, dataset.item_num, (len(batch), 5), dtype=torch.int32)
    scorer, slow = make_scorer(model, dataset), PredictQuery(model, batch)
    with torch.no_grad():
        init_seed(5, True)  # KGIN and MCCLK drop edges whatever the mode
        fast = scorer.encode(batch)
        if hasattr(scorer, "forward"):
            scorer.forward.forget()
        theirs = []
        for candidates in (Candidates(ids), Candidates(batch["item_id"][:, None])):
            init_seed(5, True)
            theirs.append(slow.score(candidates))
    assert isinstance(fast, DotQuery)
    assert theirs[0].std() > 0.01  # scores that tell something
    torch.testing.assert_close(fast.score(Candidates(ids)), theirs[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(fast.r_ci, theirs[1][:, 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "HGN"])
def test_with_one_negative_loss_and_gradient_are_the_models_own(name, data_path, tmp_path):
    """In training mode, with drop-out: the encoder runs once, under the same random state.

    The negative is there three times, with weights that sum to 1: the same loss as that of one.
    """
    _, model, loader, _ = model_for(name, data_path, tmp_path)
    twin = copy.deepcopy(model)
    batch = a_batch(loader)
    scorer = make_scorer(model, loader._dataset)
    generator = torch.Generator().manual_seed(1)
    pairs = len(batch["item_id"])
    one_each = torch.randint(1, loader._dataset.item_num, (pairs, 1), dtype=torch.int32)
    weights = torch.tensor([0.2, 0.5, 0.3]).repeat(pairs, 1)
    negatives = Negatives(Candidates(one_each.repeat(1, 3)), weights)

    results = []
    for one, loss_of in (
        (model, lambda: scorer.loss(batch, scorer.encode(batch), negatives, generator)),
        (twin, lambda: twin.calculate_loss(batch)),
    ):
        chosen = Interaction({"item_id": one_each[:, 0].long()})
        chosen = loader._dataset.join(chosen)
        chosen.add_prefix("neg_")
        batch.update(chosen)
        one.train()
        init_seed(9, True)
        if hasattr(one, "graph_construction"):
            one.graph_construction()
        loss = loss_of()
        loss = sum(loss) if isinstance(loss, tuple) else loss
        loss.sum().backward()
        gradients = {key: p.grad for key, p in one.named_parameters() if p.grad is not None}
        results.append((loss.detach().sum(), gradients))
    (ours, our_gradients), (theirs, their_gradients) = results
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    for key, gradient in their_gradients.items():
        mine = our_gradients.get(key, torch.zeros_like(gradient))
        torch.testing.assert_close(
            mine, gradient, rtol=1e-3, atol=1e-5, msg=lambda m, k=key: f"{k}: {m}"
        )


def ready(name, data_path, **settings):
    """A trainer that is ready for a step, a batch, its query and its negatives; without drop-out."""
    small = {key: value for key, value in SMALL.items() if key not in ("N", "M")}
    config, train_data, _ = prepared(name, {**small, "data_path": data_path, **settings})
    loader = positives_only(config, train_data)
    init_seed(3, True)
    model = config.model_class(config, loader._dataset).eval()
    for part in model.modules():
        if isinstance(part, torch.nn.Embedding):
            torch.nn.init.normal_(part.weight, std=0.5)
    if hasattr(model, "graph_construction"):
        model.graph_construction()
    trainer = make_trainer(config, model)
    trainer.prepare(loader)
    return trainer, next(iter(loader))


def all_scores(model, batch, n_items):
    """r_cj of every pair and item, by the model's own predict."""
    everything = torch.arange(n_items, dtype=torch.int32).repeat(len(batch), 1)
    return PredictQuery(model, batch).score(Candidates(everything))


def reference_loss(trainer, batch, negatives):
    """The mean of the pairs' losses with predicted scores, their losses by ``Loss.pair``, and p."""
    world, loss = trainer.sampler.world, trainer.config.method.loss
    scores = all_scores(trainer.model, batch, world.n_items)
    values = []
    for b, (user, item) in enumerate(zip(batch["user_id"].tolist(), batch["item_id"].tolist())):
        if isinstance(trainer.config.method.pool, pools.Everything):
            j = torch.tensor([j for j in range(1, world.n_items) if j not in world.positives[user]])
            p, log_q = torch.full((1, len(j)), 1 / len(j)), -torch.tensor([[float(len(j))]]).log()
        else:
            j, p = negatives.ids[b].long(), negatives.weights[b : b + 1]
            log_q = None if negatives.log_q is None else negatives.log_q[b : b + 1]
        values.append(loss.pair(scores[b, item][None], scores[b, j][None], p, log_q))
    return torch.cat(values).mean()


@pytest.mark.parametrize("sampler", list(all_methods()))
@pytest.mark.parametrize("name", ["NGCF", "SASRec"])
def test_the_sampled_loss_of_every_method_is_that_of_the_models_scores(name, sampler, data_path):
    trainer, batch = ready(name, data_path, sampler=sampler)
    query = trainer.scorer.encode(batch)
    negatives = trainer.sampler.select(batch["user_id"], query)
    ours = trainer.scorer.sampled_loss(query, negatives).detach()
    torch.testing.assert_close(ours, reference_loss(trainer, batch, negatives), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sampler", ["dns", "popularity", "non_sampling"])
@pytest.mark.parametrize("pair_loss", list(table("loss")))
def test_every_pair_loss_is_that_of_the_models_scores(pair_loss, sampler, data_path):
    trainer, batch = ready("GRU4Rec", data_path, sampler=sampler, pair_loss=pair_loss)
    query = trainer.scorer.encode(batch)
    negatives = trainer.sampler.select(batch["user_id"], query)
    ours = trainer.scorer.sampled_loss(query, negatives).detach()
    torch.testing.assert_close(ours, reference_loss(trainer, batch, negatives), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sampler", ["softmax_v", "non_sampling"])
@pytest.mark.parametrize("name", ["BPR", "LightGCN", "NGCF", "SGL", "SASRec"])
def test_mixed_precision_gives_nearly_the_same_loss_and_gradient(name, sampler, data_path):
    """On the CPU it is bfloat16, of 8 bits, in the encoder; choice and loss are of 32 bits."""
    found = []
    for narrow in (False, True):
        trainer, batch = ready(name, data_path, sampler=sampler)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
            loss = trainer.sampled_loss(batch)
        assert loss.dtype == torch.float32
        loss.sum().backward()
        gradients = [p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None]
        found.append((float(loss.detach().sum()), torch.cat(gradients)))
    (loss, gradient), (narrow_loss, narrow_gradient) = found
    assert narrow_loss == pytest.approx(loss, rel=0.02)
    assert float(F.cosine_similarity(gradient, narrow_gradient, dim=0)) > 0.99


def test_negatives_of_a_sequence_are_neither_its_history_nor_its_target(data_path):
    """Not of this sequence, and not of any other of the same user."""
    config, train_data, _ = prepared("SASRec", {**SMALL, "data_path": data_path})
    dataset = train_data._dataset
    sampler = config.method.open(world_of(dataset, config))
    taken = {}
    for user, target, history in zip(
        dataset.inter_feat["user_id"].tolist(),
        dataset.inter_feat["item_id"].tolist(),
        dataset.inter_feat["item_id_list"].tolist(),
    ):
        taken.setdefault(user, {0}).update([target, *history])
    users = torch.tensor(sorted(taken)).repeat_interleave(20)
    drawn = sampler.source.draw(users, 50).ids
    for user, row in zip(users.tolist(), drawn.tolist()):
        assert not taken[user] & set(row)


def test_the_encoder_of_a_composed_model_runs_once_a_step(data_path, monkeypatch):
    config, train_data, _ = prepared("SASRec", {**SMALL, "data_path": data_path})
    loader = positives_only(config, train_data)
    model = config.model_class(config, loader._dataset)
    calls, original = [], model.forward
    monkeypatch.setattr(model, "forward", lambda *args: (calls.append(1), original(*args))[1])
    trainer = make_trainer(config, model)
    trainer.fit(loader, saved=False)
    assert len(calls) == len(loader)


def test_a_remembered_output_is_given_out_once(data_path):
    """FEARec encodes a batch twice, to contrast two drop-outs of it."""
    calls = []

    class Model:
        def forward(self, x):
            calls.append(x)
            return len(calls)

    model, batch = Model(), torch.zeros(2)
    model.forward = RememberedForward(model)
    assert model.forward.remember(lambda: model.forward(batch)) == 1
    assert [model.forward(batch), model.forward(batch)] == [1, 2]
    model.forward.remember(lambda: model.forward(batch))
    assert model.forward(torch.ones(2)) == 4  # other arguments
    model.forward.forget()
    assert model.forward(batch) == 5
