"""What can be set, and how it is read: kinds of values, one dialect, layers, parts by name."""

from recbole_hns.settings.kinds import Count, Flag, NotNegative, Positive, Share, setting
from recbole_hns.settings.parts import Part
from recbole_hns.settings.registry import register

__all__ = ["Count", "Flag", "NotNegative", "Part", "Positive", "Share", "register", "setting"]
