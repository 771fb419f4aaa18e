"""What is changed in RecBole, where and why: the one place that does it.

Importing ``recbole_hns`` changes nothing. :func:`install` is called when a run begins, and is what a
program calls that wants RecBole's own functions to run on today's packages and to know our metrics::

    from recbole_hns.bridge import install
    install()

| what | where | why |
| --- | --- | --- |
| NumPy's old names | ``recbole.config.Config``, as it sets itself up | RecBole asks for them |
| frames as before pandas 3 | ``pd`` inside ``recbole.data.dataset.dataset`` | filling in place |
| ids called NA, null, None | ``pd`` inside ``recbole.data.dataset.dataset`` | pandas takes them for nothing |
| lines without an id | ``Dataset._load_feat`` | left out in silence, or made the padding |
| ``dok_matrix._update`` | SciPy's class, where it is missing | seven graph models call it |
| its own checkpoints | ``torch`` inside ``recbole.trainer.trainer`` | torch 2.6 refuses pickles |
| width of given vectors | ``Dataset.get_preload_weight`` | 64 bits do not multiply with 32 |
| torch's anomaly detection | undone after SINE's import | it is on for all models otherwise |
| KGAT, KGIN, MCCLK | their calls of dgl and torch_scatter | these are not built any more |
| our metrics | RecBole's tables of metrics and its collector | they are RecBole metrics |
| TensorBoard's curves | ``get_tensorboard`` inside ``recbole.trainer.trainer`` | no thread, own folder |
| plain trainers | ``recbole.trainer.Trainer.fit`` | it would leave our sampler out |
| warnings of RecBole and Ray | filters of ``warnings`` | a user can do nothing about them |

One thing is set before that, where ``recbole_hns.runs`` is imported or the command starts, and only if it
is not set: ``GOMP_SPINCOUNT=0`` in the environment, which torch reads as it is loaded.
"""

from __future__ import annotations

import functools
from typing import Any

from recbole_hns.errors import Error


@functools.cache
def install() -> None:
    """Let RecBole run on today's packages, and know our metrics; doing so again changes nothing."""
    from recbole_hns.bridge import collector, compat, curves

    compat.apply()
    collector.register()
    curves.register()
    refuse_plain_training()


def refuse_plain_training() -> None:
    """Let RecBole's own trainers refuse a configuration of ours, whose sampler they would not use."""
    from recbole.trainer import Trainer

    original = Trainer.fit
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(self.config, "method") and not hasattr(self, "sampler"):
            raise Error(
                f"RecBole's {type(self).__name__} would train {self.config['model']} without "
                f"sampler={self.config['sampler']}: make the trainer by get_trainer of "
                "recbole_hns.quick_start."
            )
        return original(self, *args, **kwargs)

    Trainer.fit = fit
