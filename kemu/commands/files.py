"""Commands about files: bring one in, list them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kemu.commands import kinds
from kemu.commands.spec import CHANGE, command, keyword, one
from kemu.errors import UsageError
from kemu.readings import FileList, FileRow, Text

if TYPE_CHECKING:
    from kemu.session import Session

LARGEST = 256 << 20
"""Bytes of a file that `load` takes at most."""


@command(
    "load",
    arguments=(one("host", kinds.HOST_PATH),),
    options=(keyword("path", kinds.PATH, "as"),),
    group="doing",
    effect=CHANGE,
    host=True,
    summary="bring a file of the host into kemu",
    more="It becomes a file on disk whose pages are in the page cache, clean. Without as its path is / and its name.",
    examples=("help load", "load 'missing' # fails: there is no such file"),
    linux="the page cache",
)
def load(session: Session, host: str, path: str | None) -> Text:
    """Read the file and put it into the file system."""
    data = _content(host)
    target = path or "/" + Path(host).name
    session.load(target, data)
    return Text((f"{target}: {len(data)} bytes",))


def _content(host: str) -> bytes:
    """The bytes of a regular file. Raises UsageError."""
    try:
        path = Path(host)
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "is no file" if path.exists() else "does not exist"
            raise UsageError(f"load: '{host}' {what}", hint="the path is one of the host, such as ./a.out")
        if path.stat().st_size > LARGEST:
            raise UsageError(f"load: '{host}' has {path.stat().st_size} bytes", hint=f"at most {LARGEST}")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"load: cannot read '{host}': {getattr(error, 'strerror', None) or error}") from error


@command(
    "ls",
    group="looking",
    summary="the files inside kemu",
    examples=("ls", "spawn app; mmap app 1p rw shared; ls"),
    linux="ls(1)",
)
def ls(session: Session) -> FileList:
    """Path, kind, size and cached pages of each file."""
    return FileList(tuple(FileRow(*row) for row in session.file_list()))
