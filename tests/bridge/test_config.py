"""Layers of the configuration, and one sentence for every mistake."""

import sys

import pytest
from recbole.model.general_recommender import BPR
from recbole.utils import InputType

from recbole_hns import Error, HNSConfig, SamplerSpec
from recbole_hns.bridge.config import default_settings
from recbole_hns.sampling import DNS, SAMPLERS, Softmax, SoftmaxV, Uniform


def config(model="BPR", dataset="ml-100k", files=None, command_line=(), **settings):
    return HNSConfig(model, dataset, files, settings, command_line)


def refusal(**kwargs) -> str:
    with pytest.raises(Error) as error:
        config(**kwargs)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_defaults_are_the_papers_recipe():
    spec = config().spec
    assert (spec.method, spec.N, spec.pool, spec.pool_block) == (SoftmaxV(0.5), 200, "uniform", 1)
    assert config(sampler="dns").spec.method == DNS(20)
    assert config(sampler="softmax").spec.method == Softmax(1.0)
    assert (config(sampler="uniform").spec.method, config(sampler="uniform").spec.N) == (Uniform(), 1)
    assert config(sampler="popularity").spec.pool == "popularity"
    recipe = config()
    assert recipe["embedding_size"] == 32
    assert recipe["train_batch_size"] == 4096
    assert recipe["lr_step_size"] is None


def test_later_layers_win(tmp_path):
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("sampler: dns\nN: 10\nM: 1\nepochs: 7\nlearning_rate: 1e-2\n")
    second.write_text("N: 20\n")
    files = [str(first), str(second)]
    assert config(files=files).spec.N == 20
    assert config(files=files)["learning_rate"] == 0.01
    assert config(files=files, N=30).spec.N == 30
    last = config(files=files, N=30, command_line=["--N=40"])
    assert (last.spec.N, last.spec.method, last["epochs"]) == (40, DNS(1), 7)


def test_mf_is_bpr():
    assert config("MF").model_class is BPR
    assert config("MF")["model"] == "BPR"


def test_a_model_class_of_ones_own_may_have_settings_of_its_own():
    class Mine(BPR):
        input_type = InputType.PAIRWISE

    mine = config(Mine, my_setting=3)
    assert mine.model_class is Mine
    assert mine["my_setting"] == 3


def test_sys_argv_is_not_read(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest", "--epochs=1", "-x"])
    assert config()["epochs"] == 200


def test_values_are_read_and_not_run(tmp_path):
    marker = tmp_path / "ran"
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    assert config(command_line=[f"--wandb_project={code}"])["wandb_project"] == code
    assert not marker.exists()
    values = config(
        command_line=["--topk=[5, 10]", "--weight_decay=1e-3", "--use_gpu=false", "--seed=7"]
    )
    assert values["topk"] == [5, 10]
    assert values["weight_decay"] == 0.001
    assert values["use_gpu"] is False
    assert values["seed"] == 7


def test_the_sampler_decides_over_train_neg_sample_args():
    given = {"distribution": "popularity", "sample_num": 4, "dynamic": True, "candidate_num": 9}
    merged = config(train_neg_sample_args=given)
    assert merged.ignored_neg_sample_args == given
    assert merged["train_neg_sample_args"]["sample_num"] == 1
    assert merged["train_neg_sample_args"]["dynamic"] is False
    assert config().ignored_neg_sample_args is None


def test_sequential_models_learn_from_pairs():
    assert config("SASRec")["MODEL_INPUT_TYPE"] == InputType.PAIRWISE
    assert "loss_type=BPR" in refusal(model="SASRec", loss_type="CE", train_neg_sample_args=None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sampler": "dsn"}, ["sampler=dsn", "dns"]),
        ({"sampler": "softmaxv"}, ["did you mean softmax_v?"]),
        ({"sampler": ["dns"]}, ["unknown"]),
        ({"sampler": "dns", "M": 0}, ["M=0", "at least 1"]),
        ({"sampler": "dns", "M": 201}, ["M=201", "from 1 to 200", "N=200"]),
        ({"sampler": "dns", "M": 2.5}, ["M=2.5", "whole number"]),
        ({"sampler": "dns", "M": "many"}, ["M='many'"]),
        ({"sampler": "dns", "M": True}, ["M=True"]),
        ({"N": 0}, ["N=0", "at least 1"]),
        ({"N": "all"}, ["N='all'"]),
        ({"sampler": "softmax_v", "rho": 0}, ["rho=0", "greater than 0"]),
        ({"sampler": "softmax_v", "rho": -1.0}, ["rho=-1.0"]),
        ({"sampler": "softmax_v", "rho": float("nan")}, ["rho=nan"]),
        ({"sampler": "softmax_v", "rho": "hard"}, ["rho='hard'", "number"]),
        ({"sampler": "softmax", "tau": 0}, ["tau=0"]),
        ({"sampler": "softmax", "tau": None}, ["tau=None"]),
        ({"M": 5}, ["M is not a setting of sampler=softmax_v", "rho", "goes with sampler=dns."]),
        ({"sampler": "uniform", "M": 2}, ["M is not a setting of sampler=uniform"]),
        ({"sampler": "warp", "N": 5}, ["N is not", "max_trials"]),
        ({"sampler": "warp", "max_trials": 0}, ["max_trials=0"]),
        ({"sampler": "pris_u", "pool": "popularity"}, ["pool is not", "tau, N, pool_block"]),
        ({"sampler": "adasir_p", "keep": 1}, ["keep=1", "below 1"]),
        ({"sampler": "adasir_u", "pool_alpha": 1.0}, ["pool_alpha is not"]),
        ({"sampler": "non_sampling", "N": 3}, ["which has none"]),
        ({"sampler": "irgan", "generator_size": 2.5}, ["generator_size=2.5", "whole number"]),
        ({"sampler": "kernel", "model": "ConvNCF"}, ["kernel", "ConvNCF", "dot product"]),
        ({"sampler": "aobpr", "model": "ConvNCF"}, ["aobpr", "ConvNCF", "factors"]),
        ({"sampler": "warp", "model": "SimpleX"}, ["warp", "SimpleX", "rank", "loss of its own"]),
        ({"sampler": "non_sampling", "model": "TransRec"}, ["non_sampling", "TransRec"]),
        ({"pair_loss": "bbr"}, ["pair_loss=bbr", "did you mean bpr?", "infonce"]),
        ({"pair_loss": "hinge", "margin": 0}, ["margin=0", "greater than 0"]),
        ({"pair_loss": "infonce", "temperature": "hot"}, ["temperature='hot'", "number"]),
        ({"margin": 1.0}, ["margin is not a setting of pair_loss=bpr", "pair_loss=hinge"]),
        ({"pair_loss": "hinge", "temperature": 1.0}, ["temperature", "pair_loss=infonce"]),
        ({"sampler": "warp", "pair_loss": "bpr"}, ["pair_loss=bpr", "warp", "pair_loss=hinge"]),
        ({"sampler": "aobpr", "pair_loss": "softmax"}, ["pair_loss=softmax", "aobpr", "infonce"]),
        ({"model": "ConvNCF", "pair_loss": "bce"}, ["pair_loss=bce", "no effect", "ConvNCF"]),
        ({"model": "BERT4Rec"}, ["BERT4Rec", "negatives of its own"]),
        ({"model": "CORE"}, ["CORE", "cross-entropy"]),
        ({"model": "Pop"}, ["Pop", "not trained"]),
        ({"model": "SINE", "loss_type": "NLL"}, ["loss_type=NLL", "loss_type=BPR"]),
        ({"model": "S3Rec", "train_stage": "pretrain"}, ["train_stage=pretrain", "finetune"]),
        ({"pool": "popular"}, ["pool=popular", "popularity"]),
        (
            {"sampler": "popularity", "pool": "uniform"},
            ["pool is not a setting of sampler=popularity, which has N, pool_alpha, pool_block"],
        ),
        ({"pool_alpha": -1}, ["pool_alpha=-1"]),
        ({"pool_block": 0}, ["pool_block=0"]),
        ({"hns_backend": "cuda"}, ["hns_backend=cuda", "torch"]),
        ({"lr_gamma": 0.5}, ["lr_gamma", "lr_step_size"]),
        ({"lr_step_size": 0}, ["lr_step_size=0"]),
        ({"lr_step_size": 5, "lr_gamma": 0}, ["lr_gamma=0"]),
        ({"learner": "sparse_adam", "weight_decay": 1e-6}, ["weight_decay=1e-06", "no effect"]),
        (
            {"learner": "sparse_adam", "model": "LightGCN"},
            ["LightGCN", "all rows", "learner=adam", "MF"],
        ),
        ({"learner": "Sparse_Adam", "model": "NGCF"}, ["learner=Sparse_Adam cannot train NGCF"]),
        ({"learner": "sparse_adam", "sampler": "non_sampling"}, ["non_sampling", "every item"]),
        ({"learner": "sparse_adam", "clip_grad_norm": {"max_norm": 5}}, ["clip_grad_norm", "no norm"]),
        ({"learner": "sparse_adam", "nproc": 2}, ["one process", "--nproc"]),
        ({"smapler": "dns"}, ["smapler", "did you mean sampler?"]),
        ({"epochs": "ten"}, ["epochs='ten'"]),
        ({"epochs": 1.5}, ["epochs=1.5"]),
        ({"use_gpu": "perhaps"}, ["use_gpu='perhaps'", "true or false"]),
        ({"metrics": ["Foo"]}, ["Foo"]),
        ({"topk": [0]}, ["topk"]),
        ({"model": "LightGNC"}, ["model=LightGNC", "LightGCN"]),
        ({"model": "bpr"}, ["did you mean BPR?"]),
        ({"model": "../BPR"}, ["unknown"]),
        ({"model": None}, ["no model"]),
        ({"dataset": None}, ["no data set"]),
        ({"model": "NeuMF"}, ["NeuMF", "pointwise"]),
        ({"model": "MultiVAE"}, ["MultiVAE", "no negatives"]),
        ({"model": "FM"}, ["pointwise"]),
        ({"files": ["no.yaml"]}, ["no.yaml", "No such file"]),
        ({"command_line": ["--sampler", "dns"]}, ["--sampler", "--key=value"]),
        ({"command_line": ["--N=1", "--N=2"]}, ["--N is given twice"]),
        ({"command_line": ["dns"]}, ["--key=value"]),
    ],
)
def test_every_mistake_gets_one_sentence(settings, words):
    message = refusal(**settings)
    for word in words:
        assert word in message


def test_a_model_has_defaults_for_one_sampler():
    of_dns, of_softmax_v = (config(sampler=name)["reg_weight"] for name in ("dns", "softmax_v"))
    assert 0 < of_dns < of_softmax_v
    assert config(sampler="softmax_v", reg_weight=0.5)["reg_weight"] == 0.5
    assert config(model="LightGCN", sampler="softmax_v")["reg_weight"] == 0.01


def test_broken_files_are_named(tmp_path):
    (tmp_path / "broken.yaml").write_text("a: [1, 2\n")
    assert "broken.yaml is not valid YAML" in refusal(files=["broken.yaml"])
    (tmp_path / "list.yaml").write_text("- a\n")
    assert "list.yaml must hold" in refusal(files=["list.yaml"])
    (tmp_path / "empty.yaml").write_text("")
    assert config(files=["empty.yaml"]).spec.N == 200


def test_a_models_own_setting_is_not_taken_for_a_samplers():
    """SGL's `tau`, say, has nothing to do with the softmax's."""
    model_keys = ["tau"]
    settings = {**default_settings(SAMPLERS["dns"]), "sampler": "dns"}
    spec = SamplerSpec.from_config({**settings, "tau": 0.1}, given=["tau"], model_keys=model_keys)
    assert spec.sampler == "dns"
    with pytest.raises(Error, match="tau is not a setting"):
        SamplerSpec.from_config({**settings, "tau": 0.1}, given=["tau"])


def test_data_sets_get_the_papers_preparation():
    prepared = config(dataset="ml-100k")
    assert prepared["val_interval"] == {"rating": "[4,inf)"}
    assert prepared["eval_args"]["split"] == {"RS": [0.72, 0.08, 0.2]}
    for name, item in (("yelp", "business_id"), ("amazon-books", "item_id"), ("gowalla", "item_id")):
        prepared = config(dataset=name)
        assert prepared["user_inter_num_interval"] == "[5,inf)"
        assert prepared["ITEM_ID_FIELD"] == item
    assert config(dataset="yelp2018")["benchmark_filename"] == ["train", "valid", "test"]
    sequential = config("SASRec")
    assert sequential["eval_args"]["split"] == {"LS": "valid_and_test"}
    assert config("CKE")["load_col"]["kg"] == ["head_id", "relation_id", "tail_id"]


def test_the_property_file_beside_the_data_wins_over_the_packages(tmp_path):
    (tmp_path / "here" / "yelp").mkdir(parents=True)
    (tmp_path / "here" / "yelp" / "yelp.yaml").write_text("ITEM_ID_FIELD: item_id\nepochs: 3\n")
    near = config(dataset="yelp", data_path=str(tmp_path / "here"))
    assert (near["ITEM_ID_FIELD"], near["epochs"]) == ("item_id", 3)
    assert config(dataset="yelp", data_path=str(tmp_path / "here"), epochs=4)["epochs"] == 4


def test_settings_of_another_recbole_model_are_allowed_in_a_shared_file():
    assert config(mlp_hidden_size=[64, 32])["mlp_hidden_size"] == [64, 32]


def test_the_callers_dictionary_is_left_as_it_was():
    mine = {"N": "10", "rho": 2}
    HNSConfig("BPR", "ml-100k", config_dict=mine)
    assert mine == {"N": "10", "rho": 2}
