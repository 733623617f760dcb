r"""Where kemu keeps files between runs: the state folder (history) and the configuration folder.

    KEMU_HOME                         both, where it is set
    XDG_STATE_HOME/kemu               else ~/.local/state/kemu        (Windows: %LOCALAPPDATA%\kemu)
    XDG_CONFIG_HOME/kemu              else ~/.config/kemu             (Windows: %APPDATA%\kemu)

A folder that cannot be written causes a warning, never a failure. Files are written atomically.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def state_folder() -> Path:
    """The folder for history and progress; it need not exist."""
    return _folder("LOCALAPPDATA", "XDG_STATE_HOME", ".local/state")


def config_folder() -> Path:
    """The folder for settings that the user wrote; it need not exist."""
    return _folder("APPDATA", "XDG_CONFIG_HOME", ".config")


def _folder(windows: str, xdg: str, fallback: str) -> Path:
    own = os.environ.get("KEMU_HOME")
    if own:
        return Path(own)
    base = os.environ.get(windows if sys.platform == "win32" else xdg, "")
    if base and Path(base).is_absolute():
        return Path(base) / "kemu"
    try:
        return Path.home() / fallback / "kemu"
    except RuntimeError:  # no home directory: nothing can be kept, which causes a warning
        return Path(os.devnull) / "kemu"


def writable(folder: Path) -> str:
    """Make the folder. Return why files cannot be written there, or an empty string."""
    probe = folder / f".probe-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_text("")
        probe.unlink()
    except (OSError, RuntimeError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""


def trouble(folder: Path) -> str:
    """Why the folder could not be written, or an empty string. Makes nothing."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        return "Not a directory"
    return "" if os.access(place, os.W_OK | os.X_OK) else "Permission denied"


def write_atomically(path: Path, text: str) -> None:
    """Replace the file's content by `text`. Raises OSError; the old content is then intact."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_text(text, encoding="utf-8", errors="surrogateescape")
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
