"""The state folder: where it is, and that an unwritable one costs nothing but the history."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.api import Session
from kemu.front import folders
from kemu.front.terminal.config import Config
from kemu.front.terminal.history import LONGEST, StateHistory


def test_kemu_home_wins_over_everything(monkeypatch, tmp_path):
    monkeypatch.setenv("KEMU_HOME", str(tmp_path))
    assert folders.state_folder() == tmp_path
    assert folders.config_folder() == tmp_path


def test_xdg_folders_are_used_where_they_are_absolute(monkeypatch, tmp_path):
    monkeypatch.delenv("KEMU_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert folders.state_folder() == tmp_path / "kemu"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert folders.state_folder() == Path("~/.local/state/kemu").expanduser()


def test_a_user_without_a_home_is_a_warning(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    for name in ("KEMU_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(folders.Path, "home", nowhere)
    assert StateHistory().warning.startswith("warning: history is not kept")
    assert Config().keep(Session()) == ""


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "history"
    path.write_text("old")
    folders.write_atomically(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        folders.write_atomically(path, "newer")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_history_is_kept_between_runs_newest_first(tmp_path):
    first = StateHistory(tmp_path / "state")
    first.store_string("spawn app")
    first.store_string("# pasted\nfork app as kid\n\nps\n")
    first.store_string("# nothing but a comment")
    assert list(StateHistory(tmp_path / "state").load_history_strings()) == [
        "fork app as kid; ps",
        "spawn app",
    ]


def test_a_long_history_is_shortened(tmp_path):
    path = tmp_path / "history"
    path.write_text("".join(f"ps {n}\n" for n in range(LONGEST + 1)))
    loaded = list(StateHistory(tmp_path).load_history_strings())
    assert loaded[0] == f"ps {LONGEST}"
    assert len(loaded) == LONGEST // 2
    assert path.read_text().count("\n") == LONGEST // 2


@pytest.mark.parametrize(
    "make",
    [lambda path: path.write_text("a file"), lambda path: path.mkdir()],
    ids=["file", "folder"],
)
def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path, make):
    place = tmp_path / "place"
    make(place)
    folder = place / "below" if place.is_file() else place
    if place.is_dir():
        (place / "history").mkdir()
    history = StateHistory(folder)
    history.store_string("ps")
    assert history.warning.startswith("warning:")
    assert list(history.load_history_strings()) == []


def test_a_history_that_cannot_be_read_is_said_once(tmp_path):
    (tmp_path / "history").mkdir()
    history = StateHistory(tmp_path)
    assert history.news() == ""
    assert list(history.load_history_strings()) == []
    assert history.news() == f"warning: history is not read: {tmp_path / 'history'}: Is a directory"
    assert history.news() == ""
