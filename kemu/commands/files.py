"""Commands about the files inside kemu: load, mkfile, ls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kemu.commands.hostfile import near_file
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.spec import CHANGE, command, flags, keyword, maybe, one
from kemu.readings import FileList, FileRow, Text

if TYPE_CHECKING:
    from kemu.experiment.session import Session

LARGEST = 256 << 20
"""Largest file that `load` and `mkfile` accept, in bytes."""


@command(
    "load",
    arguments=(one("host", kinds.HOST_PATH),),
    options=(keyword("path", kinds.PATH, "as"),),
    effect=CHANGE,
    host=True,
    summary="copy a file of the host into kemu",
    more="It becomes a file on disk whose pages are clean in the page cache. The default path "
    "is / and the name of the file.",
    examples=(
        "spawn app; save story.kemu; load story.kemu as /story; ls",
        "spawn app; save s.kemu; load s.kemu as /s; mmap app 0x10000 1p r file /s; ls",
    ),
    linux="the page cache",
)
def load(session: Session, host: str, path: str | None) -> Text:
    """Read the file and put it into the file system."""
    target = _of_a_file(path or "/" + Path(host).name)
    data = _content(host)
    session.load(target, data)
    return Text((f"{target}: {len(data)} bytes",))


def _of_a_file(path: str) -> str:
    """The path, which must end in a name. Raises UsageError."""
    if path.rsplit("/", 1)[-1] in ("", ".", ".."):
        raise UsageError(
            f"path: '{path}' names a folder, not a file",
            hint="end the path with a file name, such as /bin/a.out",
            about="path",
        )
    return path


def _content(host: str) -> bytes:
    """The bytes of a regular file. Raises UsageError."""
    try:
        path = Path(host)
        if not path.is_file():
            what = (
                "is a folder"
                if path.is_dir()
                else "is not a file"
                if path.exists()
                else "does not exist"
            )
            raise UsageError(
                f"load: '{host}' {what}",
                hint=(
                    "give a path of the host, such as ./a.out" if path.exists() else near_file(host)
                ),
                about="host",
            )
        if path.stat().st_size > LARGEST:
            raise UsageError(
                f"load: '{host}' is too large: {path.stat().st_size} bytes",
                hint=f"at most {LARGEST}",
                about="host",
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"load: cannot read '{host}': {getattr(error, 'strerror', None) or error}",
            hint=near_file(host),
            about="host",
        ) from error


@command(
    "mkfile",
    arguments=(one("path", kinds.PATH), one("size", kinds.SIZE), maybe("seed", kinds.EXIT_CODE)),
    options=(
        flags("kind", ("disk", "tmpfs"), "on disk, or in memory"),
        flags("form", ("sparse",), "allocate no pages"),
        keyword("content", kinds.DATA, "with"),
    ),
    effect=CHANGE,
    summary="make a file inside kemu",
    more="with DATA begins the file with these bytes, followed by zeros. Otherwise page i is "
    "filled with the byte 0x10*(k+1)+i, where k counts the files made so far, or is SEED; of a "
    "larger number the low eight bits. On disk (the default) its pages are cached and clean; with "
    "tmpfs the file is in memory. sparse allocates no pages.",
    examples=(
        "mkfile /data 2p; ls",
        "mkfile /hi 1p with 'hi'; spawn app; mmap app 0x10000 1p r file /hi; read app 0x10000 2",
        "mkfile /x 1p tmpfs; spawn app; mmap app 0x10000 1p rw file /x shared; read app 0x10000",
    ),
    linux="fallocate(1), dd(1)",
)
def mkfile(
    session: Session,
    *,
    path: str,
    size: int,
    seed: int | None,
    kind: tuple[str, ...],
    form: tuple[str, ...],
    content: bytes | None,
) -> Text:
    """Make a file whose bytes tell its pages apart."""
    if size > LARGEST:
        raise UsageError(
            f"size: {size:#x} bytes are too many for a file",
            hint=f"at most {LARGEST:#x}",
            about="size",
        )
    _of_a_file(path)
    number = session.files_made() if seed is None else seed
    data = (
        (content or b"").ljust(size, b"\0")
        if content is not None
        else b""
        if form
        else b"".join(
            bytes([0x10 * (number + 1) + page & 0xFF]) * 4096
            for page in range((size + 4095) // 4096)
        )
    )
    session.make_file(path, kind[-1] if kind else "disk", data[:size], size)
    return Text((f"{path}: {size} bytes",))


@command(
    "ls",
    summary="the files inside kemu",
    examples=("ls", "spawn app; mmap app 1p rw shared; ls"),
    linux="ls(1)",
)
def ls(session: Session) -> FileList:
    """Path, kind, size and cached pages of each file."""
    return FileList(tuple(FileRow(*row) for row in session.file_list()))
