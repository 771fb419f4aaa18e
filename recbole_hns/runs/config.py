"""The configuration of a run: RecBole's, in layers, with what its model and sampler allow."""

from __future__ import annotations

from typing import Any

from recbole_hns.bridge.config import LayeredConfig
from recbole_hns.errors import Error
from recbole_hns.runs.allowed import check_config, refuse_models_that_never_train


class HNSConfig(LayeredConfig):
    """RecBole's ``Config`` with the plugin's layers, refusing what cannot be trained.

    Raises:
        Error: for anything a user can put right, before any data is loaded.
    """

    def __init__(self, *args: Any, **options: Any):
        try:
            super().__init__(*args, **options)
        except Error:
            # Nobody is to mend a setting of a model that no setting could train.
            refuse_models_that_never_train(self)
            raise
        check_config(self)
