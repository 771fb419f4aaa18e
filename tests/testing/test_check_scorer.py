"""Our own scorers pass; a broken one is caught by the sentence that says what is broken."""

from __future__ import annotations

import pytest
import torch
from recbole.model.general_recommender import BPR, LightGCN

from recbole_hns.errors import Error
from recbole_hns.models import composed, fused
from recbole_hns.models.scorer import OwnLossScorer, Scorer
from recbole_hns.sampling.query import DotQuery
from recbole_hns.testing import check_scorer


@pytest.mark.parametrize(
    ("scorer", "model"),
    [
        (fused.MFScorer, "BPR"),
        (fused.LightGCNScorer, "LightGCN"),
        (composed.TableScorer, "NGCF"),
        (composed.TableScorer, "SpectralCF"),
        (composed.SequenceScorer, "SASRec"),
        (composed.SequenceScorer, "FOSSIL"),
        (composed.SequenceScorer, "SHAN"),
        (composed.NPEScorer, "NPE"),
        (composed.FPMCScorer, "FPMC"),
        (composed.LINEScorer, "LINE"),
        (composed.SimpleXScorer, "SimpleX"),
        (OwnLossScorer, "GCMC"),
    ],
)
def test_our_own_scorer_passes(scorer, model):
    check_scorer(scorer, model)


def test_hgn_learns_from_one_table_unlike_recboles():
    with pytest.raises(
        AssertionError, match=r"the loss with one negative, against calculate_loss \(or say same_l"
    ):
        check_scorer(composed.HGNScorer, "HGN")
    check_scorer(composed.HGNScorer, "HGN", same_loss=False)


class Swapped(fused.MFScorer):
    """Users' vectors in another order."""

    def vectors(self):
        users, items = super().vectors()
        return users.flip(0), items


class Halved(fused.MFScorer):
    """Half of an item's gradient."""

    def vectors(self):
        users, items = super().vectors()
        return users, items / 2 + items.detach() / 2


class Detached(fused.MFScorer):
    """Items that do not learn."""

    sparse_gradient = False

    def vectors(self):
        users, items = super().vectors()
        return users, items.detach()


class Unregularised(fused.LightGCNScorer):
    """Leaves out what the model adds to its loss."""

    def regulariser(self, batch, negatives):
        return None


class Longer(fused.MFScorer):
    """Vectors of more items than there are."""

    def vectors(self):
        users, items = super().vectors()
        return users, torch.cat([items, items])


class Dense(fused.MFScorer):
    """Says that its gradients are sparse where they are asked to be."""

    def encode(self, batch):
        query = super().encode(batch)
        query.sparse = False
        return query


class TheFirst(OwnLossScorer):
    """Its negatives are the first candidates, whatever they weigh."""

    def own_loss(self, batch, negatives, generator):
        batch["neg_item_id"] = negatives.ids[:, 0].long()
        return self.model.calculate_loss(batch)


class Nowhere(fused.MFScorer):
    """Encodes nothing."""

    def encode(self, batch):
        return DotQuery(*self.vectors(), batch["nothing"], batch["user_id"])


@pytest.mark.parametrize(
    ("scorer", "model", "sentence"),
    [
        (
            Swapped,
            BPR,
            r"scorer Swapped of BPR \(hns_backend=numba\): a positive's score, against predict: \S+ ins",
        ),
        (Halved, BPR, r"the gradient by item_embedding\.weight, against autograd: \S+ instead of"),
        (Detached, BPR, r"the gradient by item_embedding\.weight, against autograd: 0 instead of"),
        (Unregularised, LightGCN, r"the loss with one negative, against calculate_loss"),
        (Longer, BPR, r"vectors of 62 items are given, and there are 31\."),
        (Dense, BPR, r"sparse=True, and the gradient of user_embedding\.weight is not so\."),
        (TheFirst, BPR, r"\d+ of 40 negatives are not those that the weights choose\."),
        (Nowhere, BPR, r"scorer Nowhere of BPR: encode fails: \w+"),
    ],
)
def test_a_broken_scorer_is_told(scorer, model, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_scorer(scorer, model)


def test_what_is_no_scorer():
    with pytest.raises(AssertionError, match="is no subclass of Scorer: derive it from Scorer"):
        check_scorer(BPR)

    class Models(Scorer):
        """Of none."""

    with pytest.raises(AssertionError, match=r"scorer Models names no models: models = \(MyModel,\)\."):
        check_scorer(Models)

    class Silent(fused.MFScorer):
        pass

    with pytest.raises(AssertionError, match="scorer Silent has no docstring"):
        check_scorer(Silent)


def test_a_setting_that_the_model_does_not_have():
    with pytest.raises(Error, match="n_layers is not a setting of RecBole, of BPR or of recbole-hns"):
        check_scorer(fused.MFScorer, n_layers=2)
