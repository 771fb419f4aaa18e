"""Files that try to run code, at every place where a command looks for a file.

Each writes the file ``MARK`` into the working folder if it runs. A variant is a way to hide the code, a
kind of file it is hidden in, a place where that file lies, and the command that comes across it.
"""

from __future__ import annotations

import builtins
import io
import os
import pathlib
import pickle
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse
import torch

MARK = "it-ran"
TRAIN = ["--model=MF", "--dataset=tiny", "--epochs=1", "--N=5", "--embedding_size=8", "--topk=5"]
TRAIN += ["--valid_metric=MRR@5", "--data_path=data", "--show_progress=False", "--result_dir=~"]
EVALUATE = ["evaluate", "model.pth", "--data_path=data"]
RECOMMEND = ["recommend", "model.pth", "--data_path=data", "--users=u1"]
TUNE = ["tune", *TRAIN[:-1], "--sampler=dns", "--num_samples=1", "--seeds=0"]


@dataclass(frozen=True)
class Variant:
    """What is put into the working folder, and the command line that is then given."""

    name: str
    put: Callable[[], None]
    line: list[str]
    slow: bool = False  # needs Ray


# ----------------------------------------------------------------------------------- the code


class Calls:
    """Calls something when it is unpickled."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def mark_exec() -> Calls:
    return Calls(builtins.exec, f"open({MARK!r}, 'w').close()")


def mark_open() -> Calls:
    return Calls(open, MARK, "w")


def mark_mkdir() -> Calls:
    return Calls(os.mkdir, MARK)


def mark_touch() -> Calls:
    return Calls(pathlib.Path.touch, pathlib.Path(MARK))


def mark_shell() -> Calls:
    return Calls(os.system, f"touch {MARK}")


WAYS = {
    "exec": mark_exec,
    "open": mark_open,
    "mkdir": mark_mkdir,
    "touch": mark_touch,
    "shell": mark_shell,
}


# ----------------------------------------------------------------------------------- the kinds of file


def bare(content: object, protocol: int = 2) -> bytes:
    return pickle.dumps(content, protocol)


def archive(content: object) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream)
    return stream.getvalue()


def legacy(content: object) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream, _use_new_zipfile_serialization=False)
    return stream.getvalue()


def as_recboles(content: object) -> bytes:
    return archive({"config": content, "epoch": 0, "state_dict": {}, "optimizer": {}, "cur_step": 0})


def renamed(content: object) -> bytes:
    """A checkpoint whose archive has its pickle under another name, as old readers would look for."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as target:
        target.writestr("data.pkl", bare(content))
        target.writestr("archive/data.pkl", bare(content))
        target.writestr("archive/version", "3\n")
    return stream.getvalue()


KINDS: dict[str, Callable[[object], bytes]] = {
    "pickle 0": lambda content: bare(content, 0),
    "pickle 5": lambda content: bare(content, 5),
    "archive": archive,
    "legacy": legacy,
    "RecBole's": as_recboles,
    "renamed": renamed,
}


def put(file: str | Path, content: bytes | str) -> None:
    file = Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)


def with_settings(source: str, target: str, **settings: object) -> None:
    """A checkpoint that is right but for settings that somebody put into it."""
    content = torch.load(source, weights_only=True)
    for key in ("settings", "final"):
        content[key] = {**content[key], **settings}
    torch.save(content, target)


def inside(source: str, target: str, key: str, code: object) -> None:
    """A checkpoint that is right but for one part, which is code."""
    torch.save({**torch.load(source, weights_only=True), key: code}, target)


# ----------------------------------------------------------------------------------- the corpus


def variants() -> list[Variant]:
    """All of them, in an order that mixes the kinds."""
    groups = [
        list(group()) for group in (checkpoints, parts_of, caches, named, tags, told, raw, records)
    ]
    longest = max(map(len, groups))
    mixed = [group[n] for n in range(longest) for group in groups if n < len(group)]
    return [*mixed, *searches()]


def checkpoints() -> Iterator[Variant]:
    lines = {
        "evaluate": ["evaluate", "bad.pth"],
        "recommend": ["recommend", "bad.pth"],
        "resume": ["--resume=bad.pth"],
        "simulate": ["simulate", "sampling", "--checkpoint=bad.pth"],
    }
    for number, (kind, make) in enumerate(KINDS.items()):
        for shift, (command, line) in enumerate(lines.items()):
            way = list(WAYS)[(number + shift) % len(WAYS)]

            def place(make=make, way=way) -> None:
                put("bad.pth", make(WAYS[way]()))

            yield Variant(f"{kind} by {way} for {command}", place, line)
    for kind in ("pickle 0", "archive", "legacy"):

        def last(make=KINDS[kind]) -> None:
            shutil.copy("model.pth", "saved.pth")
            put("saved.last.pth", make(mark_exec()))

        def previous(make=KINDS[kind]) -> None:
            put("saved.pth", b"PK\x03\x04 cut off")
            put("saved.pth.previous", make(mark_exec()))

        def folder(make=KINDS[kind]) -> None:
            put("runs/x.last.pth", make(mark_exec()))
            put("runs/x.pth", make(mark_exec()))

        yield Variant(f"{kind} as the last state", last, ["--resume=saved.pth"])
        yield Variant(f"{kind} as the one before", previous, ["evaluate", "saved.pth"])
        yield Variant(f"{kind} in a folder to evaluate", folder, ["evaluate", "runs"])
        yield Variant(f"{kind} in a folder to resume", folder, ["--resume=runs"])


def parts_of() -> Iterator[Variant]:
    for key in ("settings", "final", "state_dict", "other_parameter", "data", "anything", "moment"):

        def place(key=key) -> None:
            inside("model.pth", "bad.pth", key, mark_exec())

        yield Variant(f"{key} of a checkpoint", place, ["evaluate", "bad.pth", "--data_path=data"])
    for key in ("optimizer", "moment", "history", "best_valid_result", "versions"):

        def run(key=key) -> None:
            inside("model.last.pth", "bad.last.pth", key, {"x": mark_open()})
            shutil.copy("model.pth", "bad.pth")

        yield Variant(f"{key} of a last state", run, ["--resume=bad.last.pth"])


CACHES = (
    "saved/tiny-Dataset.pth",
    "saved/tiny-for-BPR-dataloader.pth",
    "saved/tiny-SequentialDataset.pth",
)
CACHES += ("data/tiny/tiny-Dataset.pth", "tiny-Dataset.pth")


def caches() -> Iterator[Variant]:
    """RecBole's caches, where RecBole reads them without being asked."""
    commands = {"train": TRAIN, "evaluate": EVALUATE, "recommend": RECOMMEND}
    for number, file in enumerate(CACHES):
        for command, line in commands.items():

            def place(file=file, number=number) -> None:
                put(file, bare(list(WAYS.values())[number]()))

            yield Variant(f"{file} while {command}", place, line)


def named() -> Iterator[Variant]:
    """Pickles that a file names."""
    keys = ("dataset_save_path", "dataloaders_save_path")
    trusted = "trust_checkpoint: true\n"
    for key in keys:

        def typed(key=key) -> None:
            put("bad.pth", bare(mark_exec()))

        def own(key=key) -> None:
            typed()
            put("own.yaml", f"{key}: bad.pth\n")

        def beside(key=key) -> None:
            typed()
            put("data/tiny/tiny.yaml", f"{key}: bad.pth\n")

        def beside_trusted(key=key) -> None:
            typed()
            put("data/tiny/tiny.yaml", f"{key}: bad.pth\n{trusted}")

        def own_trusted(key=key) -> None:
            typed()
            put("own.yaml", f"{key}: bad.pth\n{trusted}")

        def checkpoint(key=key) -> None:
            typed()
            with_settings("model.pth", "named.pth", **{key: "bad.pth", "trust_checkpoint": True})
            with_settings(
                "model.last.pth", "named.last.pth", **{key: "bad.pth", "trust_checkpoint": True}
            )

        files = [*TRAIN, "--config_files=own.yaml"]
        yield Variant(f"{key} typed", typed, [*TRAIN, f"--{key}=bad.pth"])
        yield Variant(f"{key} in a property file", own, files)
        yield Variant(f"{key} beside the data", beside, TRAIN)
        yield Variant(f"{key} beside the data, evaluate", beside, EVALUATE)
        yield Variant(f"{key} beside the data with trust", beside_trusted, TRAIN)
        yield Variant(f"{key} beside the data with trust, recommend", beside_trusted, RECOMMEND)
        yield Variant(f"{key} in a property file with trust", own_trusted, files)
        for command in ("evaluate", "recommend"):
            line = [command, "named.pth", "--data_path=data"]
            yield Variant(f"{key} in a checkpoint, {command}", checkpoint, line)
        yield Variant(f"{key} in a checkpoint, resume", checkpoint, ["--resume=named.last.pth"])
    for key, model in (("pre_model_path", "ConvNCF"), ("pretrain_path", "NAIS")):

        def pretrained() -> None:
            put("bad.pth", archive({"state_dict": mark_exec()}))

        line = [*TRAIN, f"--{key}=bad.pth"]
        yield Variant(f"{key} of {model}", pretrained, [line[1], f"--model={model}", *line[2:]])


TAGS = (
    f"!!python/object/apply:os.mkdir [{MARK}]",
    f"!!python/object/new:os.mkdir [{MARK}]",
    f"!!python/object/apply:builtins.exec [\"open('{MARK}', 'w')\"]",
    f"!!python/object/apply:subprocess.call [[touch, {MARK}]]",
    f"!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path [{MARK}]]",
    f"!!python/object/new:tuple [!!python/object/new:map [!!python/name:os.mkdir , [{MARK}]]]",
    f"!<tag:yaml.org,2002:python/object/apply:os.mkdir> [{MARK}]",
)


def tags() -> Iterator[Variant]:
    for number, tag in enumerate(TAGS):

        def own(tag=tag) -> None:
            put("own.yaml", f"N: {tag}\n")

        def beside(tag=tag) -> None:
            put("data/tiny/tiny.yaml", f"seed: {tag}\n")

        yield Variant(f"tag {number} in a property file", own, [*TRAIN, "--config_files=own.yaml"])
        yield Variant(f"tag {number} beside the data", beside, TRAIN if number % 2 else EVALUATE)
        yield Variant(f"tag {number} typed", lambda: None, [*TRAIN, f"--seed={tag}"])
        yield Variant(f"tag {number} in a search file", own, [*TUNE, "--search=own.yaml"])


CODE = f"__import__('os').mkdir('{MARK}')"


def told() -> Iterator[Variant]:
    """Values that RecBole would evaluate as Python."""
    for key in ("metrics", "topk", "eval_args", "load_col", "val_interval", "learning_rate"):

        def beside(key=key) -> None:
            put("data/tiny/tiny.yaml", f'{key}: "{CODE}"\n')

        def checkpoint(key=key) -> None:
            with_settings("model.pth", "bad.pth", **{key: CODE})

        yield Variant(f"{key} typed as code", lambda: None, [*TRAIN, f"--{key}={CODE}"])
        yield Variant(f"{key} beside the data as code", beside, TRAIN)
        yield Variant(f"{key} of a checkpoint as code", checkpoint, ["evaluate", "bad.pth"])


def _objects(way: str) -> np.ndarray:
    return np.array([WAYS[way]()], dtype=object)


def raw() -> Iterator[Variant]:
    """Raw data for ``convert``, and RecBole's own files of data."""
    convert = ["convert", "--name=mine"]
    for key in ("data", "indices", "indptr", "format", "shape"):

        def matrix(key=key) -> None:
            good = scipy.sparse.csr_matrix(np.eye(4))
            scipy.sparse.save_npz("good.npz", good)
            with np.load("good.npz") as parts:
                content = {**parts, key: _objects("exec")}
            np.savez("bad.npz", **content)

        yield Variant(f"{key} of an .npz", matrix, [*convert, "bad.npz"])

    def array() -> None:
        np.save("bad.npy", _objects("open"))
        shutil.move("bad.npy", "bad.npz")

    yield Variant("an .npy as .npz", array, [*convert, "bad.npz"])
    for suffix in ("npz", "mat", "csv", "tsv", "txt"):

        def pickled(suffix=suffix) -> None:
            put(f"bad.{suffix}", bare(mark_mkdir()))

        yield Variant(f"a pickle as .{suffix}", pickled, [*convert, f"bad.{suffix}"])

    def matlab() -> None:
        content = np.array([bare(mark_exec()).decode("latin1")], dtype=object)
        scipy.io.savemat("bad.mat", {"data": content})

    yield Variant("words in a .mat", matlab, [*convert, "bad.mat"])
    for suffix in ("inter", "user", "item"):

        def atomic(suffix=suffix) -> None:
            put(f"data/tiny/tiny.{suffix}", bare(mark_exec()))

        yield Variant(f"a pickle as .{suffix}", atomic, [*TRAIN, "--additional_feat_suffix=[]"])


def records() -> Iterator[Variant]:
    for file in ("result.json", "runs.jsonl"):
        for way in ("exec", "shell"):

            def place(file=file, way=way) -> None:
                put(f"results/x/{file}", bare(WAYS[way]()))

            yield Variant(f"a pickle as {file} by {way}", place, ["report", "results"])

    def users() -> None:
        put("users.txt", bare(mark_exec()))

    yield Variant("a pickle of users", users, [*RECOMMEND[:-1], "--users=users.txt"])


def searches() -> Iterator[Variant]:
    """What lies in the folder of a search; ``found`` is one that was begun."""
    files = ("tuner.pkl", "trainable.pkl", "experiment_state-1.json", "searcher-state-1.pkl")
    for file in files:

        def ray(file=file) -> None:
            for folder in ("tuning/found", "tuning/found/ray"):
                put(f"{folder}/{file}", bare(mark_exec()))

        yield Variant(f"Ray's {file}", ray, ["tune", "--resume=tuning/found"], slow=True)

    def cache() -> None:
        put("saved/tiny-Dataset.pth", bare(mark_exec()))

    yield Variant("RecBole's cache in a search", cache, ["tune", "--resume=tuning/found"], slow=True)
    for key in ("dataset_save_path", "dataloaders_save_path"):

        def plan(key=key) -> None:
            file = Path("tuning/found/search.json")
            put("bad.pth", bare(mark_exec()))
            file.write_text(file.read_text().replace('"epochs":', f'"{key}": "bad.pth",\n"epochs":', 1))

        yield Variant(f"{key} in search.json", plan, ["tune", "--resume=tuning/found"], slow=True)

    def state() -> None:
        put("tuning/found/trials/0000/x.last.pth", archive({"state_dict": mark_exec()}))

    yield Variant("the state of a trial", state, ["tune", "--resume=tuning/found"], slow=True)
