"""The fast path for a model of one's own: all negatives weighed, the gradient gathered by kernels."""

import torch
from recbole.model.abstract_recommender import GeneralRecommender
from recbole.model.loss import BPRLoss
from recbole.utils import InputType

import recbole_hns as hns


class Biased(GeneralRecommender):
    """Matrix factorisation with a bias for each item, as a RecBole model."""

    input_type = InputType.PAIRWISE

    def __init__(self, config, dataset):
        super().__init__(config, dataset)
        self.users = torch.nn.Embedding(self.n_users, config["rank"])
        self.items = torch.nn.Embedding(self.n_items, config["rank"] + 1)
        torch.nn.init.normal_(self.users.weight, std=0.1)
        torch.nn.init.normal_(self.items.weight, std=0.1)

    def tables(self):
        ones = self.users.weight.new_ones(self.n_users, 1)
        return torch.cat([self.users.weight, ones], dim=1), self.items.weight

    def predict(self, interaction):
        users, items = self.tables()
        return (users[interaction[self.USER_ID]] * items[interaction[self.ITEM_ID]]).sum(dim=1)

    def full_sort_predict(self, interaction):
        users, items = self.tables()
        return users[interaction[self.USER_ID]] @ items.T

    def calculate_loss(self, interaction):
        users, items = self.tables()
        u, i = users[interaction[self.USER_ID]], items[interaction[self.ITEM_ID]]
        return BPRLoss()((u * i).sum(1), (u * items[interaction[self.NEG_ITEM_ID]]).sum(1))


@hns.register
class BiasedScorer(hns.Scorer):
    """How it scores: by a dot product, encoded once a step."""

    models = (Biased,)

    def vectors(self):
        return self.model.tables()
