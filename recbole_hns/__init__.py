"""Hard negative sampling for RecBole.

Shi et al., "On the Theories Behind Hard Negative Sampling for Recommendation", WWW 2023.
"""

from recbole_hns import compat

compat.apply()

from recbole_hns.config import HNSConfig, SamplerSpec  # noqa: E402
from recbole_hns.errors import HNSError  # noqa: E402
from recbole_hns.quick_start import run_recbole_hns  # noqa: E402

__version__ = "0.1.0"
__all__ = ["HNSConfig", "HNSError", "SamplerSpec", "run_recbole_hns"]
