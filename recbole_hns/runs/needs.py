"""What a run needs of memory, told before it takes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recbole.data.dataset import Dataset

from recbole_hns.bridge.config import LayeredConfig
from recbole_hns.errors import Error
from recbole_hns.memory import available
from recbole_hns.sampling.rules import DNS
from recbole_hns.settings.kinds import is_whole

if TYPE_CHECKING:
    from recbole_hns.runs.config import HNSConfig

COPIES = 4  # of every parameter: itself, its gradient and Adam's two moments
# Measured, as the highest use of runs with N = 2000 and 12000: an id, and but for DNS, which forgets a score
# at once, the score, the loss, the weight and what is made on the way to them.
BYTES_PER_ID, BYTES_PER_CANDIDATE = 4, 24
BYTES_PER_CELL = (
    140  # of a table while RecBole reads it, as text and as numbers; measured on a million lines
)
SAMPLE = 1 << 16  # bytes of a file that show how long its lines are
LONGEST_LINE = 1000  # of a file of interactions, in bytes; most have 20


class Need(NamedTuple):
    """What a setting takes."""

    key: str
    value: int
    size: int  # bytes
    what: str  # for which

    def __str__(self) -> str:
        return f"{self.key}={self.value} needs {in_words(self.size)} of memory for {self.what}"


def check_memory_to_load(config: HNSConfig) -> None:
    """Refuse, before anything is read, what the files and the settings alone show to be too much."""
    folder, name = Path(config["data_path"]), config["dataset"]
    files = [file for file in folder.glob(f"{name}.*") if file.name.endswith(".inter")]
    need, there = sum(_to_read(file, config["field_separator"]) for file in files), available()
    if need > there:
        raise Error(
            f"data set {name} needs about {in_words(need)} of memory to be read, and {in_words(there)} can "
            "be had: free some, or raise the limit that this process has."
        )
    size = sum(file.stat().st_size for file in files)
    if isinstance(config, LayeredConfig):  # not that of a checkpoint of RecBole's own
        pairs = min(config["train_batch_size"], size // LONGEST_LINE)
        _refuse(list(_of_settings(config, 0, 0, pairs)), there)


def check_memory(config: HNSConfig, data: Dataset) -> None:
    """Refuse what cannot be held, rather than be killed half-way."""
    pairs = min(config["train_batch_size"], len(data.inter_feat))
    _refuse(list(_of_settings(config, data.user_num, data.item_num, pairs)), available())


def _to_read(file: Path, separator: str) -> int:
    """Bytes that reading a table takes, told by its first lines."""
    with file.open("rb") as content:
        lines = content.readlines(SAMPLE)
    mean = sum(map(len, lines)) / max(1, len(lines))
    columns = 1 + lines[0].count(separator.encode()) if lines else 1
    size = file.stat().st_size
    return size + int(size / max(1.0, mean) * columns * BYTES_PER_CELL)


def _of_settings(config: HNSConfig, users: int, items: int, pairs: int) -> Iterator[Need]:
    own, rows = config.method.settings, users + items
    each = BYTES_PER_ID if isinstance(config.method.rule, DNS) else BYTES_PER_CANDIDATE
    sizes = {
        "embedding_size": (config["embedding_size"], 4 * COPIES * rows, f"{rows} users and items"),
        "N": (own.get("N"), each * pairs, f"{pairs} pairs of a batch"),
        "proposals": (own.get("proposals"), BYTES_PER_CANDIDATE * min(pairs, users), f"{users} users"),
        "pool_size": (own.get("pool_size"), 4 * users, f"{users} users"),
        "generator_size": (own.get("generator_size"), 4 * COPIES * rows, f"{rows} users and items"),
    }
    for key, (value, of_one, what) in sizes.items():
        if is_whole(value):
            yield Need(key, value, value * of_one, what)


def _refuse(needs: list[Need], there: int) -> None:
    """All of it is held at a time; the largest part is what can be made smaller."""
    if sum(need.size for need in needs) > there:
        largest = max(needs, key=lambda need: need.size)
        raise Error(f"{largest}, and {in_words(there)} can be had: make it smaller.")


def in_words(size: int) -> str:
    """1.5 GB, 20 MB."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"
