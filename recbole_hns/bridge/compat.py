"""RecBole 1.2.1 on today's stack: with :mod:`.compat_pandas`, :mod:`.compat_reading` and
:mod:`.compat_knowledge`, all that knows of its faults.

Each shim mends one upstream fault, does nothing where the fault is absent, and reaches no further than
RecBole's own modules, but for the filters of warnings and SciPy's class. :mod:`.install` applies them.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
import types
import warnings
from collections.abc import Mapping
from typing import IO, Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from recbole_hns.bridge import compat_pandas

File = str | os.PathLike[str] | IO[bytes]
NUMPY_1_NAMES = {"float_": np.float64, "complex_": np.complex128, "unicode_": np.str_}


def lend_numpy_names() -> None:
    """Let RecBole's ``Config`` read the names that NumPy 2 took away: ``np.float_`` and two more.

    It reads them once, to set ``np.float`` and the like, which its own modules use. NumPy has them
    for as long as that takes and no longer.
    """
    if all(hasattr(np, name) for name in NUMPY_1_NAMES):
        return
    from recbole.config import Config

    settle = Config.compatibility_settings

    @functools.wraps(settle)
    def compatibility_settings(self: Config) -> None:
        lent = {name: value for name, value in NUMPY_1_NAMES.items() if not hasattr(np, name)}
        vars(np).update(lent)
        try:
            settle(self)
        finally:
            for name in lent:
                delattr(np, name)

    Config.compatibility_settings = compatibility_settings


def restore_dok_update() -> None:
    """Give SciPy's ``dok_matrix`` back the ``_update`` that RecBole's graph models call.

    LightGCN, NGCF, NCL, GCMC, SpectralCF, KGIN and MCCLK fill a ``dok_matrix`` through this private
    method, which SciPy 1.13 took away.
    """
    if hasattr(sp.dok_matrix, "_update"):
        return

    def _update(self: Any, data: Mapping[tuple[int, int], float]) -> None:
        self._dict.update(data)

    sp.dok_matrix._update = _update


def load_own_checkpoints() -> None:
    """Let RecBole's trainer read the checkpoint it has just written, and no other pickle.

    RecBole pickles its ``Config`` into the checkpoint, which ``torch.load`` refuses since torch 2.6
    made ``weights_only=True`` the default. Only the name ``torch`` inside ``recbole.trainer.trainer``
    is replaced, by a view of torch that remembers what this process has saved through it and allows
    pickles for those files alone: ``torch.load`` itself, and so everyone else's, stays as it is.
    """
    default = inspect.signature(torch.load).parameters["weights_only"].default
    if default is False:
        return
    from recbole.trainer import trainer

    if isinstance(trainer.torch, TorchForRecBole):
        return
    trainer.torch = TorchForRecBole("torch")


def narrow_preloaded_weights() -> None:
    """Give models vectors trained elsewhere in the width of their own.

    RecBole keeps ``preload_weight`` in 64 bits, which KSR multiplies with 32 and torch refuses.
    """
    from recbole.data.dataset import Dataset

    original = Dataset.get_preload_weight
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def get_preload_weight(self: Dataset, field: str) -> npt.NDArray[np.float32]:
        weights: npt.NDArray[np.float32] = original(self, field).astype(np.float32)
        return weights

    Dataset.get_preload_weight = get_preload_weight


@functools.cache
def leave_anomaly_detection_alone() -> None:
    """Keep torch's anomaly detection as the user has it.

    RecBole's SINE turns it on for the whole process when it is imported, which looking up any
    sequential model does. All models then pay for it: every gradient is searched for NaN and the stack
    of every operation is kept.
    """
    sine = "recbole.model.sequential_recommender.sine"
    wanted = torch.is_anomaly_enabled() and sine not in sys.modules
    check_nan = torch.is_anomaly_check_nan_enabled()
    importlib.import_module(sine)  # now, so that it is over
    torch.autograd.set_detect_anomaly(wanted, check_nan)


def ids_as_written() -> None:
    """Keep ids that pandas takes for missing values."""
    from recbole_hns.bridge import compat_reading  # it imports RecBole, which takes the shims above

    compat_reading.apply()


def knowledge_models_without_compiled_packages() -> None:
    """Let KGAT, KGIN and MCCLK do without ``dgl`` and ``torch_scatter``."""
    from recbole_hns.bridge import compat_knowledge  # it imports RecBole, which takes the shims above

    compat_knowledge.apply()


class TorchForRecBole(types.ModuleType):
    """Torch, with a ``load`` that trusts what its own ``save`` has written."""

    written: ClassVar[dict[str, tuple[int, int]]] = {}  # path: time and size of what was written

    @classmethod
    def save(cls, obj: object, f: File, *args: Any, **kwargs: Any) -> None:
        """``torch.save``, remembered."""
        torch.save(obj, f, *args, **kwargs)
        if isinstance(f, (str, os.PathLike)):
            cls.written[os.path.realpath(f)] = cls._stamp(f)

    @classmethod
    def load(cls, f: File, *args: Any, **kwargs: Any) -> Any:
        """``torch.load``, which takes a pickle only where nobody has touched it since ``save``."""
        if isinstance(f, (str, os.PathLike)) and os.path.exists(f):
            own = cls.written.get(os.path.realpath(f)) == cls._stamp(f)
            kwargs.setdefault("weights_only", not own)
        return torch.load(f, *args, **kwargs)

    @staticmethod
    def _stamp(f: str | os.PathLike[str]) -> tuple[int, int]:
        found = os.stat(f)
        return found.st_mtime_ns, found.st_size

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def quiet_recbole() -> None:
    """Keep warnings about RecBole's own code, and Ray's, from users, who can do nothing about them.

    RecBole 1.2.1 calls deprecated functions of pandas and torch: chained ``fillna(inplace=True)``,
    ``torch.sparse.FloatTensor`` and, every epoch, ``torch.cuda.amp.GradScaler``; it makes tensors of
    arrays that pandas 3 marks read-only. Ray 2.6 imports ``pkg_resources``.
    """
    for category in (FutureWarning, DeprecationWarning, UserWarning):
        warnings.filterwarnings("ignore", category=category, module=r"(recbole|ray)\.")


def apply() -> None:
    """Apply every shim; applying them again changes nothing."""
    quiet_recbole()  # first, since the others import RecBole
    lend_numpy_names()
    compat_pandas.apply()
    ids_as_written()
    restore_dok_update()
    load_own_checkpoints()
    narrow_preloaded_weights()
    leave_anomaly_detection_alone()
    knowledge_models_without_compiled_packages()
