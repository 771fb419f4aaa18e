"""``dataset_class``: models whose data set is a class of their own, as RecBole-GNN has them.

The classes below have the shape of that package's: a data set that gives a normalised graph or makes
graphs of sessions, and models that ask for these.
"""

import pytest
import torch
from recbole.data.dataset import Dataset, SequentialDataset
from recbole.model.abstract_recommender import GeneralRecommender, SequentialRecommender
from recbole.model.loss import BPRLoss
from recbole.utils import InputType

import recbole_hns as hns
from recbole_hns import Error, HNSConfig, quick_start, run_recbole_hns
from recbole_hns.runs import pipeline

SETTINGS = {
    "N": 10,
    "M": 3,
    "epochs": 2,
    "learning_rate": 0.01,
    "train_batch_size": 64,
    "embedding_size": 8,
    "metric_decimal_place": 8,
    "state": "ERROR",
    "result_dir": None,
}


def edges_of(dataset):
    """Users and items joined, as one graph, and 1 / √(degree · degree) for each edge."""
    users = dataset.inter_feat[dataset.uid_field]
    items = dataset.inter_feat[dataset.iid_field] + dataset.user_num
    edges = torch.cat([torch.stack([users, items]), torch.stack([items, users])], dim=1)
    degree = torch.bincount(edges[0], minlength=dataset.user_num + dataset.item_num).float()
    return edges, (degree[edges[0]] * degree[edges[1]]).rsqrt()


class GraphDataset(Dataset):
    """As RecBole-GNN's ``GeneralGraphDataset``: it gives the graph that RecBole's does not."""

    def get_norm_adj_mat(self):
        """Edges and their weights."""
        return edges_of(self)


class GraphModel(GeneralRecommender):
    """As RecBole-GNN's ``LightGCN``: one propagation, a pairwise loss."""

    input_type = InputType.PAIRWISE

    def __init__(self, config, dataset):
        super().__init__(config, dataset)
        self.edges, self.weights = self.graph(dataset)
        self.table = torch.nn.Embedding(self.n_users + self.n_items, config["embedding_size"])
        self.bpr = BPRLoss()

    def graph(self, dataset):
        return dataset.get_norm_adj_mat()

    def forward(self):
        start = self.table.weight
        passed = self.weights[:, None] * start[self.edges[1]]
        vectors = (start + torch.zeros_like(start).index_add(0, self.edges[0], passed)) / 2
        return vectors.split([self.n_users, self.n_items])

    def scores(self, users, items):
        of_users, of_items = self.forward()
        return (of_users[users] * of_items[items]).sum(dim=1)

    def calculate_loss(self, interaction):
        users = interaction[self.USER_ID]
        positive = self.scores(users, interaction[self.ITEM_ID])
        return self.bpr(positive, self.scores(users, interaction[self.NEG_ITEM_ID]))

    def predict(self, interaction):
        return self.scores(interaction[self.USER_ID], interaction[self.ITEM_ID])

    def full_sort_predict(self, interaction):
        of_users, of_items = self.forward()
        return (of_users[interaction[self.USER_ID]] @ of_items.T).view(-1)


class SameModel(GraphModel):
    """The reference: the same model, which makes the graph out of RecBole's data set itself."""

    def graph(self, dataset):
        return edges_of(dataset)


class SessionDataset(SequentialDataset):
    """As RecBole-GNN's ``SessionGraphDataset``: a graph for each session, beside the columns."""

    def build(self):
        parts = super().build()
        for part in parts:
            sequences = part.inter_feat[part.item_id_list_field]
            part.graph_objs = {"x": [row.unique() for row in sequences]}
            part.inter_feat.interaction["graph_idx"] = torch.arange(len(sequences))
        return parts


class SessionModel(SequentialRecommender):
    """As RecBole-GNN's ``SRGNN``: its batches hold nodes of graphs, which only its own loaders add."""

    def __init__(self, config, dataset):
        super().__init__(config, dataset)
        self.table = torch.nn.Embedding(self.n_items, config["embedding_size"])
        self.loss_type = config["loss_type"]

    def calculate_loss(self, interaction):
        return self.table(interaction["x"]).sum()

    def predict(self, interaction):
        return self.table(interaction["x"]).sum(dim=1)


@pytest.mark.parametrize("sampler", ["dns", "softmax_v", "uniform"])
def test_a_model_trains_on_its_own_data_set_as_on_recboles_with_the_same_graph(tiny, sampler):
    settings = {**SETTINGS, **tiny}
    if sampler != "dns":
        del settings["M"]
    own = run_recbole_hns(GraphModel, "tiny", sampler, config_dict=settings, dataset_class=GraphDataset)
    same = run_recbole_hns(SameModel, "tiny", sampler, config_dict=settings)
    assert own["best_valid_score"] == same["best_valid_score"]
    assert own["test_result"] == same["test_result"]
    assert own["sampler"]["sampler"] == sampler


def test_without_it_the_models_own_error_is_seen(tiny):
    with pytest.raises(AttributeError, match="get_norm_adj_mat"):
        run_recbole_hns(GraphModel, "tiny", "dns", config_dict={**SETTINGS, **tiny})


def test_every_way_in_takes_it(tiny):
    """``hns.train``, ``hns.load``, the step-by-step way and ``pipeline.load``."""
    settings = {**SETTINGS, **tiny}
    trained = hns.train(GraphModel, "tiny", "dns", dataset_class=GraphDataset, **settings)
    assert isinstance(trained.data, GraphDataset)
    again = hns.load(trained.file, model=GraphModel, dataset_class=GraphDataset)
    assert again.evaluate()["test_result"] == trained.test
    assert again.evaluate(topk=[3])["test_result"].keys() != trained.test.keys()
    assert trained.recommend(k=2).equals(again.recommend(k=2))

    config = HNSConfig(GraphModel, "tiny", config_dict={**settings, "sampler": "dns"})
    data = quick_start.create_dataset(config, GraphDataset)
    train_data, valid_data, test_data = quick_start.data_preparation(config, data)
    quick_start.init_seed(config["seed"], config["reproducibility"])
    model = GraphModel(config, train_data.dataset)
    trainer = quick_start.get_trainer(config)(config, model)
    trainer.fit(train_data, valid_data)
    assert trainer.evaluate(test_data) == trained.test
    assert isinstance(pipeline.load(config, dataset_class=GraphDataset), GraphDataset)


def test_graphs_that_a_loader_of_its_own_adds_are_refused_in_a_sentence(tiny):
    """Before, a KeyError in the first step."""
    settings = {**SETTINGS, **tiny, "loss_type": "BPR", "load_col": None}
    with pytest.raises(Error) as error:
        run_recbole_hns(SessionModel, "tiny", "dns", config_dict=settings, dataset_class=SessionDataset)
    assert str(error.value).startswith(
        "SessionModel reads x of a batch, which is no column of its data set"
    )


def test_a_loss_over_all_items_is_refused_where_it_is_typed_and_replaced_where_a_file_says_it(
    tiny, tmp_path
):
    with pytest.raises(Error, match="loss_type=CE does not rank SessionModel's positives"):
        HNSConfig(SessionModel, "tiny", config_dict={**tiny, "loss_type": "CE"})
    (tmp_path / "SRGNN.yaml").write_text("loss_type: CE\ngnn_transform: sess_graph\n")
    config = HNSConfig(SessionModel, "tiny", [str(tmp_path / "SRGNN.yaml")], tiny)
    assert config["loss_type"] == "BPR"
    assert config["MODEL_INPUT_TYPE"] == InputType.PAIRWISE
    assert any("is replaced by BPR" in note for note in config.notes)


class Pointwise(GraphModel):
    """A model that declares that it learns from single items."""

    input_type = InputType.POINTWISE


def test_a_model_that_is_not_pairwise_is_refused_in_a_sentence(tiny):
    with pytest.raises(Error, match=r"Pointwise learns from single items \(pointwise\)"):
        hns.train(Pointwise, "tiny", "dns", dataset_class=GraphDataset, **SETTINGS, **tiny)


class Aligned(GraphModel):
    """As RecBole-GNN's ``DirectAU``: it is called pairwise, reads no negative and cannot predict."""

    def calculate_loss(self, interaction):
        of_users, of_items = self.forward()
        users, items = interaction[self.USER_ID], interaction[self.ITEM_ID]
        return (of_users[users] - of_items[items]).square().sum()

    def predict(self, interaction):
        return self.user_embedding(interaction[self.USER_ID])


def test_a_model_that_reads_no_negatives_and_cannot_score_is_refused_in_a_sentence(tiny):
    """Before, an AttributeError in the first step of a sampler that scores."""
    with pytest.raises(Error) as error:
        hns.train(Aligned, "tiny", "dns", dataset_class=GraphDataset, **SETTINGS, **tiny)
    assert str(error.value).startswith("Aligned learns from no negatives, and cannot score any")
    assert "user_embedding" in str(error.value)
