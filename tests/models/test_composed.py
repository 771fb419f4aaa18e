"""Every model that a sampler can train, on tiny data: the same scores as RecBole's, the same loss."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import prepare, random_pairs, write_inter
from recbole.data.dataloader import KnowledgeBasedDataLoader
from recbole.utils import KGDataLoaderState, get_model, init_seed

from recbole_hns.data.loader import positives_only
from recbole_hns.kernels import Candidates, get_kernels
from recbole_hns.losses import PAIR_LOSSES
from recbole_hns.models.cards import (
    NOT_POSSIBLE,
    PATHS,
    RECBOLE_MODELS,
    all_support,
    has_vectors,
    missing_package,
    support_table,
)
from recbole_hns.models.composed import RememberedForward
from recbole_hns.models.scorers import DotScorer, PredictQuery, make_scorer
from recbole_hns.sampling import SAMPLERS, make_sampler
from recbole_hns.sampling.negatives import Negatives
from recbole_hns.training.trainer import make_trainer

SUPPORTED = [row for row in all_support() if row.path != NOT_POSSIBLE]
WITH_VECTORS = [row.model for row in SUPPORTED if row.path in ("fused", "composed")]

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


def model_for(name, data_path, tmp_path, **more):
    """(config, model, training loader, validation data)."""
    if missing_package(name):
        pytest.skip(f"{name} needs {missing_package(name)}")
    settings = {**settings_for(name, data_path), **more}
    if name == "S3Rec":
        pretrained_s3rec(settings, tmp_path)
    init_seed(7, True)
    config, train_data, valid_data, _ = prepare(name, "tiny", **settings)
    loader = positives_only(config, train_data)
    init_seed(8, True)
    model = config.model_class(config, loader._dataset)
    for table in model.modules():  # large enough for scores that differ
        if isinstance(table, torch.nn.Embedding):
            torch.nn.init.normal_(table.weight, std=0.5)
    if name == "NCL":  # what its E-step, faiss' k-means, would have found
        for side, n in (("user", model.n_users), ("item", model.n_items)):
            setattr(model, f"{side}_centroids", torch.nn.functional.normalize(torch.randn(4, 8)))
            setattr(model, f"{side}_2cluster", torch.randint(4, (n,)))
    return config, model, loader, valid_data


def pretrained_s3rec(settings, tmp_path):
    """S3Rec is fine-tuned from a file: write one, of the right shapes."""
    from recbole.config import Config
    from recbole.data import create_dataset
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


@pytest.mark.parametrize("name", [row.model for row in SUPPORTED])
def test_a_model_trains_an_epoch_and_is_evaluated(name, data_path, tmp_path):
    config, model, loader, valid_data = model_for(name, data_path, tmp_path)
    before = copy.deepcopy(model.state_dict())
    trainer = make_trainer(config, model)
    score, result = trainer.fit(loader, valid_data, saved=False)
    assert 0 <= score <= 1
    assert result
    after = model.state_dict()
    assert all(torch.isfinite(value).all() for value in after.values())
    assert any(not torch.equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("name", [row.model for row in SUPPORTED if has_vectors(get_model(row.model))])
def test_vectors_score_as_the_models_own_predict(name, data_path, tmp_path):
    _, model, loader, _ = model_for(name, data_path, tmp_path)
    model.eval()  # no drop-out: both encode alike
    dataset = loader._dataset
    scorer = make_scorer(model, dataset, get_kernels("numba", torch.device("cpu")))
    assert isinstance(scorer, DotScorer)
    batch = a_batch(loader)
    ids = torch.randint(1, dataset.item_num, (len(batch), 5), dtype=torch.int32)
    with torch.no_grad():
        fast = scorer.encode(batch).score(Candidates(ids))
        slow = PredictQuery(model, batch).score(Candidates(ids))
    torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in WITH_VECTORS if name != "HGN"])
def test_with_one_negative_loss_and_gradient_are_the_models_own(name, data_path, tmp_path):
    """In training mode, with drop-out: the encoder runs once, under the same random state."""
    _, model, loader, _ = model_for(name, data_path, tmp_path)
    twin = copy.deepcopy(model)
    batch = a_batch(loader)
    scorer = make_scorer(model, loader._dataset, get_kernels("numba", torch.device("cpu")))
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(1, loader._dataset.item_num, (len(batch), 1), dtype=torch.int32)
    negatives = Negatives(Candidates(ids), torch.ones(len(batch), 1))

    results = []
    for one, loss_of in (
        (model, lambda: scorer.loss(batch, scorer.encode(batch), negatives, generator)),
        (twin, lambda: twin.calculate_loss(batch)),
    ):
        batch["neg_item_id"] = ids[:, 0].long()
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


@pytest.mark.parametrize("sampler", list(SAMPLERS))
@pytest.mark.parametrize("name", ["NGCF", "SASRec"])
def test_every_sampler_trains_models_with_vectors(name, sampler, data_path, tmp_path):
    settings = {key: value for key, value in SMALL.items() if key not in ("sampler", "N", "M")}
    keys = SAMPLERS[sampler].keys
    more = {key: value for key, value in (("N", 6), ("M", 2)) if key in keys}
    config, train_data, *_ = prepare(
        name, "tiny", **settings, **more, data_path=data_path, sampler=sampler
    )
    loader = positives_only(config, train_data)
    trainer = make_trainer(config, config.model_class(config, loader._dataset))
    trainer.fit(loader, saved=False)
    assert all(torch.isfinite(p).all() for p in trainer.model.parameters())


@pytest.mark.parametrize("pair_loss", list(PAIR_LOSSES))
@pytest.mark.parametrize(
    ("name", "sampler"),
    [
        *(("BPR", s) for s in ("uniform", "popularity", "dns", "softmax_v", "kernel", "non_sampling")),
        ("GRU4Rec", "dns"),
    ],
)
def test_every_loss_falls_with_every_kind_of_sampler(name, sampler, pair_loss, data_path):
    """The loss of the last of ten epochs is below that of the first."""
    settings = {**SMALL, "epochs": 10, "learning_rate": 0.02, "weight_decay": 0.0}
    for key in ("N", "M"):
        if key not in SAMPLERS[sampler].keys:
            settings.pop(key)
    settings |= {"data_path": data_path, "sampler": sampler, "pair_loss": pair_loss}
    config, train_data, *_ = prepare(name, "tiny", **settings)
    loader = positives_only(config, train_data)
    init_seed(3, True)
    trainer = make_trainer(config, config.model_class(config, loader._dataset))
    trainer.fit(loader, saved=False)
    losses = [row["train_loss"] for row in trainer.history]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("sampler", ["dns", "softmax_v", "non_sampling", "kernel", "warp", "adasir_p"])
@pytest.mark.parametrize("name", ["BPR", "LightGCN", "NGCF", "SGL", "SASRec"])
def test_mixed_precision_learns_too(name, sampler, data_path):
    """On the CPU it is bfloat16 in the encoder; choice and loss are of 32 bits."""
    settings = {**SMALL, "epochs": 4, "learning_rate": 0.02, "enable_amp": True}
    for key in ("N", "M"):
        if key not in SAMPLERS[sampler].keys:
            settings.pop(key)
    settings |= {"data_path": data_path, "sampler": sampler}
    config, train_data, *_ = prepare(name, "tiny", **settings)
    loader = positives_only(config, train_data)
    trainer = make_trainer(config, config.model_class(config, loader._dataset))
    trainer.fit(loader, saved=False)
    losses = [row["train_loss"] for row in trainer.history]
    assert losses[-1] < losses[0]


def test_negatives_of_a_sequence_are_neither_its_history_nor_its_target(data_path):
    """Not of this sequence, and not of any other of the same user."""
    config, train_data, *_ = prepare("SASRec", "tiny", **SMALL, data_path=data_path)
    dataset = train_data._dataset
    sampler = make_sampler(config.spec, dataset, torch.device("cpu"), seed=1)
    taken = {}
    for user, target, history in zip(
        dataset.inter_feat["user_id"].tolist(),
        dataset.inter_feat["item_id"].tolist(),
        dataset.inter_feat["item_id_list"].tolist(),
    ):
        taken.setdefault(user, {0}).update([target, *history])
    users = torch.tensor(sorted(taken)).repeat_interleave(20)
    drawn = sampler.pool.draw(users, 50).ids
    for user, row in zip(users.tolist(), drawn.tolist()):
        assert not taken[user] & set(row)


def test_the_encoder_of_a_composed_model_runs_once_a_step(data_path, monkeypatch):
    config, train_data, *_ = prepare("SASRec", "tiny", **SMALL, data_path=data_path)
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


def test_the_list_of_models_has_every_model_of_recbole_once():
    names = [row.model for row in all_support()]
    assert sorted(names) == sorted(file.stem for file in RECBOLE_MODELS.glob("*.yaml"))
    assert {row.path for row in all_support()} == set(PATHS)
    assert all(row.note for row in all_support() if row.path == NOT_POSSIBLE)


def test_the_readme_has_the_list_of_models():
    readme = Path(__file__).parents[2] / "README.md"
    assert support_table(markdown=True) in readme.read_text("utf-8")
