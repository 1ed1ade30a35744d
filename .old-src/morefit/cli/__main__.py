"""Lets ``python -m morefit.cli`` do what ``morefit`` does."""

import sys

from morefit.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
