"""Tests that ask the host's kernel: skipped, with the reason, where it is not the kernel that the
recordings are of."""

import platform
import re
from functools import cache

import pytest

from kemu.conform.hostworker import Crew
from kemu.errors import HostUnavailable

RECORDED = (6, 18)


@cache
def why_not():
    """Why this host cannot be asked, "" if it can."""
    version = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
    if platform.system() == "Linux" and version < RECORDED:
        return f"the recordings are of Linux 6.18, this host runs {platform.release()}"
    try:
        with Crew():
            return ""
    except HostUnavailable as error:
        return str(error)


needs_host = pytest.mark.skipif(bool(why_not()), reason=why_not() or "the host can be asked")
