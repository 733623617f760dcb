"""kemu: a small Linux that you can stop, look into and run backwards.

    from kemu import Session

Nothing is imported until it is used: `kemu --help` must be quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kemu.api import Session as Session

__version__ = "0.1.0"
__all__ = ["Session", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the public names on first use."""
    if name == "Session":
        from kemu.api import Session

        return Session
    raise AttributeError(f"module 'kemu' has no attribute {name!r}")
