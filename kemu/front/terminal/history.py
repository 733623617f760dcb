"""The history of the prompt: one command per line in the state folder, the newest last.

A line is appended by one write; a file that has grown too long is shortened once, atomically, when
it is read. A file that cannot be read or written is a warning, said once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History

from kemu.front.folders import state_folder, writable, write_atomically

LONGEST = 5000
"""Number of lines kept."""


class StateHistory(History):
    """History in the state folder; `warning` says why it is not kept or not read, or is empty."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__()
        self.folder = folder or state_folder()
        self.path = self.folder / "history"
        trouble = writable(self.folder)
        self.warning = f"warning: history is not kept: {self.folder}: {trouble}" if trouble else ""
        self.said = ""

    def news(self) -> str:
        """The warning, the first time that it is asked for."""
        known, self.said = self.said, self.warning
        return self.warning if self.warning != known else ""

    def load_history_strings(self) -> Iterable[str]:
        """The kept lines, newest first."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self.warning = (
                self.warning or f"warning: history is not read: {self.path}: {error.strerror}"
            )
            return []
        kept = [line for line in lines if line.strip()]
        if len(kept) > LONGEST:
            kept = kept[-LONGEST // 2 :]
            self._shorten(kept)
        return reversed(kept)

    def _shorten(self, kept: list[str]) -> None:
        try:
            write_atomically(self.path, "\n".join(kept) + "\n")
        except OSError as error:
            self.warning = f"warning: the history could not be shortened: {error.strerror}"

    def store_string(self, string: str) -> None:
        """Append one command."""
        if self.warning or not _commands(string):
            return
        line = "; ".join(_commands(string)).encode("utf-8", "replace") + b"\n"
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)
        except OSError as error:
            self.warning = f"warning: history is not kept: {self.path}: {error.strerror}"


def _commands(text: str) -> list[str]:
    """The lines of a (perhaps pasted) text, without comment lines."""
    return [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]
