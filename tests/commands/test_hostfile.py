"""A file of the host is replaced as a whole, or left alone."""

import os

import pytest

from kemu.api import Session
from kemu.commands import hostfile
from kemu.commands.hostfile import replace_file
from kemu.errors import UsageError
from tests.kernel.elf import tiny_elf


def test_a_file_is_replaced(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"kemu, old and longer")
    replace_file(str(path), b"new", "save")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_replaced_stays_and_nothing_else_does(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"kemu: old")

    def full(self, _data):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(UsageError, match=r"save: cannot write '.*x': No space left on device"):
        replace_file(str(path), b"new", "save")
    assert path.read_text() == "kemu: old"
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
    with pytest.raises(UsageError, match=r"files deep|name|may not use") as caught:
        session.run(f"{command} '{one}'")
    assert caught.value.what.count("one.kemu:1: ") <= 1
    assert session.desk.depth == 0


def test_a_file_that_restores_itself_ends(tmp_path):
    path = tmp_path / "self.kemu"
    path.write_text(f"spawn a\nrestore '{path}'\n")
    session = Session()
    with pytest.raises(UsageError, match=r"^.*self.kemu:2: restore: a saved experiment may not"):
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


# ---------------------------------------------------------------- files that are not kemu's

WRITERS = [
    "save {}", "transcript {}", "graph tree -o {}", "graph plot rss -o {}",
    "trace 0 20 --format chrome -o {}", "trace 0 20 --format ftrace -o {}", "report -o {}",
]  # fmt: skip


def ending(command):
    return ".svg" if "plot" in command else ".html" if "report" in command else ".dot"


@pytest.mark.parametrize("command", WRITERS)
def test_a_file_that_kemu_did_not_write_is_replaced_only_with_force(tmp_path, command):
    session = Session()
    session.run("spawn a")
    file = tmp_path / f"main{ending(command)}"
    file.write_text("int main(void) { return 0; }\n")
    with pytest.raises(UsageError, match="kemu did not write it") as caught:
        session.run(command.format(file))
    assert "--force" in caught.value.hint
    assert file.read_text() == "int main(void) { return 0; }\n"
    (done,) = session.run(f"{command.format(file)} --force")
    assert done.ok
    assert "main(void)" not in file.read_text()


@pytest.mark.parametrize("command", WRITERS)
def test_a_file_that_kemu_wrote_is_replaced(tmp_path, command, monkeypatch):
    session = Session()
    session.run("spawn a")
    file = tmp_path / f"mine{ending(command)}"
    for _ in range(2):
        assert session.run(command.format(file))[0].ok
    monkeypatch.setattr(hostfile, "_written", set())  # as by another process
    session.run("spawn b")
    assert session.run(command.format(file))[0].ok


def test_an_empty_file_may_be_filled(tmp_path):
    file = tmp_path / "new.kemu"
    file.touch()
    assert Session().run(f"save {file}")[0].ok


@pytest.mark.parametrize(
    "line",
    ["transcript {}", "save {}", "graph tree -o {}", "report -o {}", "restore {}", "run {}",
     "trace 0 9 --format ftrace -o {}", "on 0 save {}", "spawn b; save {}"],
)  # fmt: skip
def test_a_saved_experiment_uses_no_file_of_the_host(tmp_path, line):
    target, saved = tmp_path / "target.dot", tmp_path / "saved.kemu"
    saved.write_text(f"# kemu experiment\nspawn a\n{line.format(target)}\n")
    session = Session()
    with pytest.raises(UsageError, match="may not use files of the host"):
        session.run(f"restore {saved}")
    assert not target.exists()
    assert len(session.timelines) == 1


def test_a_saved_experiment_may_load_a_program(tmp_path):
    program, saved = tmp_path / "p", tmp_path / "saved.kemu"
    program.write_bytes(tiny_elf())
    saved.write_text(f"# kemu experiment\nload {program} as /p\nspawn a\nexec a /p\nls\n")
    assert Session().run(f"restore {saved}")[0].ok
