"""`python -m loupe` is the same as `loupe`."""

import sys

from loupe.cli import main

if __name__ == "__main__":
    sys.exit(main())
