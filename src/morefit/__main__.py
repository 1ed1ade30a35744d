"""``python -m morefit``: the command line, where its program is not on the path."""

from morefit.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
