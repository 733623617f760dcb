"""What is said when kemu itself is wrong."""

from __future__ import annotations

import sys


def report_bug(error: BaseException, *, debug: bool) -> int:
    """One line about a bug of kemu itself, with the traceback if `debug`; exit code 70."""
    if debug:
        import traceback

        traceback.print_exception(error)
    sys.stderr.write(f"kemu: a bug of kemu, not yours: {type(error).__name__}: {error}\n")
    if not debug:
        sys.stderr.write("  kemu --debug shows the traceback for a report\n")
    return 70
