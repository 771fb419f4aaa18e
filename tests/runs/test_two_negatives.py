"""A model of one's own that never reads the negatives is told of."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from recbole.model.abstract_recommender import GeneralRecommender
from recbole.model.general_recommender import BPR
from recbole.utils import InputType
from torch import nn

from recbole_hns import run_recbole_hns

QUICK = {"epochs": 1, "sampler": "dns", "N": 5, "M": 2}
TOLD = "is the same whatever the negatives are, so that all samplers train the same model"


class Own(GeneralRecommender):
    """A pairwise model by the book; its tables begin at 0, where all scores are equal."""

    input_type = InputType.PAIRWISE

    def __init__(self, config, dataset):
        super().__init__(config, dataset)
        self.users = nn.Embedding(self.n_users, 4)
        self.items = nn.Embedding(self.n_items, 4)
        self.dropout = nn.Dropout(0.5)
        self.calls = 0
        for table in (self.users, self.items):
            nn.init.zeros_(table.weight)

    def score(self, user, item):
        return (self.dropout(self.users(user)) * self.items(item)).sum(dim=1)

    def predict(self, interaction):
        return self.score(interaction[self.USER_ID], interaction[self.ITEM_ID])

    def calculate_loss(self, interaction):
        self.calls += 1
        user, item = interaction[self.USER_ID], interaction[self.ITEM_ID]
        difference = self.score(user, item) - self.score(user, interaction[self.NEG_ITEM_ID])
        return -torch.nn.functional.logsigmoid(difference).mean()


class Blind(Own):
    """The same, but for the negative."""

    def calculate_loss(self, interaction):
        return -torch.nn.functional.logsigmoid(self.predict(interaction)).mean()


class TwoParts(Blind):
    """A loss of parts, none of which reads the negative."""

    def calculate_loss(self, interaction):
        return super().calculate_loss(interaction), self.items.weight.square().mean()


class Fails(Own):
    """Its loss cannot be had twice."""

    def __deepcopy__(self, memo):
        raise RuntimeError("mine")


def told(model, settings, caplog, files=()):
    caplog.clear()
    with caplog.at_level("WARNING"):
        run_recbole_hns(model, "tiny", config_file_list=list(files), config_dict={**settings, **QUICK})
    return [r.getMessage() for r in caplog.records if TOLD in r.getMessage()]


@pytest.mark.parametrize("model", [Blind, TwoParts])
def test_a_loss_that_does_not_read_the_negative_is_told_of(tiny, caplog, model):
    (sentence,) = told(model, tiny, caplog)
    assert sentence == (
        f"the loss of {model.__name__} {TOLD}: its calculate_loss is to read "
        "interaction[self.NEG_ITEM_ID], the column neg_item_id."
    )


def test_losses_that_do_are_not(tiny, caplog):
    class Mine(BPR):
        """RecBole's, under another name."""

    file = Path("own.yaml")  # its size is a setting that only RecBole's class has
    file.write_text("embedding_size: 4\n")
    for model, files in ((Own, []), (Mine, [str(file)]), (Fails, [])):
        assert told(model, tiny, caplog, files) == []


def test_asking_changes_neither_the_model_nor_a_random_stream(tiny, monkeypatch):
    from recbole_hns.runs import checks

    seen = []
    asked = checks.warn_if_negatives_are_not_read

    def look(config, model, loader):
        before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
        asked(config, model, loader)
        after = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
        assert torch.equal(before[0], after[0])
        assert before[1:] == after[1:]
        seen.append((model.calls, float(model.items.weight.abs().sum())))

    monkeypatch.setattr(checks, "warn_if_negatives_are_not_read", look)
    run_recbole_hns(Own, "tiny", config_dict={**tiny, **QUICK})
    assert seen == [(0, 0.0)]
