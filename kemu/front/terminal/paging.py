"""Shows long output at a terminal page by page.

    a page at a time by kemu itself    Enter goes on, q stops, any other line is the next command
    $PAGER where it is set             `PAGER=less` runs `less -EFRX`

A user who types on without noticing the pager loses nothing: the line that was typed is returned
and run. With `less`, `-X` keeps what is on the screen, `-R` keeps colour, `-F` leaves at once if it
fits after all, `-E` leaves at the end; it runs in secure mode, so that no key saves a file or
starts a program. `set paging off` prints everything.

The texts of a lesson never go to $PAGER, which would swallow the next answer; their question or
verdict is always printed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import TextIO

KEPT = 2
"""Screen lines kept free for the prompt and the toolbar."""

FALLBACK_ROWS = 24
LESS = ("less", "-EFRX", "-Ps-- more\\: Space the next page, q back to kemu -- ")
SECURE = {"LESSSECURE": "1"}
MORE = "-- more: Enter; q stops; or type on -- "
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
    """$PAGER with its arguments; empty if it is not set. Raises ValueError for one that is not a
    command line."""
    words = tuple(shlex.split(os.environ.get("PAGER", "").strip()))
    return LESS if words == ("less",) else words


def show_paged(text: str, out: TextIO, ask: Callable[[str], str] = input) -> str:
    """Show the text through $PAGER, or page by page; return the command that was typed meanwhile,
    or an empty text."""
    out.flush()
    try:
        words = pager()
        if words and _through(words, text, out.encoding or "utf-8"):
            return ""
    except (OSError, ValueError) as error:
        sys.stderr.write(
            f"warning: the pager cannot be used: {error}; set paging off prints everything\n"
        )
    return show_pages(text, 0, out, ask)


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
    language: str = "",
) -> str:
    """Show the text a page at a time; `q` and Ctrl-C go to its `last` lines at once, those of a
    lesson that are shown whatever happens. Any other line that is typed ends the paging and is
    returned; of a lesson, whose `language` is given, the rest is shown."""
    lines = text.split("\n")
    kept = len(lines) - last
    page, at = max(rows_of(out) - KEPT, 2), 0
    while at < len(lines):
        out.write("\n".join(lines[at : at + page]) + "\n")
        out.flush()
        at += page
        if at < len(lines):
            lesson = MORE_OF_LESSON.get(language, MORE_OF_LESSON["en"])
            typed = _asked(out, ask or input, lesson if language else MORE)
            if typed == "q":
                at, page = max(at, kept), len(lines)
            elif typed:
                out.write("\n".join(lines[at:]) + "\n" if language else "")
                return typed
    return ""


def _asked(out: TextIO, ask: Callable[[str], str], prompt: str) -> str:
    """What is typed between two pages; `q` for Ctrl-C and Ctrl-D, nothing for keys such
    as arrows."""
    try:
        typed = ask(prompt).strip()
        return typed if typed.isprintable() else ""
    except (EOFError, KeyboardInterrupt):
        out.write("\n")
        return "q"
