"""Writing a file of the host: as a whole, or not at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from kemu.errors import UsageError


def replace_file(path: str, data: bytes, command: str) -> None:
    """Replace the file as a whole, or leave it alone; what is there and no file (a device, a pipe) is refused.

    Raises UsageError that opens with the `command`."""
    target, part = Path(path), Path(f"{path}.part")
    try:
        if target.exists() and not target.is_file():
            raise UsageError(f"{command}: '{path}' is no file", hint="name a file that may be replaced")
        part.write_bytes(data)
        part.replace(target)
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):
            part.unlink(missing_ok=True)
        raise UsageError(f"{command}: cannot write '{path}': {getattr(error, 'strerror', None) or error}") from error
