"""Seeds: everything random derives from RecBole's ``seed``."""

from __future__ import annotations

import numpy as np


def derive_seed(*parts: int) -> int:
    """One well-mixed seed out of several small numbers, such as seed, rank and epoch."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))
