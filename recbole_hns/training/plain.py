"""Values as files hold them: tensors and plain data in checkpoints, plain data in settings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from recbole_hns.errors import Error

# What RecBole finds out about the machine and the launch, and trust, which is given anew each time.
NOT_OF_THE_RUN = {"device", "nproc", "world_size", "ip", "port", "offset", "local_rank", "single_spec"}
NOT_OF_THE_RUN |= {"trust_checkpoint"}


def plain_data(value: object, name: str = "value") -> object:
    """The value as a checkpoint can hold it: tensors, numbers, strings, lists, dicts."""
    if isinstance(value, np.generic):  # np.float64 is a float too, but is pickled as NumPy's
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, dict):
        return {key: plain_data(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        items = [plain_data(item, name) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    raise Error(
        f"{name} is a {type(value).__name__}, and checkpoints hold tensors and plain data only: "
        "keep it as a tensor."
    )


def plain_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings of a run, without those of the launch; RecBole's enumerations become strings."""
    return {key: plain_setting(value) for key, value in settings.items() if key not in NOT_OF_THE_RUN}


def plain_setting(value: object) -> object:
    """A value as a property file can hold it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): plain_setting(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain_setting(item) for item in value]
    return str(value)
