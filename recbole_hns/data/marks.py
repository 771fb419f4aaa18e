"""The mark that some editors put before the first character of a file of UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recbole.config import Config


def encoding_of(file: Path, asked: str | None) -> str | None:
    """``asked``, or the encoding that leaves the mark out where the file begins with one."""
    if asked is not None and codecs.lookup(asked).name != "utf-8":
        return asked
    with file.open("rb") as content:
        return "utf-8-sig" if content.read(3) == codecs.BOM_UTF8 else asked


@contextmanager
def without_marks(config: Config) -> Iterator[None]:
    """Let RecBole read a data set whose files begin with the mark; without it they read the same."""
    folder, final = Path(config["data_path"]), config.final_config_dict
    asked = final.get("encoding")
    found = [
        encoding_of(file, asked) for file in folder.glob(f"{config['dataset']}.*") if file.is_file()
    ]
    if "utf-8-sig" not in found:
        yield
        return
    before = dict(final)
    final["encoding"] = "utf-8-sig"
    try:
        yield
    finally:
        del final["encoding"]
        final.update({key: value for key, value in before.items() if key == "encoding"})
