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
line inside the output is written as `.`; a block without `---` must show nothing.

    python -m tests.golden.runner --update [NAME ...]     rewrites the outputs, for review
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
"""Scripts that load a file name it from here."""
SCRIPTS = sorted(FOLDER.glob("*.kemu"))
_HEAD = re.compile(
    r"(?P<show>(?:\[(?:events|calls|diff|quiet)\]\s*)*)(?P<fails>!\s*)?(?P<command>.*)"
)
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
    session = Session()
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

    if line.lstrip().startswith("#"):
        return []
    head = _HEAD.fullmatch(line.strip())
    results = run(session, head["command"])
    failed = bool(results) and not results[-1].ok
    if failed is not bool(head["fails"]):
        raise AssertionError(
            f"line {block.line}: '{line}' "
            f"{'failed: ' + results[-1].error.what if failed else 'did not fail'}"
        )
    kinds = re.findall(r"\w+", head["show"])
    if kinds:
        results = [
            result for kind in kinds if kind != "quiet" for result in run(session, _SHOW[kind])
        ]
    return [part for result in results for part in lines_of(result)]


def lines_of(result) -> list[str]:
    """The lines of one result, notes and error included."""
    from kemu.front.terminal.complaint import render
    from kemu.front.terminal.output import to_text
    from kemu.views.style import PLAIN

    text = render(result.error) if result.error else to_text(result, PLAIN)
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
