"""The table of what RecBole's settings may be."""

from importlib.util import find_spec

import pytest

from recbole_hns import Error, HNSConfig

GOOD = {
    "eval_args": {"split": {"LS": "valid_only"}, "mode": {"valid": "uni100", "test": "full"}},
    "val_interval": {"rating": "[4,inf)", "user_id": ["1", "2"]},
    "user_inter_num_interval": "[1,2];(4,inf)",
    "clip_grad_norm": {"max_norm": 5, "norm_type": 2},
    "gpu_id": (0, 1),
    "topk": 5,
    "learner": "Adam",
    "state": None,
    "eval_step": 0,
    "epochs": 0,
    "encoding": "latin-1",
    "load_col": {"inter": "*"},
    "discretization": {"rating": {"method": "ED", "bucket": 3}},
    "split_seed": None,
    "seed": 2**32 - 1,
}


@pytest.mark.parametrize("key", GOOD)
def test_what_recbole_can_use_is_allowed_and_kept(key):
    valid_metric = {"valid_metric": "MRR@5"} if key == "topk" else {}
    config = HNSConfig("BPR", "ml-100k", config_dict={key: GOOD[key], **valid_metric})
    kept = {
        "topk": [5],
        "gpu_id": "0,1",
        "eval_args": {**GOOD["eval_args"], "order": "RO", "group_by": "user"},
    }
    assert config[key] == kept.get(key, GOOD[key])


def test_a_closed_interval_may_be_written_as_a_list():
    """Bare on the command line and in a file it is one."""
    for value in ("[5,20]", [5, 20], (5, 20)):
        config = HNSConfig("BPR", "ml-100k", config_dict={"user_inter_num_interval": value})
        assert config["user_inter_num_interval"] == "[5,20]"
    for wrong in ("[20,5]", [5], [5, "x"], [5, 6, 7]):
        with pytest.raises(Error, match="user_inter_num_interval"):
            HNSConfig("BPR", "ml-100k", config_dict={"user_inter_num_interval": wrong})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learning_rate": -1}, ["learning_rate=-1", "greater than 0"]),
        ({"learning_rate": 1e9}, ["at most 1000"]),
        ({"train_batch_size": 0}, ["train_batch_size=0", "at least 1"]),
        ({"seed": -1}, ["seed=-1", "from 0 to 4294967295"]),
        ({"seed": 2**32}, ["seed=4294967296"]),
        ({"learner": "adm"}, ["learner='adm'", "adam, adamw, sgd"]),
        ({"embedding_size": 0}, ["embedding_size=0", "from 1 to 65536"]),
        ({"embedding_size": 10**9}, ["embedding_size=1000000000"]),
        ({"N": 10**9}, ["N=1000000000", "from 1 to 1000000"]),
        ({"sampler": "softmax", "tau": 1e-300}, ["tau=1e-300", "greater than 0"]),
        ({"epochs": 16**5000}, ["a number of thousands of digits"]),
        ({"wandb_project": "x" * 5000 + "\x00"}, ["wandb_project='xxx", "…"]),
        ({"metrics": ["Recal"]}, ["metrics='Recal'", "precision, rmse, recall", "did you mean recall?"]),
        ({"topk": []}, ["topk=[]"]),
        ({"eval_args": {"split": {"RS": [0, 1, 1]}}}, ["eval_args split", "more than 0"]),
        ({"eval_args": {"mode": "uni0"}}, ["eval_args mode='uni0'"]),
        ({"eval_args": {"mode": "labeled"}}, ["mode=labeled", "full"]),
        ({"eval_args": {"splits": {}}}, ["split, group_by, order, mode"]),
        ({"val_interval": {"rating": "[4,1]"}}, ["val_interval", "interval"]),
        ({"load_col": ["user_id"]}, ["load_col=['user_id']", "{'inter': ['user_id', 'item_id']}"]),
        ({"clip_grad_norm": 5}, ["clip_grad_norm=5", "max_norm"]),
        ({"checkpoint_dir": "/dev/null/x"}, ["checkpoint_dir", "can be written to"]),
        ({"dataset_save_path": 3}, ["dataset_save_path=3", "a path"]),
        ({"log_wandb": True}, ["log_wandb=True", "wandb is installed"]),
        ({"model": "LightGCN", "n_layers": 10**9}, ["n_layers=1000000000", "to 100"]),
        ({"model": "NGCF", "hidden_size_list": 64}, ["hidden_size_list=64", "[64, 64, 64]"]),
        ({"model": "NGCF", "hidden_size_list": [64, 0]}, ["hidden_size_list=0", "from 1"]),
        ({"model": "NGCF", "message_dropout": 1.0}, ["message_dropout=1.0", "below 1"]),
        ({"model": "BPR", "reg_weight": -0.1}, ["reg_weight=-0.1", "0 to 1000"]),
        ({"model": "BPR", "reg_weight": "none"}, ["reg_weight='none'"]),
        ({"model": "HGN", "reg_weight": [0.1]}, ["reg_weight=[0.1]", "a list of 2 numbers"]),
        ({"model": "HGN", "weight_decay": 0.1}, ["reg_weight=[0.0, 0.0]", "weight_decay=0.1"]),
        ({"dataset": "../ml-100k"}, ["dataset='../ml-100k'", "name of a folder"]),
        ({"MODEL_TYPE": 1}, ["MODEL_TYPE is not a setting of RecBole, of BPR or of"]),
    ],
)
def test_what_would_fail_later_is_refused_in_one_sentence(settings, words, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", _without_wandb)
    settings = {"model": "BPR", "dataset": "ml-100k", **settings}
    with pytest.raises(Error) as error:
        HNSConfig(settings.pop("model"), settings.pop("dataset"), config_dict=settings)
    for word in words:
        assert word in str(error.value)
    assert len(str(error.value)) < 700


def _without_wandb(name, package=None):
    return None if name == "wandb" else find_spec(name, package)
