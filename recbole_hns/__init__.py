"""Hard negative sampling for RecBole.

Shi et al., "On the Theories Behind Hard Negative Sampling for Recommendation", WWW 2023.
"""

import os

# Our kernels and torch take turns on the same cores: a torch thread that spins while it waits for its
# next turn takes a core from the kernel. Heeded only if torch has not been imported before.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from recbole_hns import compat

compat.apply()

from recbole_hns.config import HNSConfig, SamplerSpec  # noqa: E402
from recbole_hns.errors import HNSError  # noqa: E402
from recbole_hns.quick_start import run_recbole_hns  # noqa: E402

__version__ = "0.1.0"
__all__ = ["HNSConfig", "HNSError", "SamplerSpec", "run_recbole_hns"]
