"""What must be accepted: every line of the READMEs and of --help, every shipped file, each form of a value.

A fuzz finds what ends badly; that a right line is refused shows here alone.
"""

import importlib
import re
import shlex
import shutil
from pathlib import Path

import pytest

import recbole_hns
from recbole_hns import HNSConfig, run_recbole_hns
from recbole_hns.bridge.properties import PROPERTIES
from recbole_hns.cli.main import COMMANDS, main
from recbole_hns.runs import run as runs
from recbole_hns.sampling.methods import all_methods
from recbole_hns.settings.dialect import read_yaml, to_yaml
from recbole_hns.tuning import make_plan
from recbole_hns.tuning.space import paper_space

ROOT = Path(recbole_hns.__file__).resolve().parent.parent
READMES = [file for file in (ROOT / "README.md", ROOT / "results" / "README.md") if file.is_file()]


# ----------------------------------------------------------------------------------- lines


def blocks(text):
    """(language, content) of the fenced blocks of a page."""
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands_in(text):
    """Lines that call the command, each in one piece, as shells would have them."""
    for line in text.replace("\\\n", " ").splitlines():
        line = re.sub(r"^\s*(\$ )?(pip install \S+ && )?", "", line).split("    #")[0]
        called = re.match(r"(recbole-hns|python run_recbole_hns\.py|python -m recbole_hns) (.*)", line)
        if called:
            yield called[2].strip()


def documented():
    """Every line of the READMEs and of the helps."""
    for file in READMES:
        for language, content in blocks(file.read_text("utf-8")):
            if language in ("bash", "text", "sh", "console"):
                yield from commands_in(content)
        for span in re.findall(r"`(recbole-hns [^`]+)`", file.read_text("utf-8")):
            is_whole = not set("…<>[") & set(span.replace("[5", ""))
            if is_whole and (
                len(span.split()) > 2 or span.split()[1] in ("samplers", "models", "schema")
            ):
                yield from commands_in(span)
    for name in (*COMMANDS, "train"):
        module = importlib.import_module(f"recbole_hns.cli.{name}")
        examples = re.split(r"\nexamples?:\n", getattr(module, "EPILOG", ""))[1:]
        for text in examples:
            yield from commands_in(text)


LINES = sorted(set(documented()))


@pytest.fixture
def not_trained(monkeypatch):
    """Configurations that a run or a search would begin with; nothing is trained."""
    seen = []

    class Outcome:
        def as_recbole(self):
            return {"best_valid_result": None, "test_result": None}

    def instead(config, *_, **__):
        seen.append(config)
        return Outcome()

    def searched(plan, *_, **__):
        seen.append(plan.config())
        return {}

    monkeypatch.setattr(runs, "train_and_test", instead)
    tune = importlib.import_module("recbole_hns.cli.tune")
    monkeypatch.setattr(tune, "run_search", searched)
    monkeypatch.setattr(tune, "summary_text", lambda *_: "")
    return seen


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run's two files."""
    folder = tmp_path_factory.mktemp("trained")
    settings = {"epochs": 1, "N": 2, "show_progress": False, "result_dir": None, "state": "ERROR"}
    more = {"checkpoint_dir": str(folder / "saved")}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_recbole_hns("BPR", "ml-100k", config_dict={**settings, **more})
    return folder / "saved"


def files_for(line, trained):
    """The files that a line speaks of."""
    for path in re.findall(r"saved/\S+?\.pth", line):
        Path("saved").mkdir(exist_ok=True)
        for file in trained.glob("*.pth"):
            ending = ".last.pth" if file.name.endswith(".last.pth") else ".pth"
            shutil.copy(file, path.removesuffix(".pth").removesuffix(".last") + ending)
    for name in re.findall(r"--(?:search|config_files)=(\S+\.yaml)", line):
        Path(name).write_text(
            "learning_rate: {grid: [1e-3, 0.01]}\n" if "search" in line else "epochs: 3\n"
        )
    for name in re.findall(r"--resume=(tuning/\S+)", line):
        Path(name).mkdir(parents=True)
        make_plan("MF", "ml-100k", {"sampler": "dns"}).write(Path(name))
    if "users.txt" in line:
        Path("users.txt").write_text("196\n186\n")
    if "--import=" in line:
        own = [
            c for _, c in blocks(READMES[0].read_text("utf-8")) if "@hns.register" in c and "Rule" in c
        ]
        for name in re.findall(r"--import=(\w+)", line):
            Path(f"{name}.py").write_text(own[0])


@pytest.mark.parametrize(
    "line", [line for line in LINES if line.split()[0] not in ("convert", "report")]
)
def test_every_documented_line_is_accepted(line, trained, not_trained, clean_registry, capsys):
    files_for(line, trained)
    arguments = shlex.split(line)
    if arguments[0] == "simulate":
        arguments.append({"correlation": "--permutations=20", "sampling": "--draws=20"}[arguments[1]])
    assert main(arguments) == 0, capsys.readouterr().err
    if arguments[0].startswith("--") or arguments[0] == "tune":
        assert len(not_trained) == 1
        assert not_trained[0].notes == []


@pytest.mark.parametrize("line", [line for line in LINES if line.split()[0] in ("convert", "report")])
def test_every_documented_line_of_convert_and_report_is_understood(line, monkeypatch, capsys):
    """They take files that others have: the arguments are read, and the work is left out."""
    arguments = shlex.split(line)
    module = importlib.import_module(f"recbole_hns.cli.{arguments[0]}")
    if arguments[0] == "convert":
        options = module.make_parser().parse_args(arguments[1:])
        module.check(options)
        return

    def made(paths, output, *_):
        output.mkdir()
        (output / "table.md").write_text("")
        return []

    monkeypatch.setattr(module, "make_report", made)
    assert main(arguments) == 0, capsys.readouterr().err


def test_there_are_lines_of_every_command_to_accept():
    """So that a page in another form is not taken for one without lines."""
    commands = {line.split()[0] if not line.startswith("--") else "train" for line in LINES}
    assert {"train", "tune", "evaluate", "recommend", "convert", "report"} <= commands
    assert len(LINES) >= 15


# ----------------------------------------------------------------------------------- files

MODEL_OF = {"overall": "MF", "model": None, "dataset": "MF"}
FILES = [file for file in sorted(PROPERTIES.rglob("*.yaml")) if file.parent.name != "search"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_property_file_that_is_shipped_is_accepted_as_a_users_own(file):
    model = file.stem.partition("-")[0] if file.parent.name == "model" else "MF"
    dataset = file.stem if file.parent.name == "dataset" else "ml-100k"
    config = HNSConfig(model, dataset, [str(file)])
    assert config.notes == []
    for key, value in read_yaml(file).items():
        assert config[key] == value or key == "eval_args"


@pytest.mark.parametrize("sampler", all_methods())
def test_the_shipped_search_file_is_accepted_for_every_sampler(sampler):
    config = HNSConfig("MF", "ml-100k", config_dict={"sampler": sampler})
    space = paper_space(config)
    own = read_yaml(PROPERTIES / "search" / "paper.yaml").get(sampler, {})
    assert set(own) <= set(space)
    assert {"weight_decay", "learning_rate"} <= set(space)
    make_plan("MF", "ml-100k", {"sampler": sampler}, "paper")  # refuses a value that is none


@pytest.mark.parametrize("form", ["1e-4", "1.0e-04", "0.0001", ".0001", "1E-4"])
def test_a_number_in_a_search_file_may_be_written_as_anywhere(form):
    """Before, `loguniform: [1e-4, 1e-2]` was refused."""
    Path("s.yaml").write_text(f"learning_rate: {{loguniform: [{form}, 1e-2]}}\n")
    plan = make_plan("MF", "ml-100k", {"sampler": "dns"}, "s.yaml")
    assert plan.domains["learning_rate"].values == (0.0001, 0.01)


# ----------------------------------------------------------------------------------- forms of values

HOME = str(Path.home())
FORMS = [  # key, what it comes to, and how it may be written
    ("learning_rate", 0.001, ["1e-3", "1E-3", "0.001", ".001", "1.0e-03", "+1e-3"]),
    ("weight_decay", 0.0, ["0", "0.0", "0e0", "-0.0"]),
    ("seed", 7, ["7", "+7", "0x7", "0o7", "007"]),
    ("refit", True, ["True", "true", "TRUE"]),
    ("use_gpu", False, ["False", "false", "FALSE"]),
    ("topk", [10, 20], ["[10,20]", "[10, 20]", "10,20", "10, 20"]),
    ("topk", [10], ["10", "[10]"]),
    (
        "metrics",
        ["NDCG", "Recall"],
        ["[NDCG,Recall]", "['NDCG', 'Recall']", "NDCG,Recall", '["NDCG","Recall"]'],
    ),
    ("metrics", ["NDCG"], ["NDCG", "[NDCG]", "'NDCG'"]),
    ("lr_step_size", None, ["None", "null", "~", "Null", "NULL"]),
    ("result_dir", None, ["~", "None", "null"]),
    ("result_dir", f"{HOME}/x", ["~/x", f"{HOME}/x", "'~/x'"]),
    ("checkpoint_dir", f"{HOME}/saved", ["~/saved"]),
    ("data_path", f"{HOME}/data/yelp", ["~/data", "~/data/"]),
    ("user_inter_num_interval", "[5,inf)", ["'[5,inf)'", '"[5,inf)"']),
    ("user_inter_num_interval", "[5,20]", ["[5,20]", "[5, 20]", "'[5,20]'"]),
    ("val_interval", {"rating": "[3,inf)"}, ["{'rating': '[3,inf)'}", '{rating: "[3,inf)"}']),
    ("load_col", None, ["~", "None"]),
    (
        "load_col",
        {"inter": ["user_id", "item_id"]},
        ["{'inter': ['user_id', 'item_id']}", "{inter: [user_id, item_id]}"],
    ),
    ("clip_grad_norm", {"max_norm": 5}, ["{'max_norm': 5}", "{max_norm: 5}"]),
    (
        "benchmark_filename",
        ["train", "valid", "test"],
        ["['train','valid','test']", "[train, valid, test]"],
    ),
    ("learner", "Adam", ["Adam"]),
    ("encoding", "utf-8", ["utf-8", "'utf-8'"]),
    ("field_separator", "\t", ['"\\t"', "\\t", "'\\t'"]),
    ("gpu_id", "0", ["0", "'0'"]),
    ("gpu_id", "0,1", ["0,1", "'0,1'"]),
    ("wandb_project", "no", ["no"]),  # YAML 1.1 reads it as false
    ("wandb_project", "on", ["on", "'on'"]),
    ("wandb_project", "1_000", ["1_000"]),
    ("N", 50, ["50", "0x32"]),
    ("rho", 1.0, ["1", "1.0", "1e0"]),
    ("pool", "popularity", ["popularity", "'popularity'"]),
]


@pytest.mark.parametrize(
    ("key", "value", "forms"), FORMS, ids=[f"{key}-{i}" for i, (key, *_) in enumerate(FORMS)]
)
def test_a_value_means_the_same_on_the_command_line_in_a_file_and_in_python(key, value, forms):
    """Before, each had a dialect of its own."""
    for form in forms:
        Path("own.yaml").write_text(f"{key}: {form}\n")
        data, more = "yelp" if key == "data_path" else "ml-100k", {"valid_metric": "NDCG@10"}
        found = [
            HNSConfig("MF", data, ["own.yaml"], more),
            HNSConfig("MF", data, None, more, [f"--{key}={form}"]),
            HNSConfig("MF", data, None, {**more, key: form}),
        ]
        for config in found:
            assert config[key] == value, form
            assert isinstance(config[key], bool) == isinstance(value, bool)  # True is 1 in Python


@pytest.mark.parametrize("model", ["MF", "LightGCN", "NGCF", "SASRec", "SGL", "KGAT"])
def test_every_setting_may_be_said_again_as_it_is_by_default(model):
    """As Python writes it, and as YAML does; nothing is refused, and nothing changes."""
    config = HNSConfig(model, "ml-100k")
    known = config.known.values
    said = {
        key: value for key, value in known.items() if key not in ("MODEL_TYPE", "train_neg_sample_args")
    }
    if said["lr_step_size"] is None:
        del said["lr_gamma"]  # alone it does nothing, which is told
    as_python = [f"--{key}={value!r}" for key, value in said.items()]
    Path("all.yaml").write_text(to_yaml(said))
    for again in (
        HNSConfig(model, "ml-100k", None, None, as_python),
        HNSConfig(model, "ml-100k", ["all.yaml"]),
        HNSConfig(model, "ml-100k", None, said),
    ):
        differ = {k for k, v in config.final_config_dict.items() if again.final_config_dict[k] != v}
        assert differ == set()
        assert again.method == config.method


@pytest.mark.parametrize("sampler", all_methods())
def test_every_setting_of_every_sampler_may_be_given(sampler):
    one = all_methods()[sampler]
    given = [f"--{key}={value}" for key, value in one.defaults({}).items()]
    assert HNSConfig("MF", "ml-100k", None, None, [f"--sampler={sampler}", *given]).method == one.method
