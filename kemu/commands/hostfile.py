"""Files of the host: written as a whole or not at all; only regular files are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import islice
from os import R_OK, access
from pathlib import Path

from kemu.errors import UsageError
from kemu.language.suggest import did_you_mean


def read_lines(path: str, command: str) -> list[str]:
    """The lines of a text file, which end as those of Unix or all as those of Windows; bytes that
    are not UTF-8 are kept (surrogateescape).

    Raises UsageError, whose text starts with `command`, if it cannot be read or is not a regular
    file: a device or a pipe may have no end."""
    try:
        if Path(path).exists() and not Path(path).is_file():
            what = "is a folder" if Path(path).is_dir() else "is not a file"
            raise UsageError(
                f"{command}: '{path}' {what}", hint="name a file of commands", about="path"
            )
        text = Path(path).read_bytes().decode("utf-8", "surrogateescape")
        windows = text.count("\r\n") == text.count("\n")
        return (text.replace("\r\n", "\n") if windows else text).split("\n")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{command}: cannot read '{path}': {getattr(error, 'strerror', None) or error}",
            hint=near_file(path),
            about="path",
        ) from error


def near_file(path: str) -> str:
    """The hint for a file of the host that cannot be opened: its folder, if that is what is
    missing, or the most similar name there."""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"there is no folder '{folder}'"
    names = [one.name for one in islice(folder.iterdir(), 1000)] if access(folder, R_OK) else []
    return did_you_mean(Path(path).name, names) or "name a file that you can open"


_written: set[Path] = set()
"""The files that this process has written."""
_forced = ContextVar("forced", default=False)

SIGNATURE, HEAD = b"kemu", 1000
"""What kemu's own files have among their first bytes."""


@contextmanager
def forcing(force: bool) -> Iterator[None]:
    """A block in which any file may be replaced, if ``force``: the command was given --force."""
    token = _forced.set(force)
    try:
        yield
    finally:
        _forced.reset(token)


def is_ours(target: Path, data: bytes) -> bool:
    """Whether kemu wrote the existing file: in this process, or by its first bytes, which name kemu
    or are those of ``data``."""
    if target.resolve() in _written:
        return True
    with target.open("rb") as file:
        head = file.read(HEAD)
    line = head.partition(b"\n")[0]
    same = line == data.partition(b"\n")[0] and not line.startswith(b"<?xml")
    return not head or SIGNATURE in head or same


def replace_file(path: str, data: bytes, command: str, about: str = "file") -> None:
    """Replace the file as a whole or not at all.

    Raises UsageError, whose text starts with `command`, about its argument `about`, if the file
    cannot be written, is not a regular file, or is one that kemu did not write (see `forcing`)."""
    target, part = Path(path), Path(f"{path}.part")
    try:
        if target.exists() and not target.is_file():
            raise UsageError(
                f"{command}: '{path}' is not a file",
                hint="name a file that can be replaced",
                about=about,
            )
        if target.exists() and not _forced.get() and not is_ours(target, data):
            raise UsageError(
                f"{command}: '{path}' exists, and kemu did not write it",
                hint="choose another name; --force replaces it",
                about=about,
            )
        part.write_bytes(data)
        part.replace(target)
        _written.add(target.resolve())
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):  # what the user is told is why it could not be written
            part.unlink(missing_ok=True)
        raise UsageError(
            f"{command}: cannot write '{path}': {getattr(error, 'strerror', None) or error}",
            hint=near_file(path),
            about=about,
        ) from error
