"""Files of the host: written as a whole or not at all; only regular files are read."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from kemu.errors import UsageError


def read_lines(path: str, command: str) -> list[str]:
    """The lines of a text file; bytes that are not UTF-8 are kept (surrogateescape).

    Raises UsageError, whose text starts with `command`, if it cannot be read or is not a regular
    file: a device or a pipe may have no end."""
    try:
        if Path(path).exists() and not Path(path).is_file():
            what = "is a folder" if Path(path).is_dir() else "is not a file"
            raise UsageError(
                f"{command}: '{path}' {what}", hint="name a file of commands", about="path"
            )
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{command}: cannot read '{path}': {getattr(error, 'strerror', None) or error}",
            about="path",
        ) from error


def replace_file(path: str, data: bytes, command: str, about: str = "file") -> None:
    """Replace the file as a whole or not at all.

    Raises UsageError, whose text starts with `command`, about its argument `about`, if the file
    cannot be written or is not a regular file."""
    target, part = Path(path), Path(f"{path}.part")
    try:
        if target.exists() and not target.is_file():
            raise UsageError(
                f"{command}: '{path}' is not a file",
                hint="name a file that can be replaced",
                about=about,
            )
        part.write_bytes(data)
        part.replace(target)
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):  # what the user is told is why it could not be written
            part.unlink(missing_ok=True)
        raise UsageError(
            f"{command}: cannot write '{path}': {getattr(error, 'strerror', None) or error}",
            about=about,
        ) from error
