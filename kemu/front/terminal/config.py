"""Settings kept between runs: the file `config`, written by the user, and `aliases`, written by
kemu.

    set paging off
    alias look walk app 0x10000
    context short changes picture

Both hold shell commands, one per line, of the kind that does not change the machine. They are read
only at an interactive terminal: a script behaves the same for every user.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kemu.commands.run import run
from kemu.commands.settings import OF_THE_SESSION
from kemu.commands.table import ALIASES
from kemu.front.folders import config_folder, writable, write_atomically

if TYPE_CHECKING:
    from kemu.experiment.session import Session

ALLOWED = frozenset({"set", "alias", "unalias", "context", "display"})
MOST_LINES = 1000

HEAD = "# kemu writes this file when alias or unalias is used at the prompt"


class Config:
    """The two files in `folder`. `warnings` are lines about what could not be read or written."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or config_folder()
        self.warnings: list[str] = []
        self.kept: dict[str, str] = {}

    def load(self, session: Session) -> None:
        """Run the lines of both files; a line that fails causes a warning that names its place."""
        for name in ("config", "aliases"):
            self._run_file(session, self.folder / name)
        self.kept = dict(session.desk.aliases)
        session.desk.shown.clear()

    def _run_file(self, session: Session, path: Path) -> None:
        for number, line in enumerate(self._lines(path), 1):
            problem = self._run(session, line)
            if problem:
                self.warnings.append(f"warning: {path}:{number}: {problem}")

    def _lines(self, path: Path) -> list[str]:
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self.warnings.append(f"warning: {path} cannot be read: {error.strerror}")
            return []
        if len(lines) > MOST_LINES:
            self.warnings.append(f"warning: {path}: only the first {MOST_LINES} lines are read")
        return lines[:MOST_LINES]

    def _run(self, session: Session, line: str) -> str:
        """Run one line. Return what is wrong with it, or an empty string."""
        words = line.split()
        if not words or words[0].startswith("#"):
            return ""
        if ALIASES.get(words[0], words[0]) not in ALLOWED or ";" in line:
            return f"only {', '.join(sorted(ALLOWED))} may be used here, one per line"
        if words[0] == "set" and len(words) > 1 and words[1] not in OF_THE_SESSION:
            return f"{words[1][:40]} belongs to the machine; a script can set it"
        error = next((result.error for result in run(session, line) if result.error), None)
        return error.what if error else ""

    def keep(self, session: Session) -> str:
        """Write the aliases if they have changed. Return a warning the first time this fails."""
        if session.desk.aliases == self.kept:
            return ""
        self.kept = dict(session.desk.aliases)
        trouble = writable(self.folder)
        if not trouble:
            lines = [HEAD, *(f"alias {name} {text}" for name, text in session.desk.aliases.items())]
            try:
                write_atomically(self.folder / "aliases", "\n".join(lines) + "\n")
            except OSError as error:
                trouble = error.strerror or str(error)
        return f"warning: aliases are not kept: {self.folder}: {trouble}" if trouble else ""
