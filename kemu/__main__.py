"""`python -m kemu`."""

from __future__ import annotations

import sys

from kemu.front.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
