"""`|`, `>`, `!` and `py` at the prompt, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from kemu.api import Session
from kemu.commands.run import run
from kemu.errors import UsageError
from kemu.front.cli.options import Options
from kemu.front.terminal.host import piped_part
from kemu.front.terminal.output import TextOutput
from kemu.front.terminal.plain import Runner
from kemu.front.terminal.repl import Repl
from kemu.views.style import PLAIN
from tests.front.test_cli import kemu

COPY = f'{sys.executable} -c "import sys; print(sys.stdin.read().upper())"'


@pytest.fixture
def prompt(tmp_path, monkeypatch):
    """A prompt in a scratch folder; `type` gives a line to it and returns what it printed."""
    monkeypatch.chdir(tmp_path)
    runner = Runner(Options(), Session(), TextOutput(io.StringIO(), io.StringIO(), PLAIN))
    runner.stay = True
    repl = Repl(runner, lambda: "")

    def type_(line):
        runner.output.out.truncate(0), runner.output.err.truncate(0)
        runner.output.out.seek(0), runner.output.err.seek(0)
        repl.line(line)
        return runner.output.out.getvalue() + runner.output.err.getvalue()

    type_("spawn app")
    type_.runner = runner
    return type_


def test_output_goes_through_a_program(prompt, capfd):
    assert prompt(f"maps app | {COPY}") == ""
    assert "[STACK]" in capfd.readouterr().out


def test_output_goes_into_a_file(prompt, tmp_path):
    whole = prompt("maps app")
    said = prompt("maps app > maps.txt")
    assert said == f"maps.txt: {len(whole.splitlines())} lines\n"
    assert (tmp_path / "maps.txt").read_text() == whole
    assert prompt("spawn other; ps > 'a file.txt'").endswith("lines\n")
    assert "other" in (tmp_path / "a file.txt").read_text()


def test_a_file_that_kemu_did_not_write_is_left_alone(prompt, tmp_path):
    mine = tmp_path / "main.c"
    mine.write_text("int main(){}\n")
    said = prompt("ps > main.c")
    assert "kemu did not write it" in said
    assert "--force" not in said
    assert mine.read_text() == "int main(){}\n"
    assert prompt("ps > out.txt") == prompt("ps > out.txt")


def test_a_folder_is_not_written_over(prompt, tmp_path):
    (tmp_path / "folder").mkdir()
    said = prompt("ps > folder")
    assert "error: >: 'folder' is not a file" in said
    assert "^^^^^^" in said


@pytest.mark.parametrize(
    "line",
    [
        "print 1 | 2",
        "print app.rss > 3",
        "watch app.rss > 2",
        "break do_wp_page if app.rss > 2",
        "until app.rss > 0",
        "display app.rss | 4",
        "(app.rss > 2)",
        "3 | 4",
        "app.rss > 2",
        'write app 0x10000 "a | b > c"',
        "ps",
        "mmap app 4p PROT_READ|PROT_WRITE",
    ],
)
def test_in_an_expression_and_in_quotes_the_signs_mean_what_they_mean(line):
    assert piped_part(line) is None


def test_an_expression_is_sent_with_the_target_in_quotes(prompt, tmp_path):
    prompt("print app.rss > 'rss.txt'")
    assert (tmp_path / "rss.txt").read_text() == "$1 = 0\n"


@pytest.mark.parametrize(
    ("line", "said"), [("ps |", "a program is missing"), ("ps >", "a file is")]
)
def test_a_missing_target_is_named(prompt, line, said):
    assert said in prompt(line)


def test_a_failing_command_writes_its_complaint_to_the_screen(prompt, tmp_path, capfd):
    prompt("maps nobody > out.txt")
    assert "no task 'nobody'" in capfd.readouterr().err
    assert (tmp_path / "out.txt").read_text() == ""


def test_a_shell_command_runs(prompt, capfd, tmp_path):
    prompt("! echo hello > said.txt; exit 3")
    assert (tmp_path / "said.txt").read_text() == "hello\n"
    assert "exit code 3" in capfd.readouterr().out
    assert "a command is missing" in prompt("!")


def test_python_works_on_the_session(prompt, capfd):
    prompt("py print(kemu.value('app.rss'), sorted(kemu.tasks))")
    assert capfd.readouterr().out == "0 [0, 1, 2, 3]\n"
    prompt("py kemu.run('mmap app 0x10000 1p rw populate')")
    assert prompt.runner.session.value("app.rss") == 1


def test_python_stays_until_the_end_of_its_input(prompt, capfd, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("x = kemu.value('app.rss')\nprint(x + 40)\n"))
    prompt("py")
    said = capfd.readouterr()
    assert "40" in said.out
    assert "back in kemu" in said.err


@pytest.mark.parametrize("line", ["ps | cat", "ps > out.txt", "! ls", "py", "py 1"])
def test_nothing_reaches_the_host_from_anywhere_else(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = Session()
    results = run(session, line)
    assert results[-1].error is not None
    (tmp_path / "script.kemu").write_text(line + "\n")
    with pytest.raises(UsageError):
        session.run("run script.kemu")
    with pytest.raises(UsageError):
        session.run("restore script.kemu")
    assert kemu("-c", line).returncode == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["script.kemu"]


@pytest.mark.parametrize("line", ["ps | cat", "ps > out.txt", "! ls", "py 1"])
def test_a_lesson_refuses_them(prompt, line, tmp_path):
    prompt("lesson start 1")
    assert "a lesson is being taken" in prompt(line)
    assert not list(tmp_path.glob("out.txt"))
