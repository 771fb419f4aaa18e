"""The configuration of a run: RecBole's, in layers, with what its model and sampler allow."""

from __future__ import annotations

from typing import Any

from recbole_hns.bridge.config import LayeredConfig
from recbole_hns.runs.allowed import check_config


class HNSConfig(LayeredConfig):
    """RecBole's ``Config`` with the plugin's layers, refusing what cannot be trained.

    Raises:
        Error: for anything a user can put right, before any data is loaded.
    """

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        check_config(self)
