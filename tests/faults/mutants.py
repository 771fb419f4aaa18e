"""Malformed files: right ones with something changed, by a seed.

Every function takes a ``random.Random`` and gives one :class:`Mutant`: what is put into a copy of the
folder that :func:`beginnings` makes, and the command that reads it.
"""

from __future__ import annotations

import copy
import io
import json
import math
import random
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
import torch
from fuzzing import train_one, write_data

TRAIN = ["--model=MF", "--dataset=tiny", "--data_path=data", "--epochs=1", "--N=5", "--embedding_size=8"]
TRAIN += ["--topk=5", "--valid_metric=MRR@5", "--show_progress=False", "--result_dir=~"]


@dataclass(frozen=True)
class Mutant:
    """A malformed file, written by ``put``, and the command line that comes across it."""

    name: str
    put: Callable[[], None]
    line: list[str]


def beginnings(place: Path) -> Path:
    """A folder with data, a trained model and its result, for mutants to be put into copies of it."""
    data = place / "folder/data"
    write_data(data)
    (data / "tiny/tiny.yaml").unlink()
    train_one(place / "trained", data)
    for file in (data / "trained").iterdir():
        shutil.move(file, place / "folder" / file.name)
    shutil.copytree(place / "trained/results", place / "folder/results")
    return place / "folder"


# ----------------------------------------------------------------------------------- bytes and values


def mutated_bytes(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """Some bytes, changed in one of the ways in which files are."""
    at, n = rng.randrange(len(data) + 1), rng.choice((1, 2, 7, 100))
    noise = bytes(rng.randrange(256) for _ in range(n))
    ways = {
        "cut off": data[:at],
        "begins late": data[at:],
        "zeros": data[:at] + bytes(n) + data[at + n :],
        "noise": data[:at] + noise + data[at + n :],
        "put in": data[:at] + noise + data[at:],
        "taken out": data[:at] + data[at + n :],
        "twice": data[:at] + data[max(0, at - n) :],
        "nothing": b"",
        "a bit": data[:at]
        + bytes(b ^ 1 << rng.randrange(8) for b in data[at : at + 1])
        + data[at + 1 :],
    }
    way = rng.choice(sorted(ways))
    return f"{way} at {at}", ways[way]


LARGE = (2**31, 2**63 - 1, 2**64, -(2**63), -1, 10**30, 10**400)
WORDS = (
    "",
    " ",
    "\x00",
    "\ud800".encode("utf-8", "replace").decode(),
    "x" * 5000,
    "../../x",
    "é名\u202e",
    "\n",
)


def odd(rng: random.Random) -> Any:
    """A value of another kind, or beyond any bounds."""
    kinds = (
        lambda: rng.choice(LARGE),
        lambda: rng.choice(WORDS),
        lambda: rng.choice((None, True, False, 0, 1.5, math.nan, math.inf, -0.0, 1e308)),
        lambda: rng.choice(([], {}, [None], [[]], {"a": {}}, {"": 1}, ["x"], [1, 2, 3])),
    )
    return copy.deepcopy(rng.choice(kinds)())


def tensors(rng: random.Random) -> Any:
    """A tensor that is none of the run's."""
    kinds = (
        torch.zeros(0),
        torch.zeros(3, 3),
        torch.full((2,), math.nan),
        torch.tensor([2**62]),
        torch.zeros(1).expand(10**6, 10**6),
        torch.tensor(True),
    )
    return rng.choice(kinds)


def places(content: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in dicts and lists."""
    members: Any = ()
    if isinstance(content, dict):
        members = content.items()
    elif isinstance(content, list):
        members = list(enumerate(content))[:3]
    found = [(*above, key) for key, _ in members]
    for key, value in members:
        found += places(value, (*above, key))
    return found


def changed(
    rng: random.Random, content: Any, odd_value: Callable[[random.Random], Any]
) -> tuple[str, Any]:
    """A copy with one value taken out or replaced."""
    content = copy.deepcopy(content)
    way = rng.choice(places(content))
    if rng.random() < 0.5:  # the parts as often as what is deep within them
        way = way[: rng.randint(1, len(way))]
    inner = content
    for key in way[:-1]:
        inner = inner[key]
    name = "/".join(map(str, way))
    if rng.random() < 0.2:
        del inner[way[-1]]
        return f"without {name}", content
    value = odd_value(rng)
    inner[way[-1]] = value
    return f"{name}={_short(value)}", content


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"tensor{tuple(value.shape)}"
    try:
        return repr(value)[:30]
    except ValueError:
        return "a number of many digits"


# ----------------------------------------------------------------------------------- checkpoints


LINES = {
    "evaluate": ["evaluate", "bad.pth", "--data_path=data"],
    "recommend": ["recommend", "bad.pth", "--data_path=data", "--users=u1,u2", "--k=3"],
    "resume": ["--resume=bad.last.pth", "--data_path=data", "--epochs=2"],
}


def checkpoint(rng: random.Random) -> Mutant:
    """A checkpoint with another value at one place, or other bytes."""
    command = rng.choice(("evaluate", "recommend", "resume", "resume"))
    last = ".last" if command == "resume" else ""
    source, target = f"model{last}.pth", f"bad{last}.pth"
    seed, kind = rng.random(), rng.choice(("bytes", "pickle", "value", "value", "value"))

    def put() -> None:
        own = random.Random(seed)
        if last:
            shutil.copy("model.pth", "bad.pth")
        if kind == "bytes":
            Path(target).write_bytes(mutated_bytes(own, Path(source).read_bytes())[1])
        elif kind == "pickle":
            Path(target).write_bytes(repacked(own, Path(source)))
        else:
            content = torch.load(source, weights_only=True)
            both = lambda rng: (tensors if rng.random() < 0.3 else odd)(rng)  # noqa: E731
            torch.save(changed(own, content, both)[1], target)

    return Mutant(f"checkpoint {kind} {seed} {command}", put, LINES[command])


def repacked(rng: random.Random, file: Path) -> bytes:
    """An archive one of whose members has other bytes, and the checksum of these."""
    stream = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(stream, "w") as new:
        names = old.namelist()
        pickled = next(name for name in names if name.endswith("data.pkl"))
        chosen = pickled if rng.random() < 0.7 else rng.choice(names)
        for name in names:
            data = old.read(name)
            new.writestr(name, mutated_bytes(rng, data)[1] if name == chosen else data)
    return stream.getvalue()


TOP = ("format", "model", "dataset", "settings", "final", "state_dict", "epoch", "cur_step", "history")
TOP += ("optimizer", "moment", "versions", "data", "best_valid_score", "best_valid_result", "batch")
WRONG = (None, -1, "x", [], {}, 1.5, {1: 2}, torch.zeros(2))


def wrong_kinds() -> list[Mutant]:
    """Every part of a checkpoint as every kind that it is not."""
    found = []
    for key in TOP:
        for value in WRONG:

            def put(key: str = key, value: Any = value) -> None:
                shutil.copy("model.pth", "bad.pth")
                content = torch.load("model.last.pth", weights_only=True)
                torch.save({**content, key: value}, "bad.last.pth")

            found.append(Mutant(f"{key} of a checkpoint as {_short(value)}", put, LINES["resume"]))
    return found


# ----------------------------------------------------------------------------------- results


def record(rng: random.Random) -> Mutant:
    """A ``result.json`` with another value at one place, or other bytes."""
    seed, kind = rng.random(), rng.choice(("bytes", "value", "value", "deep"))

    def put() -> None:
        own = random.Random(seed)
        (file,) = Path("results").glob("*/result.json")
        if kind == "bytes":
            file.write_bytes(mutated_bytes(own, file.read_bytes())[1])
        elif kind == "deep":
            n = own.choice((10, 1000, 100_000))
            file.write_text(own.choice(("[" * n, '{"a":' * n, "[" * n + "]" * n, "1" * n)))
        else:
            file.write_text(json.dumps(changed(own, json.loads(file.read_text()), odd)[1]))

    return Mutant(f"result.json {kind} {seed}", put, ["report", "results", "--output=report"])


# ----------------------------------------------------------------------------------- data


def inter(rng: random.Random) -> Mutant:
    """An ``.inter`` file with other bytes, or other lines or cells."""
    seed, kind = rng.random(), rng.choice(("bytes", "bytes", "cell", "line", "header"))

    def put() -> None:
        own, file = random.Random(seed), Path("data/tiny/tiny.inter")
        if kind == "bytes":
            file.write_bytes(mutated_bytes(own, file.read_bytes())[1])
            return
        lines = file.read_text().splitlines()
        at = 0 if kind == "header" else own.randrange(1, len(lines))
        lines[at] = own.choice((_other_cell, _other_line))(own, lines[at], "\t")
        file.write_text("\n".join(lines) + "\n", errors="replace")

    return Mutant(f".inter {kind} {seed}", put, TRAIN)


CELLS = (
    "",
    " ",
    '"',
    '"a',
    "nan",
    "inf",
    "-1",
    "1e400",
    "9" * 30,
    "x" * 100_000,
    "\x00",
    "é",
    "a:b",
    ":float",
)
CELLS += (
    "user_id:token",
    "item_id:float",
    "rating:token_seq",
    "rating:float_seq",
    "x:y:z",
    "timestamp:token",
)


def _other_cell(rng: random.Random, line: str, separator: str) -> str:
    cells = line.split(separator)
    cells[rng.randrange(len(cells))] = rng.choice(CELLS)
    return separator.join(cells)


def _other_line(rng: random.Random, line: str, separator: str) -> str:
    return rng.choice(
        (
            "",
            separator,
            separator.join([line, line]),
            line.split(separator)[0],
            line.replace(separator, " "),
            line + separator + "more",
            '"' + line,
            line * 2000,
        )
    )


CONVERT = ["convert", "--name=mine"]


def raw(rng: random.Random) -> Mutant:
    """One of the formats that ``convert`` reads, malformed."""
    makers = (matrix_bytes, matrix_parts, matrix_parts, lists, table)
    return rng.choice(makers)(rng)


def _good() -> Any:
    return scipy.sparse.random(12, 15, 0.4, random_state=1, data_rvs=np.ones, format="csr")


def matrix_bytes(rng: random.Random) -> Mutant:
    seed, suffix = rng.random(), rng.choice(("npz", "mat"))

    def put() -> None:
        if suffix == "npz":
            scipy.sparse.save_npz("good.npz", _good())
        else:
            scipy.io.savemat("good.mat", {"data": _good()}, do_compression=seed < 0.5)
        data = Path(f"good.{suffix}").read_bytes()
        Path(f"bad.{suffix}").write_bytes(mutated_bytes(random.Random(seed), data)[1])

    return Mutant(f".{suffix} bytes {seed}", put, [*CONVERT, f"bad.{suffix}"])


PARTS: dict[str, Callable[[random.Random, np.ndarray], Any]] = {
    "decreases": lambda rng, a: a[::-1],
    "jumps": lambda rng, a: np.where(np.arange(len(a)) == len(a) // 2, 10**6, a),
    "is negative": lambda rng, a: np.where(np.arange(len(a)) == rng.randrange(len(a)), -1, a),
    "is all negative": lambda rng, a: -a - 1,
    "is huge": lambda rng, a: np.where(np.arange(len(a)) == rng.randrange(len(a)), 2**31 - 2, a),
    "is beyond": lambda rng, a: a.astype(np.int64) + 2**40,
    "is short": lambda rng, a: a[: rng.randrange(len(a))],
    "is long": lambda rng, a: np.concatenate([a, a]),
    "is a table": lambda rng, a: np.stack([a, a]),
    "is one number": lambda rng, a: a[0],
    "is words": lambda rng, a: a.astype(str),
    "is parts": lambda rng, a: a + 0.5,
    "is nothing of": lambda rng, a: a * np.nan,
    "is complex": lambda rng, a: a * 1j,
    "is empty": lambda rng, a: a[:0],
    "is true": lambda rng, a: a > 0,
}


def matrix_parts(rng: random.Random) -> Mutant:
    seed, form = rng.random(), rng.choice(("csr", "csc", "bsr", "coo", "dia"))

    def put() -> None:
        own = random.Random(seed)
        scipy.sparse.save_npz("good.npz", _good().asformat(form))
        with np.load("good.npz") as parts:
            content = dict(parts)
        key = own.choice([name for name in content if name != "format"])
        if own.random() < 0.1:
            del content[key]
        elif key == "shape":
            shapes = ((3, 3), (-1, 15), (12, 2**40), (2**40, 2**40), (0, 0), (12,), (12, 15, 2))
            content[key] = np.array(own.choice(shapes))
        else:
            way = own.choice(sorted(PARTS))
            content[key] = PARTS[way](own, np.atleast_1d(content[key]).ravel())
        np.savez("bad.npz", **content)

    return Mutant(f".npz of {form} {seed}", put, [*CONVERT, "bad.npz"])


IDS = (
    "-1",
    "2147483648",
    "4294967297",
    "9223372036854775807",
    "9" * 30,
    "1.5",
    "nan",
    "x",
    "1e3",
    "0x1",
)
IDS += ("\x00", "１", "1_0", "--1", "")


def lists(rng: random.Random) -> Mutant:
    seed = rng.random()

    def put() -> None:
        own = random.Random(seed)
        lines = [f"{user} " + " ".join(str(own.randrange(15)) for _ in range(6)) for user in range(12)]
        if own.random() < 0.4:
            data = mutated_bytes(own, "\n".join(lines).encode())[1]
        else:
            at = own.randrange(len(lines))
            lines[at] = _replaced(own, lines[at], " ")
            data = "\n".join(lines).encode()
        Path("bad.txt").write_bytes(data)

    return Mutant(f"lists {seed}", put, [*CONVERT, "bad.txt"])


def _replaced(rng: random.Random, line: str, separator: str) -> str:
    cells = line.split(separator)
    cells[rng.randrange(len(cells))] = rng.choice(IDS)
    return separator.join(cells)


def table(rng: random.Random) -> Mutant:
    seed, suffix = rng.random(), rng.choice(("csv", "tsv"))
    options = ["--rating=stars", "--threshold=3", "--time=at"] if seed < 0.6 else []

    def put() -> None:
        own, comma = random.Random(seed), "," if suffix == "csv" else "\t"
        rows = [("user_id", "item_id", "stars", "at")]
        rows += [
            (f"u{u}", f"i{own.randrange(15)}", own.randint(1, 5), t) for u in range(12) for t in range(6)
        ]
        lines = [comma.join(map(str, row)) for row in rows]
        if own.random() < 0.4:
            data = mutated_bytes(own, "\n".join(lines).encode())[1]
        else:
            at = own.randrange(len(lines))
            lines[at] = own.choice((_other_cell, _other_line, _replaced))(own, lines[at], comma)
            data = "\n".join(lines).encode()
        Path(f"bad.{suffix}").write_bytes(data)

    return Mutant(f".{suffix} {seed}", put, [*CONVERT, f"bad.{suffix}", *options])


# ----------------------------------------------------------------------------------- YAML


def bomb(width: int = 10, depth: int = 12, merge: bool = False) -> str:
    """A few lines that stand for width^depth values."""
    one = "{x: 1}" if merge else "[1, 2, 3]"
    lines = [f"a0: &a0 {one}"]
    for n in range(1, depth):
        names = ", ".join([f"*a{n - 1}"] * width)
        lines.append(f"a{n}: &a{n} " + (f"{{<<: [{names}]}}" if merge else f"[{names}]"))
    return "\n".join(lines) + "\n"


YAML = (
    *(bomb(), bomb(merge=True), bomb(2, 60), bomb(2, 60, merge=True), bomb(100, 100)),
    *(
        "a: &a [*a]",
        "a: &a {b: *a}",
        "a: *b",
        "a: &a\nb: *a",
        "? &a [*a]\n: 1",
        "<<: 1",
        "<<: [1]",
        "<<: *a",
    ),
    *(
        "[" * 100_000,
        "{a: " * 20_000,
        "- " * 50_000,
        "a: " * 10_000,
        "? " * 20_000,
        "a:\n" + " " * 100_000 + "b",
    ),
    *(
        "!!bool x",
        "N: !!bool x",
        "N: !!int x",
        "N: !!float x",
        "N: !!timestamp x",
        "N: !!binary é",
        "N: !!null x",
    ),
    *(
        "N: !!timestamp 2020-13-45",
        "N: !!timestamp 2001-01-01 00:00:00 +99:99",
        "N: !!set {1, 2}",
        "N: !!map x",
    ),
    *(
        "N: !!omap x",
        "N: !!pairs [1]",
        "N: !!seq x",
        "N: !!str [1]",
        "N: !!merge x",
        "N: ! x",
        "N: !x y",
    ),
    *(
        "%YAML 9.9\n---\nN: 5",
        "%TAG ! x\n---\nN: 5",
        "--- 1\n--- 2",
        "...",
        "N: 5\n---\nN: 6",
        "N: 5\nN: 6",
    ),
    *(
        "\ufeff\ufeffN: 5",
        "N: \x07",
        "N: 5\x00",
        "\tN: 5",
        "N:\t5\n\tM: 6",
        "N: 'a",
        'N: "\\x"',
        'N: "\\ud800"',
    ),
    *(
        "1: 2",
        "null: 2",
        "[1]: 2",
        "{a: 1}: 2",
        "? [1]\n: 2",
        "true: 1",
        "1.5: 2",
        "'': 1",
        "N: " + "9" * 5000,
    ),
    *(
        "N: 0x" + "f" * 5000,
        "N: 1e999",
        "N: -.inf",
        "N: .nan",
        "N: |\n 5",
        "N: >\n 5",
        "@a: 1",
        "`a: 1",
        "a: %",
    ),
)
HEAVY = (  # that take seconds until they are refused
    *(
        "x" * 2_000_000,
        "# " + "x" * 2_000_000,
        "a: [" + "1," * 400_000 + "]",
        "a: '" + "x" * 900_000 + "'",
    ),
)


def yaml(rng: random.Random) -> Mutant:
    """A property file that is none, or that stands for more than there is room for."""
    text = rng.choice(YAML)
    if rng.random() < 0.3:
        good = b"N: 5\nM: 2\nseed: 7\nmetrics: [Recall, NDCG]\neval_args: {split: {RS: [8, 1, 1]}}\n"
        content = mutated_bytes(rng, good)[1]
    else:
        content = text.encode("utf-8", "surrogatepass")
    file = rng.choice(("own.yaml", "data/tiny/tiny.yaml"))
    line = TRAIN if file != "own.yaml" else [*TRAIN, "--config_files=own.yaml"]
    name = re.sub(r"\s+", " ", repr(content[:40]))
    return Mutant(f"YAML {name} in {file}", lambda: _write(file, content), line)


def all_yaml() -> list[Mutant]:
    """Every text of :data:`YAML`, as a property file."""
    line = [*TRAIN, "--config_files=own.yaml"]
    return [
        Mutant(
            f"YAML {text[:40]!r}",
            lambda text=text: _write("own.yaml", text.encode("utf-8", "surrogatepass")),
            line,
        )
        for text in (*YAML, *HEAVY)
    ]


def _write(file: str, content: bytes) -> None:
    Path(file).write_bytes(content)


MAKERS = {"checkpoint": checkpoint, "result": record, "inter": inter, "raw": raw, "yaml": yaml}


def drawn(seed: int, counts: dict[str, int]) -> list[Mutant]:
    """So many mutants of each kind."""
    rng = random.Random(seed)
    return [MAKERS[kind](rng) for kind, n in counts.items() for _ in range(n)]
