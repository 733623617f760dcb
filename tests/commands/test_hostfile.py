"""A file of the host is replaced as a whole, or left alone."""

import pytest

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
    with pytest.raises(UsageError, match=r"save: (cannot write|'.*' is no file)"):
        replace_file(str(tmp_path / name) if name else str(tmp_path), b"new", "save")
    assert [path.name for path in tmp_path.iterdir()] == ["sub"]
