"""Generated command lines, and what became of them.

Settings are read from where they are defined, so a new one is fuzzed without a change here. Everything
derives from one ``random.Random``: a seed and a number name a line for ever.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recbole.utils import argument_list

from recbole_hns.bridge.config import RECBOLE_PROPERTIES
from recbole_hns.bridge.metrics import DEFAULTS as METRIC_DEFAULTS
from recbole_hns.bridge.properties import overall
from recbole_hns.cli.main import COMMANDS, main
from recbole_hns.sampling.methods import all_methods
from recbole_hns.settings.dialect import read_yaml
from recbole_hns.settings.parts import settings_of
from recbole_hns.settings.registry import table

TIME_LIMIT = 30  # seconds
TRAINED = "trained/model.pth"  # a checkpoint, where train_one has been called

MODELS = sorted(file.stem for file in (RECBOLE_PROPERTIES / "model").glob("*.yaml"))
FAVOURITES = ("BPR", "MF", "LightGCN", "NGCF", "SGL", "DGCF", "SASRec", "GRU4Rec", "CKE", "KGAT")
# None of these may be drawn freely: a valid value of the first two may train for hours, and one of the
# third reaches for the network.
EPOCHS = ("1", "2", "0", "-1", "1.5", "ten", "None", "nan", "[1]")
TIED = {"epochs": EPOCHS, "pretrain_epochs": EPOCHS, "log_wandb": ("1", "None")}

WRONG = (
    *("", " ", "None", "null", "nan", "inf", "-inf", "-1", "0", "-0.0", "1", "2.5", "1e400", "1e-320"),
    *("1000000000", "99999999999999999999", "-99999999999999999999", "1" * 5000, "0x" + "f" * 4500),
    *("True", "no", "ten", "é", "名前", "\u202eabc", "a\nb", "tab\there", "\udcff", "𝟙", "%s%n", "{0}"),
    *("[]", "[1, 'a']", "[None]", "[[1]]", "[-1]", "['']", "()", "(1,)", "{}", "{'a': 1}", "{'a': []}"),
    *("{1: 2}", "[" * 300, "'", "lambda: 1", "__import__('os')", "1;2", "[5,1]", "(0,1", "b'x'", "1j"),
    *("../..", "/dev/null", "/proc/nope/x", "~", "x" * 300, "user_id", "item_id", "rating"),
)


# Values that are right in themselves and go together with others well or badly.
ODD = {
    "learner": ("adam", "adamw", "sgd", "adagrad", "rmsprop", "sparse_adam", "Adam"),
    "metrics": (
        *(
            "['Recall']",
            "MRR",
            "['AUC']",
            "['OPAUC', 'NDCG']",
            "['NDCG', 'MRR', 'ItemCoverage']",
            "GAUC",
        ),
        *("['MRR', 'TailPercentage']", "['MRR', 'ShannonEntropy', 'GiniIndex']", "['RMSE', 'MAE']"),
        *("['MRR', 'AveragePopularity']", "['MRR', 'GAUC']", "['MRR', 'AUC']", "['MRR', 'NOPAUC']"),
    ),
    "valid_metric": ("NDCG@5", "MRR", "mrr@5", "MRR@10", "AUC", "OPAUC@0.1", "ItemCoverage@5", "GAUC"),
    "topk": ("1", "[1, 5]", "[5, 15]", "[5, 16]", "[5, 500]", "[5, 5]"),
    "eval_args": (
        *("{'split': {'RS': [8, 1, 1]}}", "{'split': {'LS': 'valid_and_test'}, 'order': 'TO'}"),
        *("{'split': {'LS': 'test_only'}}", "{'split': {'LS': 'valid_only'}}", "{'order': 'TO'}"),
        *("{'split': {'RS': [1, 0, 0]}}", "{'split': {'TS': [0.8, 0.1, 0.1]}}", "{'mode': 'uni5'}"),
        *("{'mode': 'pop5'}", "{'mode': 'labeled'}", "{'mode': {'valid': 'uni5', 'test': 'full'}}"),
        *(
            "{'group_by': 'none'}",
            "{'group_by': None, 'mode': 'uni100'}",
            "{'split': {'RS': [0, 1, 1]}}",
        ),
        *("{'order': 'XO'}", "{'mode': 'uni'}", "{'split': {'LS': 'all'}}", "{'splits': {}}"),
    ),
    "transform": ("mask_itemseq", "inverse_itemseq", "crop_itemseq", "reorder_itemseq", "user_defined"),
    "val_interval": ("{'rating': '[3,inf)'}", "{'rating': '[9,inf)'}", "{'user_id': ['u1', 'u2']}"),
    "load_col": ("{'inter': '*'}", "{'inter': ['user_id', 'item_id']}", "{'inter': ['user_id']}", "{}"),
    "unload_col": ("{'inter': ['rating']}", "{'inter': ['user_id']}"),
    "unused_col": ("{'inter': ['rating', 'timestamp']}", "{'inter': ['item_id']}", "{'user': ['x']}"),
    "user_inter_num_interval": ("[2,inf)", "[90,inf)", "(1,9]", "[7,6]"),
    "item_inter_num_interval": ("[2,inf)", "[9,inf)", "[1,3];[5,9]"),
    "clip_grad_norm": ("{'max_norm': 5}", "{'max_norm': 5, 'norm_type': 1}", "{'norm': 5}"),
    "threshold": ("{'rating': 3}", "{'rating': 9}", "{'stars': 3}", "{'rating': 3, 'timestamp': 1}"),
    "benchmark_filename": ("['train', 'valid', 'test']", "['train', 'test']"),
    "numerical_features": ("['rating']", "['year']", "['user_id']"),
    "discretization": ("{'rating': {'method': 'LD'}}", "{'rating': {'method': 'ED', 'bucket': 3}}"),
    "normalize_field": ("['rating']", "['user_id']"),
    "normalize_all": ("True",),
    "rm_dup_inter": ("first", "last"),
    "alias_of_user_id": ("['item_id']", "['rating']"),
    "additional_feat_suffix": ("kg", "['link']", "['none']"),
    "preload_weight": ("{'item_id': 'year'}", "{'item_id': 'class'}"),
    "seq_len": ("{'class': 1}", "{'rating': 1}"),
    "field_separator": (",", " "),
    "encoding": ("utf-8", "latin-1", "utf-16"),
    "gpu_id": ("", "0,1", "(0, 1)"),
    "loss_type": ("BPR", "CE", "BCE"),
    "pair_loss": tuple(table("loss")),
    "margin": ("0.5", "1e300"),
    "temperature": ("0.1", "1e-300"),
    "state": ("DEBUG", "error"),
    "enable_amp": ("True",),
    "repeatable": ("True", "False"),
    "save_dataset": ("True",),
    "save_dataloaders": ("True",),
    "learning_rate": ("1000", "1e-300"),
    "weight_decay": ("1000", "0"),
    "tau": ("1e-300", "1e300"),
    "rho": ("1e-300", "1e300"),
    "pool_alpha": ("0", "100", "1e300"),
    "kernel_alpha": ("0", "1e300"),
    "lam": ("1e-300", "1e300"),
    "opauc_beta": ("0.1", "[1, 0.5]", "[0]"),
    "opauc_k": ("3", "[1, 99]"),
}


# Values that are right with every model of these and with every sampler, each in several forms.
DOT_PRODUCT = ("BPR", "MF", "LightGCN", "SASRec", "GRU4Rec")
RIGHT = {
    "learning_rate": ("1e-3", "1E-2", "0.003", ".01"),
    "seed": ("1", "0x7", "4294967295"),
    "split_seed": ("3", "None", "null"),
    "eval_step": ("0", "1", "2"),
    "stopping_step": ("1", "10"),
    "train_batch_size": ("8", "64"),
    "eval_batch_size": ("100", "4096"),
    "learner": ("adam", "Adam", "sgd", "adagrad"),
    "hns_backend": ("auto", "numba", "torch"),
    "lr_step_size": ("~", "1", "None"),
    "clip_grad_norm": ("{'max_norm': 5}", "{max_norm: 2}", "null"),
    "metrics": ("[MRR, NDCG]", "['MRR']", "MRR", "MRR,Recall"),
    "topk": ("[5]", "5"),
    "metric_decimal_place": ("3", "8"),
    "shuffle": ("True", "false", "TRUE"),
    "reproducibility": ("true", "False"),
    "use_gpu": ("False", "false"),
    "gpu_id": ("0", "'0'", "0,1"),
    "worker": ("0",),
    "state": ("ERROR", "info", "~"),
    "result_dir": ("~", "results", "out/results"),
    "checkpoint_dir": ("saved", "./kept"),
    "user_inter_num_interval": ("'[2,inf)'", "[1,90]"),
    "wandb_project": ("no", "1_000", "on"),
    "save_dataset": ("False",),
    "refit": ("true", "False"),
    "loss_decimal_place": ("2",),
    "encoding": ("utf-8", "~"),
}


def settings_of_recbole() -> dict[str, Any]:
    """Every setting of RecBole that is not a model's own, with its default."""
    files = (RECBOLE_PROPERTIES / "overall.yaml", RECBOLE_PROPERTIES / "dataset/sample.yaml")
    named = [name for name in vars(argument_list) if name.endswith("_arguments")]
    values = {key: None for name in named for key in getattr(argument_list, name)}
    for file in files:
        values.update(read_yaml(file))
    return values


def settings_of_ours() -> dict[str, Any]:
    """The plugin's own, whichever sampler they are for."""
    values = {**overall(), **METRIC_DEFAULTS}
    parts = [part for kind in ("rule", "pool", "loss") for part in table(kind).values()]
    values.update({one.key: one.default for part in parts for one in settings_of(part)})
    for one in all_methods().values():
        values.update(one.defaults({}))
    return values


def settings_of_model(model: str) -> dict[str, Any]:
    """A model's own, with RecBole's defaults."""
    file = RECBOLE_PROPERTIES / "model" / f"{model}.yaml"
    return read_yaml(file) if file.is_file() else {}


def write_data(folder: Path) -> None:
    """A tiny data set with ratings, times, features and a knowledge graph, and a few broken ones."""
    rng = random.Random(0)
    lines = ["user_id:token\titem_id:token\trating:float\ttimestamp:float"]
    for user in range(12):
        for time_stamp, item in enumerate(rng.sample(range(15), 6)):
            lines.append(f"u{user}\ti{item}\t{rng.randint(1, 5)}\t{time_stamp}")
    items = ["item_id:token\tclass:token_seq\tyear:float"]
    items += [f"i{item}\tc{item % 3} c{item % 2}\t{1990 + item}" for item in range(15)]
    kg = ["head_id:token\trelation_id:token\ttail_id:token"]
    kg += [f"e{item}\tr{item % 2}\te{15 + item % 4}" for item in range(15)]
    link = ["item_id:token\tentity_id:token", *(f"i{item}\te{item}" for item in range(15))]
    parts = {"inter": lines, "item": items, "kg": kg, "link": link}
    for suffix, content in parts.items():
        _write(folder / "tiny" / f"tiny.{suffix}", "\n".join(content) + "\n")
    columns = "inter: [user_id, item_id, rating, timestamp], kg: [head_id, relation_id, tail_id]"
    columns += ", link: [item_id, entity_id], item: [item_id, class]"
    _write(folder / "tiny" / "tiny.yaml", f"load_col: {{{columns}}}\nMAX_ITEM_LIST_LENGTH: 5\n")
    _write(folder / "empty" / "empty.inter", "")
    _write(folder / "header" / "header.inter", lines[0] + "\n")
    _write(folder / "untyped" / "untyped.inter", "user_id\titem_id\nu1\ti1\n")
    _write(folder / "binary" / "binary.inter", b"\xff\xfe\x00\x01" * 50)
    _write(folder / "ragged" / "ragged.inter", lines[0] + "\nu1\ti1\nu2\ti2\t3\t4\t5\t6\n")
    _write(folder / "odd" / "odd.yaml", "N: [1\n")
    _write(folder / "odd" / "odd.inter", "\n".join(lines) + "\n")
    _write(folder / "raw" / "pairs.csv", "user_id,item_id\nu1,i1\nu1,i2\nu2,i1\n")
    _write(folder / "raw" / "broken.mat", b"not a matrix")


def _write(file: Path, content: str | bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())


def train_one(folder: Path, data: Path) -> None:
    """Train a model, for the commands that take a checkpoint."""
    line = [f"--data_path={data}", "--model=BPR", "--dataset=tiny", "--epochs=1", "--N=5"]
    done = run_here([*line, "--topk=5", "--valid_metric=MRR@5"], folder, data)
    assert done.code == 0, done
    target = data / TRAINED
    target.parent.mkdir()
    for file in (folder / "saved").iterdir():
        shutil.copy(file, target.with_name("model" + file.name[file.name.index(".") :]))


# ----------------------------------------------------------------------------------- lines


class Lines:
    """Draws command lines; ``data`` is the folder that :func:`write_data` filled."""

    def __init__(self, seed: int, data: Path):
        self.rng, self.data, self.files = random.Random(seed), data, 0
        self.recbole, self.ours = settings_of_recbole(), settings_of_ours()
        self.of_samplers = {key for one in all_methods().values() for key in one.defaults({})}

    def draw(self) -> list[str]:
        """The next line; ``self.kind`` says of which kind it is."""
        kinds = {
            self.settings: 32,
            self.odd: 16,
            self.plausible: 12,
            self.right: 16,
            self.property_file: 8,
            self.launcher: 8,
            self.command: 8,
        }
        kind = self.rng.choices(list(kinds), list(kinds.values()))[0]
        self.kind = kind.__name__
        return kind()

    def base(self) -> dict[str, str]:
        """A line that trains."""
        rng = self.rng
        model = rng.choice(FAVOURITES if rng.random() < 0.75 else MODELS)
        line = {"model": model, "dataset": "tiny", "data_path": str(self.data), "epochs": "1"}
        line.update({"show_progress": "False", "topk": "[5]", "valid_metric": "MRR@5"})
        if rng.random() < 0.7:
            line["sampler"] = rng.choice(list(all_methods()))
        small = {"N": "5", "M": "2", "pool_size": "5", "proposals": "9"}
        line.update({key: small[key] for key in self._sampler_settings(line) if key in small})
        if "pretrain_epochs" in settings_of_model(model):
            line["pretrain_epochs"] = "1"
        if model == "DGCF":  # it compares half a batch of different users
            line["train_batch_size"] = "8"
        return line

    def settings(self) -> list[str]:
        """One to four settings of any kind, most of them wrong."""
        line = self.base()
        for _ in range(self.rng.choice((1, 1, 1, 2, 3, 4))):
            key, default = self._setting(line)
            line[key] = self._value(key, default, wrong=0.7)
        return self._spell(line)

    def odd(self) -> list[str]:
        """Right values that may contradict each other."""
        line = self.base()
        for key in self.rng.sample(sorted(ODD), self.rng.choice((1, 1, 2, 3))):
            if key not in self.of_samplers or key in self._sampler_settings(line):
                line[key] = self.rng.choice(ODD[key])
        return self._spell(line)

    def plausible(self) -> list[str]:
        """Settings of the chosen model and sampler, with values that look right."""
        line = self.base()
        own = {**settings_of_model(line["model"]), **self._sampler_settings(line)}
        own.pop("loss_type", None)  # RecBole's default knows no negatives
        for key in self.rng.sample(sorted(own), min(len(own), 3)):
            line[key] = self._value(key, own[key], wrong=0)
        return self._spell(line)

    def right(self) -> list[str]:
        """Nothing but right values, some on the line and some in a file: this must run."""
        rng, line = self.rng, self.base()
        line["model"] = rng.choice(DOT_PRODUCT)
        line.pop("pretrain_epochs", None)
        keys = rng.sample(sorted(RIGHT), rng.choice((1, 2, 3, 4)))
        values = {key: rng.choice(RIGHT[key]) for key in keys}
        if "metrics" in values or "topk" in values:
            values.update(metrics=rng.choice(RIGHT["metrics"]), topk="[5]")
        if rng.random() < 0.5:
            return self._spell({**line, **values})
        file = self._file("\n".join(f"{key}: {value}" for key, value in values.items()))
        return [*self._spell(line), f"--config_files={file}"]

    def property_file(self) -> list[str]:
        """Settings in files, some of which are none."""
        rng, line = self.rng, self.base()
        broken = (
            "a: [1",
            "- 1",
            "é",
            "\x00",
            "1",
            "? [1]\n: 2",
            "1: 2",
            "~: 3",
            "N: !!python/name:os.x",
        )
        broken += ("a: &a [*a]", "[" * 2000, "N: " + "1" * 5000, "model: [BPR]", "dataset: {}")
        broken += ("local_rank: 0", "nproc: 2", "device: cpu", "MODEL_TYPE: 3", "eval_type: 1")
        names = []
        for _ in range(rng.randint(1, 2)):
            if rng.random() < 0.4:
                content = rng.choice(broken)
            else:
                drawn = [self._setting(line) for _ in range(3)]
                content = "\n".join(f"{key}: {self._value(key, value, 0.5)}" for key, value in drawn)
            names.append(self._file(content))
        names += [str(self.data / "nowhere.yaml")] if rng.random() < 0.1 else []
        names += [str(self.data)] if rng.random() < 0.1 else []
        return [*self._spell(line), f"--config_files={' '.join(names)}"]

    def launcher(self) -> list[str]:
        """Options of the launcher, misspelt ones, and arguments that are none."""
        rng, line = self.rng, self.base()
        options = ("--nproc", "--world_size", "--ip", "--port", "--group_offset", "--config_files")
        options += (
            "--resume",
            "--trust_checkpoint",
            "--local_rank",
            "--offset",
            "--rank",
            "--model",
            "--dataset",
            "--help-me",
            "-h",
        )
        values = ("0", "-1", "2", "two", "", "1", "99999999", "é", "\udcff", "a b", "/dev/null", "None")
        extra = []
        for _ in range(rng.randint(1, 2)):
            option, value = rng.choice(options), rng.choice(values)
            forms = ([f"{option}={value}"], [option], [option, value], [value], [f"-{option}={value}"])
            extra += rng.choice(forms)
        extra += rng.choice(([], ["--"], ["--N=5", "--N=6"], ["--=1"], ["---N=1"], ["--N==1"], ["-N=1"]))
        for key in ("model", "dataset"):
            fate = rng.random()
            if fate < 0.1:
                del line[key]
            elif fate < 0.2:
                names = (
                    "nowhere",
                    "",
                    "../tiny",
                    "empty",
                    "header",
                    "untyped",
                    "binary",
                    "ragged",
                    "odd",
                )
                line[key] = rng.choice((*names, "bpr", "BPR ", "LightGNC", "None", "é", "a/b", "\n"))
        return [*self._spell(line), *extra]

    def command(self) -> list[str]:
        """The other commands, each with at least one mistake or with little to do."""
        rng, raw, trained = self.rng, self.data / "raw", str(self.data / TRAINED)
        value = rng.choice(WRONG)
        number = rng.choice(("0", "-1", "x", "1e3", "99999999999999", "", "2.5", "nan"))
        tune = ["tune", "--model=MF", "--dataset=tiny", f"--data_path={self.data}"]
        lines = (
            ["samplers", value],
            ["samplers"],
            ["convert"],
            ["convert", str(raw / "broken.mat"), "--name=x"],
            ["convert", str(raw / "nowhere.csv"), "--name=x"],
            ["convert", str(raw), "--name=x"],
            ["convert", str(raw / "pairs.csv"), f"--name={value}"],
            ["convert", str(raw / "pairs.csv"), "--name=x", f"--core={number}"],
            ["convert", str(raw / "pairs.csv"), "--name=x", f"--user={value}"],
            ["convert", str(raw / "pairs.csv"), "--name=x", f"--seed={number}"],
            ["convert", str(raw / "pairs.csv"), "--name=x", "--rating=stars", f"--threshold={number}"],
            ["convert", str(raw / "pairs.csv"), "--name=x", "--output=/dev/null/x"],
            ["simulate", *(() if rng.random() < 0.5 else (value,))],
            ["simulate", "correlation", "--permutations=5", f"--n_pos={number}"],
            ["simulate", "correlation", "--permutations=5", f"--n_neg={number}"],
            ["simulate", "correlation", f"--permutations={number}", "--topk=1000"],
            ["simulate", "correlation", "--permutations=5", f"--topk={value}"],
            ["simulate", "correlation", "--permutations=5", f"--n_betas={number}"],
            ["simulate", "correlation", "--permutations=5", f"--seed={number}"],
            ["simulate", "correlation", "--permutations=5", "--output=/dev/null/x"],
            ["simulate", "sampling", f"--draws={number}"],
            ["simulate", "sampling", "--draws=9", f"--M={value}"],
            ["simulate", "sampling", "--draws=9", f"--N={number}"],
            ["simulate", "sampling", "--draws=9", f"--rho={number}"],
            ["simulate", "sampling", f"--checkpoint={raw / 'broken.mat'}"],
            ["simulate", "sampling", f"--checkpoint={value}"],
            ["simulate", "sampling", "--user=u1"],
            [*tune, "--search=nowhere.yaml", f"--num_samples={number}"],
            [*tune, f"--search={self._file(f'M: {value}')}"],
            [*tune, f"--search={self._file('M: {grid: [0]}')}"],
            [*tune, f"--search={self._file('M: {uniform: [1, 2, 3]}')}"],
            [*tune, f"--search={self._file('seed: {grid: [1]}')}"],
            [*tune, "--N=0", f"--scheduler={value}"],
            [*tune, "--cpus=0"],
            [*tune, "--seeds=-1"],
            [*tune, "--num_samples=-1"],
            [*tune, "--storage=/dev/null/x"],
            [*tune, f"--resume={value or 'nowhere'}"],
            ["tune"],
            ["report"],
            ["report", value],
            ["report", str(self.data)],
            ["report", str(raw), f"--metrics={value}"],
            ["models"],
            ["models", value],
            ["evaluate", value],
            ["evaluate", trained, f"--topk={value}"],
            ["evaluate", trained, f"--metrics={value}"],
            ["evaluate", trained, f"--epochs={number}"],
            ["recommend", value, "--k=3"],
            ["recommend", trained, f"--k={number}"],
            ["recommend", trained, f"--users={value}"],
            ["recommend", trained, f"--output={value}"],
            [f"--resume={value or 'nowhere'}"],
            [f"--resume={trained}", f"--N={number}"],
            [f"--resume={trained}", "--model=LightGCN"],
            [f"--resume={raw / 'broken.mat'}"],
        )
        known = {line[0] for line in lines}
        others = [
            [name, *args] for name in COMMANDS if name not in known for args in ((value,), ("--x",))
        ]
        return list(rng.choice((*lines, *others)))

    # ------------------------------------------------------------------- parts

    def _setting(self, line: dict[str, str]) -> tuple[str, Any]:
        rng = self.rng
        groups = (
            self.recbole,
            settings_of_model(line["model"]) or self.recbole,
            self._sampler_settings(line) or self.ours,
            self.ours,
            settings_of_model(rng.choice(MODELS)) or self.recbole,
        )
        group = rng.choices(groups, (45, 20, 17, 10, 3))[0]
        if rng.random() < 0.03:
            return rng.choice(("smapler", "é", "", "device", "MODEL_TYPE", "N ", "eval_type", "0")), None
        key = rng.choice(sorted(group))
        return key, group[key]

    def _sampler_settings(self, line: dict[str, str]) -> dict[str, Any]:
        one = all_methods().get(line.get("sampler"), all_methods()["softmax_v"])
        return {key: self.ours[key] for key in one.defaults({})}

    def _value(self, key: str, default: Any, wrong: float) -> str:
        rng = self.rng
        if key in TIED:
            return rng.choice(TIED[key])
        if rng.random() < wrong:
            return rng.choice(WRONG)
        if isinstance(default, bool):
            return rng.choice(("True", "False"))
        if isinstance(default, int):
            return str(rng.choice((default, 1, 2, 4)))
        if isinstance(default, float):
            return str(rng.choice((default, 0.1, 0.5, 0.9)))
        if isinstance(default, list) and default:
            is_per_part = isinstance(default[0], float)
            return str(default if is_per_part else rng.choice((default, default[:1], default * 2)))
        return str(default)

    def _file(self, content: str) -> str:
        self.files += 1
        file = self.data / "files" / f"{self.files}.yaml"
        _write(file, content.encode("utf-8", "surrogatepass"))
        return str(file)

    def _spell(self, line: dict[str, str]) -> list[str]:
        arguments = [f"--{key}={value}" for key, value in line.items()]
        self.rng.shuffle(arguments)
        return arguments


# ----------------------------------------------------------------------------------- outcomes


@dataclass
class Outcome:
    """What became of a line."""

    line: list[str]
    code: int | None  # None where an exception came out
    seconds: float
    error: str  # stderr, or the traceback
    written: list[str]
    limit: float = TIME_LIMIT
    kind: str = ""  # of line

    @property
    def fault(self) -> str | None:
        """What is wrong with it, if anything is."""
        if self.code is None:
            return "traceback"
        if self.seconds > self.limit:
            return f"took {self.seconds:.0f} s"
        if self.code == 0:
            return "traceback in the log" if "Traceback" in self.error else None
        if self.code != 2:
            return f"exit code {self.code}"
        if self.kind == "right":
            return "a right line is refused"
        if self.error.count("\n") != 1 or not self.error.startswith("recbole-hns: error: "):
            return "not one line"
        if self.written and "the model has diverged" not in self.error:  # that shows while it runs
            return "refused, and wrote"
        return None

    def __str__(self) -> str:
        return f"{self.fault}: {self.line}\n{self.written}\n{self.error}"


def run_here(line: list[str], folder: Path, data: Path, kind: str = "") -> Outcome:
    """Run a line through the command's entry point, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    before, old, root = _listing(folder, data), os.getcwd(), logging.getLogger()
    handlers, level, root.handlers = root.handlers, root.level, []
    environment = dict(os.environ)
    out, err = io.StringIO(), io.StringIO()
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(2 * TIME_LIMIT)
    os.chdir(folder)
    start = time.perf_counter()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(line)
    except SystemExit as stop:  # --help
        code = stop.code
    except BaseException:
        code = None
        err.write(traceback.format_exc())
    finally:
        signal.alarm(0)
        os.chdir(old)
        for handler in root.handlers:
            handler.close()
        root.handlers, root.level = handlers, level
        os.environ.clear()
        os.environ.update(environment)
    seconds = time.perf_counter() - start
    written = sorted(_listing(folder, data) - before)
    return Outcome(line, code, seconds, err.getvalue(), written, kind=kind)


def run_process(line: list[str], folder: Path, data: Path, kind: str = "") -> Outcome:
    """Run a line as a process of its own, in an empty folder.

    It has time to start Python and load torch besides, which a busy machine takes half a minute for.
    """
    folder.mkdir(parents=True)
    before, start = _listing(folder, data), time.perf_counter()
    command = [sys.executable, "-m", "recbole_hns", *line]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=6 * TIME_LIMIT)
    seconds, error = time.perf_counter() - start, done.stderr.decode(errors="replace")
    written = sorted(_listing(folder, data) - before)
    return Outcome(line, done.returncode, seconds, error, written, 4 * TIME_LIMIT, kind)


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"no end after {2 * TIME_LIMIT} s")


def _listing(*folders: Path) -> set[str]:
    return {f"{file}:{file.stat().st_size}" for folder in folders for file in folder.rglob("*")}


def tally(outcomes: Iterable[Outcome]) -> Counter:
    """How many lines ran, were refused, or went wrong."""
    return Counter(one.fault or ("ran" if one.code == 0 else "refused") for one in outcomes)
