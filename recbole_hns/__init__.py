"""Hard negative sampling for RecBole.

Shi et al., "On the Theories Behind Hard Negative Sampling for Recommendation", WWW 2023.
"""

import os
from importlib.util import find_spec

if find_spec("recbole") is None:
    raise ModuleNotFoundError(
        "RecBole is not installed: on Python 3.12 and later its requirements cannot be met, so it comes "
        'without them, by pip install ".[modern]" && pip install --no-deps recbole==1.2.1 (README).',
        name="recbole",
    )

# Our kernels and torch take turns on the same cores. By default a thread of torch's OpenMP spins for
# milliseconds when its work is done, on a core that the kernel could use; this makes it some
# microseconds. Heeded only if torch has not been imported before.
os.environ.setdefault("GOMP_SPINCOUNT", "30000")

from recbole_hns.bridge import compat

compat.apply()

from recbole_hns.bridge import collector  # noqa: E402

collector.register()

from recbole_hns.bridge.config import HNSConfig  # noqa: E402
from recbole_hns.errors import Error  # noqa: E402
from recbole_hns.runs.run import run_recbole_hns  # noqa: E402
from recbole_hns.sampling import Rule, register_sampler, setting  # noqa: E402
from recbole_hns.sampling.spec import SamplerSpec  # noqa: E402
from recbole_hns.training.stopping import RunStopped  # noqa: E402

__version__ = "0.1.0"
__all__ = [
    "Error",
    "HNSConfig",
    "Rule",
    "RunStopped",
    "SamplerSpec",
    "register_sampler",
    "run_recbole_hns",
    "setting",
]
