"""Golden scripts: commands and everything that they show, in one file that reads as a story.

    # The first line is the reason why the script exists.
    spawn parent; mmap parent 0x10000 1p rw
    ---
    spawn -> 3
    mmap -> 0x10000

    [events] write parent 0x10000 "x"
    ---
    ...

A block is commands, `---`, and what they show; a blank line ends it. `[events]`, `[calls]`,
`[diff]` before a command show that of the command instead of its result (several: one after the
other), `[quiet]` shows nothing, `!` says that the command must fail: its error is shown. An empty
line inside the output is written as `.`; a block without `---` must show nothing. The number of a
line of kemu's source is written as N, since it moves with every change above it.

A story shows what it is about, and leaves out the rest:

    [events do_wp_page wp_page_copy] ...   the events in which one of these words occurs
    [diff rss pte] ...                     the differences in which one of them occurs
    [calls do_anonymous_page] ...          this function and what it called, the first time
    [machine cpus=1 mem=8M geometry=sv39]  before all else: the machine, where it is not the usual

    python -m tests.golden.runner --update [NAME ...]     rewrites the outputs, for review
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
"""Scripts that load a file name it from here."""
SCRIPTS = sorted(FOLDER.glob("*.kemu"))
_HEAD = re.compile(
    r"(?P<show>(?:\[(?:events|calls|diff|quiet)[^\]]*\]\s*)*)(?P<fails>!\s*)?(?P<command>.*)"
)
_LINE = re.compile(r"(kemu/[\w/]+\.py:)\d+")
_MACHINE = re.compile(r"^\[machine (.*)\]$", re.MULTILINE)
_SHOW = {"events": "trace", "calls": "calls", "diff": "diff"}
_EMPTY = "."


class Block(NamedTuple):
    """A part of a script: `commands` as written, `output` as expected (lines); `line` counts from
    1."""

    commands: list[str]
    output: list[str]
    line: int


def read(text: str) -> list[Block]:
    """The blocks of a script."""
    blocks = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        start = at
        while at < len(lines) and lines[at].strip() and lines[at] != "---":
            at += 1
        commands = lines[start:at]
        output = []
        if at < len(lines) and lines[at] == "---":
            at += 1
            first = at
            while at < len(lines) and lines[at].strip():
                at += 1
            output = lines[first:at]
        if commands or output:
            blocks.append(Block(commands, output, start + 1))
        at += 1
    return blocks


def write(blocks: list[Block]) -> str:
    """The text of a script."""
    parts = [
        "\n".join([*block.commands, *(["---", *block.output] if block.output else [])])
        for block in blocks
    ]
    return "\n\n".join(parts) + "\n"


def play(text: str) -> list[Block]:
    """The script with the outputs that the commands show now."""
    from kemu.experiment.session import Session

    os.chdir(ROOT)
    session = Session(**machine(text))
    played = []
    for block in read(text):
        shown: list[str] = []
        for line in block.commands:
            shown += show(session, line, block)
        played.append(block._replace(output=[part if part.strip() else _EMPTY for part in shown]))
    return played


def show(session, line: str, block: Block) -> list[str]:
    """What one line of commands shows."""
    from kemu.commands.run import run

    if line.lstrip().startswith("#") or _MACHINE.match(line):
        return []
    head = _HEAD.fullmatch(line.strip())
    results = run(session, head["command"])
    failed = bool(results) and not results[-1].ok
    if failed is not bool(head["fails"]):
        raise AssertionError(
            f"line {block.line}: '{line}' "
            f"{'failed: ' + results[-1].error.what if failed else 'did not fail'}"
        )
    if not head["show"]:
        return [part for result in results for part in lines_of(result)]
    shown: list[str] = []
    for kind, words in re.findall(r"\[(\w+)([^\]]*)\]", head["show"]):
        if kind != "quiet":
            found = [part for result in run(session, _SHOW[kind]) for part in lines_of(result)]
            shown += chosen(kind, found, words.split())
    return shown


def machine(text: str) -> dict[str, Any]:
    """What the script says of its machine."""
    found = _MACHINE.search(text)
    given = dict(word.split("=") for word in found[1].split()) if found else {}
    read = {"cpus": int, "mem": lambda size: int(size.removesuffix("M")) << 20, "geometry": str}
    return {name: read[name](value) for name, value in given.items()}


def chosen(kind: str, lines: list[str], words: list[str]) -> list[str]:
    """The lines that the words ask for; all without words."""
    if not words:
        return lines
    if kind == "calls":
        return [line for word in words for line in subtree(lines, word)]
    rows: list[list[str]] = []
    subject = ""
    for line in lines:
        before, star, after = line.partition("* ")
        if kind == "diff" and star:
            subject = before if before.strip() else subject
            rows.append([f"{subject}{star}{after}"])
        elif kind == "events" and line.startswith("#"):
            rows.append([line])
        elif line.startswith(" ") and rows:
            rows[-1].append(line)
    return [line for row in rows if any(word in row[0] for word in words) for line in row]


def subtree(lines: list[str], function: str) -> list[str]:
    """The function's line in a tree of calls and those up to the brace that closes it."""
    first = next(at for at, line in enumerate(lines) if f" {function}()" in line)
    column = lines[first].index(f"{function}()")
    if not lines[first][column:].startswith(f"{function}() {{"):
        return lines[first : first + 1]
    last = next(at for at in range(first, len(lines)) if lines[at][column:] == "}")
    return lines[first : last + 1]


def lines_of(result) -> list[str]:
    """The lines of one result, notes and error included."""
    from kemu.front.terminal.complaint import render
    from kemu.front.terminal.output import to_text
    from kemu.views.style import PLAIN

    text = render(result.error) if result.error else to_text(result, PLAIN)
    text = _LINE.sub(r"\1N", text)
    return [*(text.split("\n") if text else []), *result.notes]


def update(names: list[str]) -> int:
    """Rewrite the outputs of the named scripts, or of all; the number of files that changed."""
    changed = 0
    for path in SCRIPTS:
        if names and path.stem not in names:
            continue
        old = path.read_text(encoding="utf-8")
        new = write(play(old))
        if new != old:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"rewritten: {path.name}\n")
            changed += 1
    return changed


if __name__ == "__main__":
    if "--update" not in sys.argv or os.environ.get("CI"):
        sys.exit("usage: python -m tests.golden.runner --update [NAME ...] (not in CI)")
    update([word for word in sys.argv[1:] if not word.startswith("-")])
