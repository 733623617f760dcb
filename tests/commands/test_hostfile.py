"""A file of the host is replaced as a whole, or left alone."""

import os

import pytest

from kemu.api import Session
from kemu.commands.hostfile import replace_file
from kemu.errors import UsageError


def test_a_file_is_replaced(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old and longer")
    replace_file(str(path), b"new", "save")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_replaced_stays_and_nothing_else_does(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def full(self, _data):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(UsageError, match=r"save: cannot write '.*x': No space left on device"):
        replace_file(str(path), b"new", "save")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["", "sub", "\0", "no/such/x", "x" * 300])
def test_what_is_no_file_is_refused(tmp_path, name):
    (tmp_path / "sub").mkdir()
    with pytest.raises(UsageError, match=r"save: (cannot write|'.*' is not a file)"):
        replace_file(str(tmp_path / name) if name else str(tmp_path), b"new", "save")
    assert [path.name for path in tmp_path.iterdir()] == ["sub"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the host has no pipes with a name")
@pytest.mark.parametrize("command", ["run", "restore"])
def test_commands_are_read_from_files_only(tmp_path, command):
    os.mkfifo(tmp_path / "pipe")
    session = Session()
    for name, what in (
        ("pipe", "is not a file"),
        ("", "is a folder"),
        ("nosuch", "cannot read"),
        ("x" * 300, "cannot read"),
    ):
        with pytest.raises(UsageError, match=what) as caught:
            session.run(f"{command} '{tmp_path / name}'")
        assert caught.value.what.startswith(f"{command}: ")
    assert session.end == 0


@pytest.mark.parametrize("command", ["run", "restore"])
def test_files_that_run_each_other_end_and_are_named_once(tmp_path, command):
    one, other = tmp_path / "one.kemu", tmp_path / "other.kemu"
    one.write_text(f"{command} '{other}'\n")
    other.write_text(f"spawn a\n{command} '{one}'\n")
    session = Session()
    with pytest.raises(UsageError, match=r"files deep|name") as caught:
        session.run(f"{command} '{one}'")
    assert caught.value.what.count("one.kemu:1: ") <= 1
    assert session.desk.depth == 0


def test_a_file_that_restores_itself_ends(tmp_path):
    path = tmp_path / "self.kemu"
    path.write_text(f"spawn a\nrestore '{path}'\n")
    session = Session()
    with pytest.raises(UsageError, match=r"^.*self.kemu:2: restore: more than 16 files deep$"):
        session.run(f"restore '{path}'")
    assert session.desk.depth == 0
    assert session.run("spawn b")


@pytest.mark.parametrize("path", ["/", "/d/", "/d/.", "/d/.."])
@pytest.mark.parametrize("command", ["load '{}' as {}", "mkfile {1} 1p"])
def test_a_file_inside_kemu_has_a_name(command, path):
    session = Session()
    with pytest.raises(UsageError, match="names a folder, not a file"):
        session.run(command.format(__file__, path))
    assert not session.reading("ls").files
