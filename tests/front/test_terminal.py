"""The shell at a real (pseudo-)terminal: prompt, completion by Tab, Ctrl-C, Ctrl-D."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time

import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals exist on Unix only")

PATIENCE = 30
"""Seconds until an expected text must have appeared."""

_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][0-9A-B]|\x1b[=>]|\x1b\][^\x07]*\x07")


class Terminal:
    """kemu behind a pseudo-terminal of 80 columns and 24 lines."""

    def __init__(self, *words, **environment):
        import fcntl
        import struct
        import termios

        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment_of_kemu = {
            **os.environ,
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "PYTHONUTF8": "1",
            "PAGER": "cat",
        }
        environment = {**environment_of_kemu, **environment}
        command = [sys.executable, "-m", "kemu", *words]
        ends = {"stdin": slave, "stdout": slave, "stderr": slave}
        self.process = subprocess.Popen(
            command, **ends, env=environment, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - Ctrl-C needs a terminal of its own
        )  # fmt: skip
        os.close(slave)
        self.raw = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def type(self, text):
        os.write(self.master, text.encode())

    def resize(self, rows, columns):
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def see(self, text):
        """Wait until the text has appeared behind what was seen before."""
        deadline = time.monotonic() + PATIENCE
        while text not in _SEQUENCES.sub("", self.raw):
            assert time.monotonic() < deadline, f"no {text!r} in {self.raw!r}"
            self.read()
        plain = _SEQUENCES.sub("", self.raw)
        seen, self.raw = self.raw, plain.split(text, 1)[1]
        return seen

    def end(self):
        """The exit code. What is still written must be read, or the process waits for its
        terminal."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        return self.process.returncode

    def read(self):
        if select.select([self.master], [], [], 0.2)[0]:
            try:
                self.raw += os.read(self.master, 65536).decode("utf-8", "replace")
            except OSError:
                time.sleep(0.1)


def test_a_person_works_at_a_terminal():
    with Terminal() as terminal:
        banner = terminal.see("kemu #0>")
        assert "help lists commands" in _SEQUENCES.sub("", banner)
        terminal.type("spa\t")
        terminal.see("wn")
        terminal.type(" app\r")
        terminal.see("spawn -> 3")
        terminal.see("app>")
        terminal.type("mmap app 3q rw\r")
        shown = terminal.see("write 3p for three pages")
        assert "error: length: expected bytes or pages, got '3q'" in _SEQUENCES.sub("", shown)
        terminal.type("mmap app 0x10000 1p rw\r")
        terminal.see("mmap -> 0x10000")
        terminal.see("maps of app")
        terminal.see("app>")
        terminal.type("half a comm\x03")
        terminal.see("app>")
        terminal.type("goto 5\r")
        terminal.see("past>")
        terminal.type("\x04")
        assert terminal.end() == 0


def test_nothing_clears_the_screen_and_nothing_is_grey():
    with Terminal() as terminal:
        everything = terminal.see("#0>")
        terminal.type("half a line\x03")
        everything += terminal.see("#0>")
        for command, answer in (
            ("spawn app", "spawn -> 3"),
            ("ps", "kthreadd"),
            ("layout", "kernel"),
            ("quit", "quit"),
        ):
            terminal.type(command + "\r")
            everything += terminal.see(answer)
        assert terminal.end() == 0
        assert "\x1b[2J" not in everything
        assert "\x1b[H" not in everything
        assert "\x1b[?1049h" not in everything
        colours = set(re.findall(r"\x1b\[([0-9;]*)m", everything))
        assert colours
        parts = {int(part or 0) for colour in colours for part in colour.split(";")}
        assert parts <= {0, 1, 4, 7, *range(30, 38), 39, *range(40, 48), 49}, (
            "one of the 16 ANSI colours, and no grey"
        )


def test_without_a_toolbar_there_is_none():
    with Terminal("--no-toolbar") as terminal:
        shown = terminal.see("#0>")
        terminal.type("quit\r")
        assert terminal.end() == 0
        assert "event 0 of 0" not in shown


FIRST_TIME = [
    ("spawn app\r", "spawn -> 3", "app>"),
    ("mmap app 0x10000 4p rw\r", "rw-p anonymous", "app>"),
    ("walk app 0x1\t", "0000"),
    ("\r", "stops   not present", "app>"),
    ("mm\x1b[A", "mmap app 0x10000 4p rw"),
    ("\x03", "app>"),
    ("\x12", "reverse-i-search"),
    ("spaw", "spawn app"),
    ("\x03", "app>"),
    ("spa", "wn app"),
    ("\x03", "app>"),
    ("mmap app 0x200000 1M rw populate\r", "mmap -> 0x200000", "app>"),
    ("verify\r", "invariants", "app>"),
    ("verify every-event\r",),
    ("\x03", "stopped: nothing is broken before #", "the machine is at #", "app>"),
    ("trace 0 120\r", " PG"),
    ("set paging off\r", "paging: off", "app>"),
    ("alias look walk app 0x10000\r", "look = walk app 0x10000", "app>"),
    ("\x04",),
]
"""What is typed, and what is then seen: completion, history by prefix and by search, a suggestion,
Ctrl-C in a search, paging."""

NEXT_TIME = [
    ("\x1b[A", "alias look walk app 0x10000"),
    ("\x03", "#0>"),
    ("spawn app\r", "app>"),
    ("look\r", "stops   not present", "app>"),
    ("set toolbar off\r", "toolbar: off"),
    ("quit\r",),
]


HUMAN = 0.1
"""Seconds between an answer and the next key: the history is read behind the prompt."""


def talk(script, home):
    """Type the script; what was seen between its last answer and the end is not looked at."""
    pager = f'{sys.executable} -c "import sys; print(len(sys.stdin.read().splitlines()), chr(80) + chr(71))"'
    with Terminal(KEMU_HOME=str(home), PAGER=pager) as terminal:
        terminal.see("#0>")
        for keys, *answers in script:
            time.sleep(HUMAN)
            terminal.type(keys)
            for answer in answers:
                terminal.see(answer)
            if not answers:
                time.sleep(10 * HUMAN)
        return terminal.end()


def test_a_session_from_the_first_start_to_the_next_one(tmp_path):
    assert talk(FIRST_TIME, tmp_path / "home") == 0
    assert talk(NEXT_TIME, tmp_path / "home") == 0


def test_another_width_is_taken_at_the_next_command():
    with Terminal() as terminal:
        terminal.see("#0>")
        terminal.resize(30, 60)
        terminal.type("help\r")
        terminal.see("explains a command")
        terminal.type("spawn app; walk app 0x10000\r")
        shown = _SEQUENCES.sub("", terminal.see("N no execute"))
        assert (
            max(len(line) for line in shown.split("\r\n") if "bits" in line or "execute" in line)
            <= 60
        )
