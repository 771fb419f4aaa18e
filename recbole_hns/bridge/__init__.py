"""Everything that touches RecBole's insides.

:func:`install` changes what has to be changed in RecBole; it is called when a run begins.
"""

from recbole_hns.bridge.install import install

__all__ = ["install"]
