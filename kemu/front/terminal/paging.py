"""Shows long output at a terminal page by page.

    $PAGER where it is set    else `less -FRX`, if it can draw  else a page at a time by kemu itself

`-X` keeps what is on the screen, `-R` keeps colour, `-F` leaves at once if it fits after all, `-E`
leaves at the end.  A user who types on without noticing the pager must not save a file or start a
program: kemu runs `less` in secure mode. `set paging off` prints everything.

In a lesson the user may already be typing the next answer, so its texts never go to a pager that
would swallow it: kemu shows them itself (`show_pages`), always prints the question or the verdict,
and returns the line that was typed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from shutil import which
from typing import TextIO

KEPT = 2
"""Screen lines kept free for the prompt and the toolbar."""

FALLBACK_ROWS = 24
LESS = ("less", "-EFRX", "-Ps-- more\\: Space the next page, q back to kemu -- ")
SECURE = {"LESSSECURE": "1"}
MORE = "-- more: Enter, a all, q stop -- "
MORE_OF_LESSON = {
    "en": "-- more: Enter; q to the end; or type on -- ",
    "zh-CN": "-- 还有内容：按回车继续；q 跳到末尾；也可以直接输入 -- ",
}
"""The prompt between two pages of a lesson, by language."""


def rows_of(stream: TextIO) -> int:
    """The height of the terminal in lines."""
    try:
        return os.get_terminal_size(stream.fileno()).lines or FALLBACK_ROWS
    except (OSError, ValueError):
        return FALLBACK_ROWS


def is_long(text: str, stream: TextIO) -> bool:
    """Whether the text needs more than one screen."""
    return text.count("\n") + 1 > rows_of(stream) - KEPT


def pager() -> tuple[str, ...]:
    """The pager with its arguments; empty if there is none. Raises ValueError for a $PAGER that
    is not a command line."""
    asked = os.environ.get("PAGER", "").strip()
    if asked:
        words = tuple(shlex.split(asked))
        return LESS if words == ("less",) else words
    able = os.environ.get("TERM", "dumb") != "dumb"
    return LESS if able and which(LESS[0]) else ()


def show_paged(text: str, out: TextIO, ask: Callable[[str], str] = input) -> None:
    """Show the text through the pager."""
    out.flush()
    try:
        words = pager()
        if words and _through(words, text, out.encoding or "utf-8"):
            return
    except (OSError, ValueError) as error:
        sys.stderr.write(
            f"warning: the pager cannot be used: {error}; set paging off prints everything\n"
        )
    _by_pages(text, out, ask)


def _through(words: tuple[str, ...], text: str, encoding: str) -> bool:
    """Show the text with the program; False if that failed. While it runs, Ctrl-C goes to the
    program."""
    environment = os.environ | (SECURE if words == LESS else {})
    process = subprocess.Popen(words, stdin=subprocess.PIPE, env=environment)  # noqa: S603 - the user's own choice of a pager
    data = text.encode(encoding, "backslashreplace") + b"\n"
    while True:
        try:
            process.communicate(data)
        except KeyboardInterrupt:
            data = b""
            continue
        except BrokenPipeError:
            process.wait()
        return process.returncode != 127


def show_pages(
    text: str,
    last: int,
    out: TextIO,
    ask: Callable[[str], str] | None = None,
    language: str = "en",
) -> str:
    """Show a lesson's text a page at a time; `q` and Ctrl-C go to its `last` lines at once, which
    are shown whatever happens. Any other line that is typed ends the paging: the rest is shown, and
    the line is returned."""
    lines = text.split("\n")
    kept = len(lines) - last
    page, at = max(rows_of(out) - KEPT, 2), 0
    while at < len(lines):
        out.write("\n".join(lines[at : at + page]) + "\n")
        out.flush()
        at += page
        if at < len(lines):
            typed = _asked(out, ask or input, MORE_OF_LESSON.get(language, MORE_OF_LESSON["en"]))
            if typed == "q":
                at, page = max(at, kept), len(lines)
            elif typed:
                out.write("\n".join(lines[at:]) + "\n")
                return typed
    return ""


def _asked(out: TextIO, ask: Callable[[str], str], prompt: str) -> str:
    """What is typed between two pages of a lesson; `q` for Ctrl-C and Ctrl-D, nothing for keys such
    as arrows."""
    try:
        typed = ask(prompt).strip()
        return typed if typed.isprintable() else ""
    except (EOFError, KeyboardInterrupt):
        out.write("\n")
        return "q"


def _by_pages(text: str, out: TextIO, ask: Callable[[str], str]) -> None:
    """Show a page, ask, show the next page."""
    lines = text.split("\n")
    page = max(rows_of(out) - KEPT, 2)
    while lines:
        shown, lines = lines[:page], lines[page:]
        out.write("\n".join(shown) + "\n")
        out.flush()
        if not lines:
            return
        try:
            answer = ask(MORE).strip().lower()
        except (EOFError, KeyboardInterrupt):
            out.write("\n")
            return
        if answer == "q":
            return
        if answer == "a":
            page = len(lines)
