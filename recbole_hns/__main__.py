"""``python -m recbole_hns``: the same as the command ``recbole-hns``."""

import sys

from recbole_hns.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
