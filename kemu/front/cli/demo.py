"""`kemu demo`: a minute of fork and copy-on-write, without typing.

Each step is a sentence and some commands, which are really run.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from kemu.commands.run import run
from kemu.experiment.session import Session
from kemu.front.cli.front import asked_for
from kemu.front.terminal.output import Output, make_output
from kemu.language.result import BUG, OK

if TYPE_CHECKING:
    from kemu.front.cli.options import Options

STEPS: tuple[tuple[str, str], ...] = (
    (
        "A process is born and promised four pages. A promise costs no memory.",
        "spawn parent; mmap parent 0x10000 4p rw; maps parent",
    ),
    (
        "The first write to a page makes the kernel find a frame for it.",
        'write parent 0x10000 "hello"; walk parent 0x10000',
    ),
    (
        "fork copies the page tables, not the pages. Both sides lose the right to write.",
        "fork parent as child; walk child 0x10000",
    ),
    ("Two entries, one frame: its counts say so.", "frame pfn(child,0x10000)"),
    (
        "The child writes. The hardware refuses, and the kernel copies the page.",
        'write child 0x10000 "J"; calls',
    ),
    ("Now each has its own frame.", "print pfn(parent,0x10000) != pfn(child,0x10000)"),
    ("And the parent still reads what it wrote.", "read parent 0x10000 5; read child 0x10000 5"),
    (
        "All of it was recorded. Go back to the moment before the child wrote ...",
        "goto shared; print pfn(parent,0x10000) == pfn(child,0x10000)",
    ),
    (
        "... and there is one frame again. Forward, and the copy is back.",
        "goto end; print data_frames(parent, child)",
    ),
)
"""The sentence that is shown, and the commands that are run."""

MARKED = "fork parent as child"
"""The moment after this command is marked `shared`."""

PAUSE = 2.5
"""Pause between two steps at a terminal, in seconds."""


def main(options: Options) -> int:
    """Play the demonstration. Return 0, or 70 if one of its commands failed."""
    session = Session(mem=options.mem, geometry=options.geometry, cpus=options.cpus)
    session.desk.preferences.update(asked_for(options))
    output = make_output(options)
    status = OK
    for number, (said, text) in enumerate(STEPS, 1):
        if not options.json:
            sys.stdout.write(f"\n# {number}. {said}\n")
        for command in text.split("; "):
            status = _play(session, command, output, echo=not options.json) or status
            if command == MARKED:
                session.mark("shared")
        output.flush()
        if sys.stdout.isatty() and number < len(STEPS):
            time.sleep(PAUSE)
    return status


def _play(session: Session, command: str, output: Output, *, echo: bool) -> int:
    if echo:
        sys.stdout.write(f"kemu> {command}\n")
    status = OK
    for result in run(session, command):
        output.show(result, session, "")
        status = OK if result.ok else BUG
    return status
