"""What a file, a lesson, a recording or memory holds never reaches a terminal as a control
sequence."""

import re
import subprocess
import sys
from io import StringIO

import pytest

from kemu.api import Session
from kemu.commands.run import run
from kemu.front.terminal.output import TextOutput
from kemu.views.style import PLAIN, ROLES, harmless

HOSTILE = "\x1b]0;PWN\x07\x1b[2J\x9b31m\u202e\x7f\x08"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
OWN = re.compile("\x1b\\[(0|" + "|".join(ROLES.values()) + ")m")

SETUP = (
    f'mkfile "/{HOSTILE}" 2p; spawn app; mmap app 0x10000 2p r file "/{HOSTILE}"; read app 0x10000; '
    f'mmap app 0x20000 1p rw; write app 0x20000 "{HOSTILE}"; open app "/{HOSTILE}"'
)
LOOKS = [
    "ls", "maps app", "smaps app", "maps app proc", "smaps app proc", "mm app", "trace", "trace all",
    "calls events", "graph mm app", "graph rmap pfn(app,0x10000)", "graph layout app", "diff 0 end",
    "why pte app 0x10000", "history frame pfn(app,0x10000)", "dump app 0x20000 32", "transcript",
    "read app 0x20000 32", "timelines", "frame pfn(app,0x10000)", "rmap pfn(app,0x10000)", "vma app",
    f'open app "/no{HOSTILE}"', f'exec app "/no{HOSTILE}"; why errno', f'alias x "{HOSTILE}"; alias',
    f'"{HOSTILE}"', f'mkfile "/{HOSTILE}" zz',
]  # fmt: skip


@pytest.fixture(scope="module")
def prepared():
    session = Session()
    assert all(result.ok for result in run(session, SETUP))
    return session


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("look", LOOKS)
def test_no_control_sequence_is_written_but_those_of_colours(prepared, look, colour):
    out, err = StringIO(), StringIO()
    output = TextOutput(out, err, PLAIN._replace(colour=colour))
    for result in run(prepared, look):
        output.show(result, prepared, "")
    output.flush()
    written = out.getvalue() + err.getvalue()
    assert written.strip()
    rest = OWN.sub("", written) if colour else written
    assert CONTROL.search(rest) is None, ascii(rest)


def test_what_is_escaped_can_still_be_read():
    assert harmless("a\x1b[2Jb\tc\nd\u202e\x9b") == "a\\x1b[2Jb\tc\nd\\u202e\\x9b"
    painted = PLAIN._replace(colour=True).paint("no", "error")
    assert harmless(painted, colour=True) == painted
    assert "\x1b" not in harmless(painted)
    assert "\x1b" not in harmless("\x1b[8m hidden", colour=True)


LESSON = """+++
format = 1
id = "bad/words"
title = "T{0}"
goal = "G{0}"
+++
Text{0}

```check state
id = "one"
ask = "Start app.{0}"
hints = ["H{0}"]
must = [{{ that = "alive(app)", say = "S{0}" }}]
solution = ["spawn app"]
explain = "E{0}"
```
"""


@pytest.mark.parametrize("words", [["start"], ["preview"], ["check"]])
def test_a_lesson_controls_no_terminal(tmp_path, words):
    path = tmp_path / "bad.md"
    body = "".join(f"\\u{ord(c):04x}" for c in HOSTILE)
    head, _, step = LESSON.partition("Text{0}")
    path.write_text(head.format(body) + f"Text{HOSTILE}" + step.format(body), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "kemu", "lesson", *words, str(path)],
        input="check\nhint\nspawn app\ncheck\n",
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        env={"KEMU_HOME": str(tmp_path / "home"), "PATH": "", "PYTHONUTF8": "1"},
        timeout=60,
        check=False,
    )
    assert done.stdout + done.stderr
    assert CONTROL.search(done.stdout + done.stderr) is None, ascii(done.stdout + done.stderr)


def test_a_script_that_is_a_device_is_refused():
    done = subprocess.run(
        [sys.executable, "-m", "kemu", "run", "/dev/zero"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "is a device" in done.stderr


def test_a_carriage_return_in_a_command_is_saved_and_restored(tmp_path):
    session = Session()
    file = tmp_path / "cr.kemu"
    session.run(f'spawn app; mmap app 0x10000 1p rw; write app 0x10000 "a\rb"; save {file}')
    assert session.run(f"restore {file}")[0].ok


def test_a_script_from_windows_runs(tmp_path):
    file = tmp_path / "dos.kemu"
    file.write_bytes(b"spawn app\r\nps\r\n")
    assert Session().run(f"run {file}")[-1].ok
