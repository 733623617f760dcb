"""The files of the project: what would be committed, and the Markdown among them."""

import re
import shutil
import subprocess
from pathlib import PurePosixPath

from tests.structure.sources import ROOT

LEFT_BEHIND = {".git", ".venv", ".venv-ci", "__pycache__", "build", "dist", ".hypothesis"}
BROKEN_ON_PURPOSE = ROOT / "tests" / "lessons" / "broken"
"""Lessons that are wrong in one way each: no pages of the project."""
FENCE = re.compile(r"^\s*(```|~~~)")


def project_files(root=ROOT):
    """Paths of the files under ``root``: those that git knows or would add; where git cannot say,
    all but what tools leave."""
    names = _known_to_git(root) if (root / ".git").exists() and shutil.which("git") else []
    if names:
        return sorted({root / name for name in names if (root / name).is_file()})
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file() and not any(_left_behind(part) for part in path.relative_to(root).parts)
    )


def _known_to_git(root):
    """Names relative to ``root``; none if git refuses (a checkout that belongs to somebody
    else)."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    return [name for name in done.stdout.decode().split("\0") if name]


def _left_behind(part):
    return part in LEFT_BEHIND or part.endswith((".egg-info", "_cache"))


def markdown(root=ROOT):
    """(path relative to root, text) of every Markdown page."""
    pages = [
        path
        for path in project_files(root)
        if path.suffix == ".md" and BROKEN_ON_PURPOSE not in path.parents
    ]
    return [
        (PurePosixPath(path.relative_to(root).as_posix()), path.read_text(encoding="utf-8"))
        for path in pages
    ]


def prose(text):
    """(line number, line) of a page without its fenced blocks."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        opening = FENCE.match(line)
        if opening and not fence:
            fence = opening[1]
        elif opening and opening[1] == fence:
            fence = ""
        elif not fence:
            yield number, line
