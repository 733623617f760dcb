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

    def __init__(self, *words):
        import fcntl
        import struct
        import termios

        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "PYTHONUTF8": "1", "PAGER": "cat"}
        command = [sys.executable, "-m", "kemu", *words]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True)
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
        """The exit code. What is still written must be read, or the process waits for its terminal."""
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
        banner = terminal.see("kemu #0 init>")
        assert "help lists the commands" in banner
        terminal.type("spa\t")
        terminal.see("wn")
        terminal.type(" app\r")
        terminal.see("spawn -> 3")
        terminal.see("app>")
        terminal.type("mmap app 3q rw\r")
        shown = terminal.see("write 3p for three pages")
        assert "error: size: expected bytes or pages, got '3q'" in _SEQUENCES.sub("", shown)
        terminal.type("mmap app 0x10000 1p rw\r")
        terminal.see("mmap -> 0x10000")
        terminal.see("maps of app")
        terminal.see("app>")
        terminal.type("half a comm\x03")
        terminal.see("app>")
        terminal.type("goto 5\r")
        terminal.see("past init>")
        terminal.type("\x04")
        assert terminal.end() == 0


def test_nothing_clears_the_screen():
    with Terminal() as terminal:
        everything = terminal.see("init>")
        for command, answer in (("spawn app", "spawn -> 3"), ("ps", "kthreadd"), ("layout", "kernel"), ("quit", "quit")):
            terminal.type(command + "\r")
            everything += terminal.see(answer)
        assert terminal.end() == 0
        assert "\x1b[2J" not in everything
        assert "\x1b[H" not in everything
        assert "\x1b[?1049h" not in everything


def test_without_a_toolbar_there_is_none():
    with Terminal("--no-toolbar") as terminal:
        shown = terminal.see("init>")
        terminal.type("quit\r")
        assert terminal.end() == 0
        assert "event 0 of 0" not in shown
