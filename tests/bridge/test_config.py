"""Layers of the configuration, and one sentence for every mistake."""

import logging
import pickle
import sys
from pathlib import Path

import pytest
from recbole.model.general_recommender import BPR
from recbole.utils import InputType

from recbole_hns import Error, HNSConfig, losses, pools, rules
from recbole_hns.bridge import keys
from recbole_hns.bridge.config import tell_notes

ML = "ml-100k"


def config(model="BPR", dataset=ML, files=None, command_line=(), **settings):
    return HNSConfig(model, dataset, files, settings, command_line)


def refusal(**kwargs) -> str:
    with pytest.raises(Error) as error:
        config(**kwargs)
    assert "\n" not in str(error.value)
    return str(error.value)


# ----------------------------------------------------------------------------------- defaults


def test_defaults_are_the_papers_recipe():
    recipe = config()
    method = recipe.method
    assert (method.rule, method.pool, method.loss) == (
        rules.SoftmaxV(0.5),
        pools.Uniform(),
        losses.BPR(),
    )
    assert (method.N, method.block) == (200, 1)
    assert recipe["embedding_size"] == 32
    assert recipe["train_batch_size"] == 4096
    assert recipe["lr_step_size"] is None


@pytest.mark.parametrize(
    ("sampler", "pool", "rule", "N"),
    [
        ("dns", pools.Uniform(), rules.DNS(20), 200),
        ("softmax", pools.Uniform(), rules.Softmax(1.0), 200),
        ("uniform", pools.Uniform(), rules.Uniform(), 1),
        ("popularity", pools.Popularity(), rules.Uniform(), 1),
        ("kernel", pools.Kernel(), rules.Softmax(), 5),
        ("adasir_u", pools.AdaSIR(), rules.Uniform(), 5),
        ("non_sampling", pools.Everything(), rules.Uniform(), None),
    ],
)
def test_a_sampler_is_a_pool_a_rule_and_a_number_of_candidates(sampler, pool, rule, N):
    method = config(sampler=sampler).method
    assert (method.pool, method.rule, method.N) == (pool, rule, N)


def test_a_model_has_defaults_for_one_sampler():
    assert config(sampler="dns")["reg_weight"] == 0.02
    assert config(sampler="softmax_v")["reg_weight"] == 0.05
    assert config(sampler="softmax_v", reg_weight=0.5)["reg_weight"] == 0.5
    assert config(model="LightGCN", sampler="softmax_v")["reg_weight"] == 0.01


def test_data_sets_get_the_papers_preparation():
    prepared = config()
    assert prepared["val_interval"] == {"rating": "[4,inf)"}
    assert prepared["eval_args"]["split"] == {"RS": [0.72, 0.08, 0.2]}
    for name, item in (("yelp", "business_id"), ("amazon-books", "item_id"), ("gowalla", "item_id")):
        prepared = config(dataset=name)
        assert prepared["user_inter_num_interval"] == "[5,inf)"
        assert prepared["ITEM_ID_FIELD"] == item
    assert config(dataset="yelp2018")["benchmark_filename"] == ["train", "valid", "test"]
    assert config("SASRec")["eval_args"]["split"] == {"LS": "valid_and_test"}
    assert config("CKE")["load_col"]["kg"] == ["head_id", "relation_id", "tail_id"]


def test_mf_is_bpr():
    assert config("MF").model_class is BPR
    assert config("MF")["model"] == "BPR"


def test_sequential_models_learn_from_pairs():
    assert config("SASRec")["MODEL_INPUT_TYPE"] == InputType.PAIRWISE
    assert "loss_type=BPR" in refusal(model="SASRec", loss_type="CE", train_neg_sample_args=None)


def test_the_sampler_decides_over_train_neg_sample_args():
    given = {"distribution": "popularity", "sample_num": 4, "dynamic": True, "candidate_num": 9}
    merged = config(train_neg_sample_args=given)
    assert merged.ignored_neg_sample_args == given
    assert merged["train_neg_sample_args"]["sample_num"] == 1
    assert merged["train_neg_sample_args"]["dynamic"] is False
    assert config().ignored_neg_sample_args is None


# ----------------------------------------------------------------------------------- layers


def test_later_layers_win():
    Path("a.yaml").write_text("sampler: dns\nN: 10\nM: 1\nepochs: 7\nlearning_rate: 1e-2\n")
    Path("b.yaml").write_text("N: 20\n")
    files = ["a.yaml", "b.yaml"]
    assert config(files=files).method.N == 20
    assert config(files=files)["learning_rate"] == 0.01
    assert config(files=files, N=30).method.N == 30
    last = config(files=files, N=30, command_line=["--N=40"])
    assert (last.method.N, last.method.rule, last["epochs"]) == (40, rules.DNS(1), 7)
    assert [last.given.origins[key] for key in ("N", "M")] == ["the command line", "a.yaml"]


def test_the_property_file_beside_the_data_wins_over_the_packages():
    folder = Path("here/yelp")
    folder.mkdir(parents=True)
    (folder / "yelp.yaml").write_text("ITEM_ID_FIELD: item_id\nepochs: 3\nN: 50\n")
    near = config(dataset="yelp", data_path="here")
    assert (near["ITEM_ID_FIELD"], near["epochs"]) == ("item_id", 3)
    assert near.method.N == 50  # before, a sampler's own default was put over it
    assert config(dataset="yelp", data_path="here", epochs=4)["epochs"] == 4
    Path("mine.yaml").write_text("N: 60\n")
    assert config(dataset="yelp", data_path="here", files=["mine.yaml"]).method.N == 60


def test_a_refusal_says_which_file_a_value_is_from():
    Path("own.yaml").write_text("N: 0\n")
    assert refusal(files=["own.yaml"]).startswith("N=0 (from own.yaml) is not allowed")
    assert refusal(N=0).startswith("N=0 is not allowed")


def test_broken_files_are_named():
    contents = {
        "a: [1, 2\n": "is not valid YAML",
        "- a\n": "must hold `key: value` lines",
        "N: 1\nN: 2\n": "is not valid YAML: the key N stands twice",
        "1: 2\n": "has the key 1: keys are words",
        "N: !!python/name:os.system\n": "is not valid YAML",
    }
    for content, words in contents.items():
        Path("broken.yaml").write_text(content)
        assert f"broken.yaml {words}" in refusal(files=["broken.yaml"])
    Path("empty.yaml").write_text("")
    assert config(files=["empty.yaml"]).method.N == 200


def test_sys_argv_is_not_read(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest", "--epochs=1", "-x"])
    assert config()["epochs"] == 200


def test_values_are_read_and_not_run(tmp_path):
    marker = tmp_path / "ran"
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    assert config(command_line=[f"--wandb_project={code}"])["wandb_project"] == code
    assert not marker.exists()


def test_the_callers_dictionary_is_left_as_it_was():
    mine = {"N": "10", "rho": 2}
    HNSConfig("BPR", ML, config_dict=mine)
    assert mine == {"N": "10", "rho": 2}


def test_a_configuration_survives_pickling():
    """As Ray sends it to its workers: the method is made again."""
    one = config(sampler="dns", M=3, N=30)
    again = pickle.loads(pickle.dumps(one))
    assert again.method == one.method
    assert again.settings == one.settings
    assert again["learning_rate"] == 0.005


# ----------------------------------------------------------------------------------- which keys


def test_all_unknown_keys_are_told_at_once_each_with_the_nearest():
    """Before, the first one was told, and the next when that one was mended."""
    message = refusal(smapler="dns", lerning_rate=0.1, epoch=3, xyzzy=1)
    assert message.startswith(
        "smapler (did you mean sampler?), lerning_rate (did you mean learning_rate?), "
        "epoch (did you mean epochs?) and xyzzy are no settings of RecBole, of BPR or of recbole-hns"
    )
    assert "and M is not a setting" not in message
    both = refusal(sampler="uniform", smapler=1, M=2)
    assert "smapler (did you mean sampler?) is not a setting" in both
    assert "M is not a setting of sampler=uniform" in both


def test_a_typed_key_of_another_model_is_refused():
    """Before, n_layers=7 was taken for BPR and did nothing."""
    assert refusal(n_layers=7).startswith("n_layers is not a setting of RecBole, of BPR")
    assert "mlp_hidden_size" in refusal(command_line=["--mlp_hidden_size=[64,32]"])
    assert config("LightGCN", n_layers=4)["n_layers"] == 4


def test_a_file_may_serve_other_models_and_other_samplers(caplog):
    Path("shared.yaml").write_text("n_layers: 2\nmlp_hidden_size: [64, 32]\nrho: 0.1\nM: 3\nN: 30\n")
    for sampler, rule in (("dns", rules.DNS(3)), ("softmax_v", rules.SoftmaxV(0.1))):
        shared = config(files=["shared.yaml"], sampler=sampler)
        assert shared.method.rule == rule
        assert shared.method.N == 30
        assert shared.notes == []


def test_keys_of_other_tools_in_a_file_are_named_in_one_warning(caplog):
    Path("shared.yaml").write_text("my_cluster: a\nmy_queue: b\nepochs: 3\n")
    shared = config(files=["shared.yaml"])
    with caplog.at_level(logging.WARNING):
        tell_notes(shared)
    assert [record.message for record in caplog.records] == [
        "not settings of RecBole or of recbole-hns, and not used: my_cluster and my_queue."
    ]
    assert shared["epochs"] == 3


def test_a_key_in_a_file_that_is_a_letter_away_is_refused():
    Path("shared.yaml").write_text("lerning_rate: 0.1\n")
    assert refusal(files=["shared.yaml"]) == (
        "lerning_rate (from shared.yaml) is not a setting: it must be learning_rate."
    )


class Own(BPR):
    """A model class that reads settings which are called as some of ours are."""

    input_type = InputType.PAIRWISE

    def __init__(self, config, dataset):
        super().__init__(config, dataset)
        self.read = [config[key] for key in ("tau", "temperature", "margin", "my_setting")]


def test_a_model_class_of_ones_own_keeps_its_own_names_whatever_ours_are():
    """Before, tau, temperature and margin were refused as settings of another sampler or loss."""
    mine = config(Own, tau="cold", temperature=[1, 2], margin=-3, my_setting=4)
    assert [mine[key] for key in ("tau", "temperature", "margin", "my_setting")] == [
        "cold",
        [1, 2],
        -3,
        4,
    ]
    assert mine.method.rule == rules.SoftmaxV(0.5)


def test_beside_a_model_class_of_ones_own_a_mistyped_key_is_refused():
    """Before, whatever was typed beside one passed."""
    assert refusal(model=Own, lerning_rate=0.1).startswith("lerning_rate (did you mean learning_rate?)")
    assert "M is not a setting of sampler=softmax_v" in refusal(model=Own, M=3)


class Plain(BPR):
    """A model class that reads nothing but what RecBole's reads."""


def test_a_model_class_of_ones_own_reads_what_the_class_it_extends_reads():
    assert config(Plain, embedding_size=8)["embedding_size"] == 8
    assert refusal(model=Plain, n_layers=8).startswith("n_layers")


def test_of_a_model_class_that_was_typed_into_a_console_keys_near_to_ours_are_refused():
    """There is no source to find its keys in."""
    typed = type("Typed", (BPR,), {})
    assert config(typed, my_knob=8)["my_knob"] == 8
    assert "did you mean learning_rate?" in refusal(model=typed, lerning_rate=0.1)
    assert "tau is not a setting of sampler=softmax_v" in refusal(model=typed, tau=0.1)


def test_a_models_own_setting_is_not_taken_for_a_samplers():
    """SimpleX's margin has nothing to do with that of pair_loss=hinge."""
    assert config("SimpleX", margin=0.5)["margin"] == 0.5
    assert "margin" in refusal(margin=0.5)


@pytest.mark.parametrize("how", ["settings", "files", "command_line"])
def test_trust_is_never_a_setting(how):
    Path("a.yaml").write_text("trust_checkpoint: true\n")
    given = {
        "settings": {"trust_checkpoint": True},
        "files": {"files": ["a.yaml"]},
        "command_line": {"command_line": ["--trust_checkpoint=true"]},
    }[how]
    assert "never by a file" in refusal(**given)


def test_what_the_launcher_sets_is_no_setting():
    assert "local_rank is not a setting" in refusal(command_line=["--local_rank=0"])
    Path("a.yaml").write_text("nproc: 2\n")
    assert "nproc is not a setting but an option" in refusal(files=["a.yaml"])


# ----------------------------------------------------------------------------------- mistakes

SAMPLERS = [
    ({"sampler": "dsn"}, ["sampler=dsn", "did you mean dns?"]),
    ({"sampler": "softmaxv"}, ["did you mean softmax_v?"]),
    ({"sampler": ["dns"]}, ["unknown"]),
    ({"sampler": "dns", "M": 0}, ["M=0", "from 1"]),
    ({"sampler": "dns", "M": 201}, ["M=201", "from 1 to 200", "N=200"]),
    ({"sampler": "dns", "M": 2.5}, ["M=2.5", "whole number"]),
    ({"sampler": "dns", "M": "many"}, ["M='many'"]),
    ({"sampler": "dns", "M": True}, ["M=True"]),
    ({"N": "all"}, ["N='all'"]),
    ({"sampler": "softmax_v", "rho": 0}, ["rho=0", "greater than 0"]),
    ({"sampler": "softmax_v", "rho": -1.0}, ["rho=-1.0"]),
    ({"sampler": "softmax_v", "rho": float("nan")}, ["rho=nan"]),
    ({"sampler": "softmax_v", "rho": "hard"}, ["rho='hard'", "number"]),
    ({"sampler": "softmax", "tau": None}, ["tau=None"]),
    ({"M": 5}, ["M is not a setting of sampler=softmax_v", "rho", "goes with sampler=dns."]),
    ({"sampler": "warp", "N": 5}, ["N is not", "max_trials"]),
    ({"sampler": "warp", "max_trials": 0}, ["max_trials=0"]),
    ({"sampler": "pris_u", "pool": "popularity"}, ["pool is not", "tau, N, pool_block"]),
    ({"sampler": "popularity", "pool": "uniform"}, ["pool is not", "pool_alpha, N, pool_block"]),
    ({"sampler": "adasir_p", "keep": 1}, ["keep=1", "below 1"]),
    ({"sampler": "adasir_u", "pool_alpha": 1.0}, ["pool_alpha is not"]),
    ({"sampler": "non_sampling", "N": 3}, ["N is not a setting of sampler=non_sampling"]),
    ({"sampler": "irgan", "generator_size": 2.5}, ["generator_size=2.5", "whole number"]),
    ({"pool": "popular"}, ["pool=popular", "did you mean popularity?"]),
    ({"pool": "popularity", "pool_alpha": -1}, ["pool_alpha=-1", "at least 0"]),
    ({"pool_block": 0}, ["pool_block=0"]),
    ({"pair_loss": "bbr"}, ["pair_loss=bbr", "did you mean bpr?", "infonce"]),
    ({"pair_loss": "hinge", "margin": 0}, ["margin=0", "greater than 0"]),
    ({"pair_loss": "infonce", "temperature": "hot"}, ["temperature='hot'", "number"]),
    ({"margin": 1.0}, ["margin is not a setting", "goes with pair_loss=hinge"]),
    ({"pair_loss": "hinge", "temperature": 1.0}, ["temperature", "pair_loss=infonce"]),
    ({"sampler": "warp", "pair_loss": "bpr"}, ["pair_loss=bpr", "warp", "pair_loss=hinge"]),
    ({"sampler": "aobpr", "pair_loss": "softmax"}, ["pair_loss=softmax", "aobpr", "infonce"]),
]
RUNS = [
    ({"hns_backend": "cuda"}, ["hns_backend='cuda'", "torch"]),
    ({"lr_gamma": 0.5}, ["lr_gamma", "lr_step_size"]),
    ({"lr_step_size": 0}, ["lr_step_size=0"]),
    ({"lr_step_size": 5, "lr_gamma": 0}, ["lr_gamma=0"]),
    ({"learner": "sparse_adam", "weight_decay": 1e-6}, ["weight_decay=1e-06", "no effect"]),
    ({"model": "SINE", "loss_type": "NLL"}, ["loss_type=NLL", "loss_type=BPR"]),
    ({"model": "LightGNC"}, ["model=LightGNC", "LightGCN"]),
    ({"model": "bpr"}, ["did you mean BPR?"]),
    ({"model": "../BPR"}, ["unknown"]),
    ({"model": None}, ["no model"]),
    ({"dataset": None}, ["no data set"]),
    ({"files": ["no.yaml"]}, ["no.yaml", "No such file"]),
    ({"command_line": ["--sampler", "dns"]}, ["--sampler", "--key=value"]),
    ({"command_line": ["--N=1", "--N=2"]}, ["--N is given twice"]),
    ({"command_line": ["dns"]}, ["--key=value"]),
    ({"valid_metric": "NDCG@7"}, ["valid_metric=NDCG@7 is not evaluated", "ndcg@10"]),
    ({"valid_metric": "AUC"}, ["valid_metric=AUC is not evaluated: add it to metrics"]),
]


@pytest.mark.parametrize(("settings", "words"), [*SAMPLERS, *RUNS])
def test_every_mistake_gets_one_sentence(settings, words):
    message = refusal(**settings)
    for word in words:
        assert word in message


# ----------------------------------------------------------------------------------- files for RecBole


def test_cross_entropy_in_a_file_is_replaced_with_a_note_and_refused_where_it_is_typed():
    """RecBole's files for sequences say loss_type: CE; who types it wants what a sampler cannot give."""
    Path("own.yaml").write_text("loss_type: CE\ntrain_neg_sample_args: ~\n")
    read = config("SASRec", files=["own.yaml"])
    assert read["loss_type"] == "BPR"
    assert read["MODEL_INPUT_TYPE"] == InputType.PAIRWISE
    assert read.notes == [
        "loss_type=CE (from own.yaml) is replaced by BPR: cross-entropy ranks against all items and leaves "
        "a sampler nothing to choose."
    ]
    assert "loss_type=CE" in refusal(model="SASRec", loss_type="CE", train_neg_sample_args=None)
    assert config("BPR", files=["own.yaml"]).notes == []  # which has no loss_type


def test_our_own_filter_is_left_out_where_its_column_is_not_loaded():
    """Before, `load_col` without `rating` ended in: Field [rating] not defined in dataset."""
    note = (
        "properties/dataset/ml-100k.yaml keeps rows by rating, which load_col or unload_col leaves out: "
    )
    for given in (
        {"load_col": {"inter": ["user_id", "item_id", "timestamp"]}},
        {"unload_col": {"inter": ["rating"]}, "load_col": None},
    ):
        without = config(**given)
        assert without["val_interval"] is None
        assert without.notes == [note + "all rows are kept."]
    for given in ({"load_col": {"inter": "*"}}, {"load_col": None}, {}):
        assert config(**given)["val_interval"] == {"rating": "[4,inf)"}
        assert config(**given).notes == []
    own = {"timestamp": "[0,inf)"}
    kept = config(load_col={"inter": ["user_id", "item_id", "timestamp"]}, val_interval=own)
    assert (kept["val_interval"], kept.notes) == (own, [])


def test_what_recbole_takes_and_does_not_use_is_noted():
    Path("own.yaml").write_text("device: cuda\neval_type: ranking\nrm_dup_inter: False\n")
    notes = config(files=["own.yaml"]).notes
    assert notes[0] == "device is not used: use_gpu and gpu_id choose it, as in RecBole."
    assert notes[1] == "eval_type is not used: it follows from metrics, as in RecBole."
    assert notes[2].startswith("rm_dup_inter=False drops every pair that stands more than once")
    assert config(files=["own.yaml"])["rm_dup_inter"] is False
    assert "first, last, False or None" in refusal(rm_dup_inter=True)
    assert "first, last, False or None" in refusal(rm_dup_inter=0)


def test_other_parts_of_eval_args_are_left_out_of_a_file_and_refused_where_they_are_typed():
    Path("own.yaml").write_text("eval_args: {item_id: x, order: TO, mode: full}\n")
    read = config(files=["own.yaml"])
    assert read.notes == ["eval_args (from own.yaml) has no item_id: not used."]
    assert (read["eval_args"]["order"], "item_id" in read["eval_args"]) == ("TO", False)
    assert "mapping of split" in refusal(eval_args={"item_id": "x"})
    Path("typo.yaml").write_text("eval_args: {splits: {RS: [8, 1, 1]}}\n")
    assert "mapping of split" in refusal(files=["typo.yaml"])


def test_a_key_that_is_near_to_another_models_is_left_alone_in_a_file():
    """DIF-SR's lamdas is not the lamda of a model that is not trained."""
    Path("own.yaml").write_text("lamdas: [5]\nlamda: 1\nstopping_step: 15000000000000000000000000\n")
    read = config(files=["own.yaml"])
    assert read.notes == ["not settings of RecBole or of recbole-hns, and not used: lamdas."]
    assert read["stopping_step"] == keys.LARGE


def test_columns_that_there_are_not_may_be_said_to_be_none():
    Path("own.yaml").write_text("RATING_FIELD: ~\nTIME_FIELD: ~\n")
    read = config(files=["own.yaml"])
    assert (read["RATING_FIELD"], read["TIME_FIELD"]) == (None, None)
    assert "USER_ID_FIELD=None" in refusal(USER_ID_FIELD=None)


@pytest.mark.parametrize("model", ["LightGBM", "lightgbm", "xgboost", "XGBoost"])
def test_trees_are_refused_for_what_they_are(model):
    """Before, LightGBM was told to be lightgbm, and lightgbm to be a package that is missing."""
    assert refusal(model=model).startswith(f"{model} grows trees and ranks no pairs")


@pytest.mark.parametrize("loss", ["BCE", "BPR", "CE"])
def test_a_model_that_can_never_be_trained_is_not_asked_for_another_loss(loss):
    assert "CDAE learns to rebuild whole user histories" in refusal(model="CDAE", loss_type=loss)
    assert "CDAE learns to rebuild whole user histories" in refusal(model="CDAE")


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("FM", {"valid_metric": "MRR@10"}),  # "add it to metrics" was the advice
        ("FM", {"metrics": ["MRR"], "eval_args": {"mode": "full"}}),
        ("EASE", {"lerning_rate": 3}),
        ("RepeatNet", {"loss_type": "BCE"}),
    ],
)
def test_that_a_model_can_never_be_trained_is_said_before_anything_else(model, settings):
    assert refusal(model=model, **settings).startswith(f"{model} ")
    assert "choose a pairwise model" in refusal(model=model, **settings)
