"""Run by ``test_below_python.py``, with ``failing_disk.c`` loaded before Python: commands on that disk.

Arguments are a folder to work in, and how many calls there are from one that fails to the next. The last
line is the number of faults that were survived, by command.
"""

import ctypes
import json
import sys
from pathlib import Path

from conftest import random_pairs, write_inter
from test_io import COMMANDS, ERRORS, Place, survives

LIBRARY = ctypes.CDLL(None)
LIBRARY.disk_path.restype = ctypes.c_char_p
LIBRARY.disk_fail.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]


class Below:
    """A disk that fails below Python."""

    def __init__(self, folder, fail, number, lasting):
        self.arguments = str(folder).encode(), fail, number, lasting

    def __enter__(self):
        LIBRARY.disk_fail(*self.arguments)
        return self

    def __exit__(self, *error):
        path = LIBRARY.disk_path().decode()
        self.failed = [("a call", path)] * LIBRARY.disk_failed()
        LIBRARY.disk_fail(b"", -1, 0, 0)


def main(base, step):
    """All commands."""
    write_inter(base / "data", "tiny", random_pairs())
    done = {}
    for name in COMMANDS:
        place = Place(name, base / name, base / "data")
        done[name] = 0
        for number in ERRORS:
            count = 0
            while survives(place, number, count, kind=Below):
                done[name] += 1
                count += step
    print(json.dumps(done))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
