"""The property files that the package ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recbole_hns.settings.dialect import read_yaml
from recbole_hns.settings.layers import Layer

_HERE = Path(__file__).resolve().parent.parent
# Installed inside the package; in a checkout, beside it.
PROPERTIES = next(path for path in (_HERE / "properties", _HERE.parent / "properties") if path.is_dir())


def shipped(name: str) -> Layer:
    """A property file of ours; an empty layer where there is none."""
    file = PROPERTIES / f"{name}.yaml"
    return Layer(f"properties/{name}.yaml", read_yaml(file) if file.is_file() else {})


def overall() -> dict[str, Any]:
    """The defaults of every run."""
    return dict(shipped("overall").values)
