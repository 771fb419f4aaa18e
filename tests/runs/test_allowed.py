"""A model and a sampler that do not go together are refused before data is loaded."""

import pytest

from recbole_hns import Error, HNSConfig

REFUSED = [
    ({"sampler": "kernel", "model": "ConvNCF"}, ["kernel", "ConvNCF", "dot product"]),
    ({"sampler": "aobpr", "model": "ConvNCF"}, ["aobpr", "ConvNCF", "factors"]),
    ({"sampler": "warp", "model": "SimpleX"}, ["warp", "SimpleX", "rank", "loss of its own"]),
    ({"sampler": "non_sampling", "model": "TransRec"}, ["non_sampling", "TransRec"]),
    ({"model": "ConvNCF", "pair_loss": "bce"}, ["pair_loss=bce", "no effect", "ConvNCF"]),
    ({"model": "BERT4Rec"}, ["BERT4Rec", "negatives of its own"]),
    ({"model": "CORE"}, ["CORE", "cross-entropy"]),
    ({"model": "Pop"}, ["Pop", "not trained"]),
    ({"model": "NeuMF"}, ["NeuMF", "pointwise"]),
    ({"model": "MultiVAE"}, ["MultiVAE", "no negatives"]),
    ({"model": "FM"}, ["pointwise"]),
    ({"model": "S3Rec", "train_stage": "pretrain"}, ["train_stage=pretrain", "finetune"]),
    ({"model": "CKE", "save_dataloaders": True}, ["save_dataloaders=True", "CKE"]),
    ({"transform": "mask_itemseq"}, ["transform=mask_itemseq", "sequential"]),
    ({"learner": "sparse_adam", "model": "LightGCN"}, ["LightGCN", "all rows", "learner=adam", "MF"]),
    ({"learner": "Sparse_Adam", "model": "NGCF"}, ["learner=Sparse_Adam cannot train NGCF"]),
    ({"learner": "sparse_adam", "sampler": "non_sampling"}, ["non_sampling", "every item"]),
    ({"learner": "sparse_adam", "clip_grad_norm": {"max_norm": 5}}, ["clip_grad_norm", "no norm"]),
    ({"learner": "sparse_adam", "nproc": 2}, ["one process", "--nproc"]),
]


@pytest.mark.parametrize(("settings", "words"), REFUSED)
def test_what_does_not_go_together_is_refused_in_one_sentence(settings, words):
    settings = {"model": "BPR", **settings}
    with pytest.raises(Error) as error:
        HNSConfig(settings.pop("model"), "ml-100k", config_dict=settings)
    message = str(error.value)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "settings",
    [
        {"sampler": "dns", "model": "ConvNCF"},
        {"sampler": "uniform", "model": "TransRec"},
        {"learner": "sparse_adam", "sampler": "aobpr"},
        {"model": "SASRec", "transform": "mask_itemseq"},
        {"model": "SASRec", "sampler": "kernel"},
    ],
)
def test_what_goes_together_is_allowed(settings):
    given = dict(settings)
    config = HNSConfig(given.pop("model", "BPR"), "ml-100k", config_dict=given)
    assert all(config[key] == value for key, value in given.items())
