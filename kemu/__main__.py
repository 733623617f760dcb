"""`python -m kemu`."""

from __future__ import annotations

import sys

from kemu.cli import main

if __name__ == "__main__":
    sys.exit(main())
