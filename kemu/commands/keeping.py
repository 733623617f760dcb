"""Commands that keep an experiment: save, restore, transcript.

    # kemu experiment
    # machine mem=67108864 geometry=x86-64 cpus=2
    spawn app
    mmap app 0x10000 1p rw
    goto 231; mark before; goto end
    # state 5b1c...

A saved experiment is a script, which `kemu run FILE` also runs. The same commands give the same
state, which the hash at the end proves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kemu.commands.branches import quiet
from kemu.commands.general import DEEPEST_RUN
from kemu.commands.hostfile import read_lines, replace_file
from kemu.errors import UsageError
from kemu.experiment.knowledge import NO_TASK
from kemu.language import kinds
from kemu.language.result import INTERRUPTED
from kemu.language.spec import FREE, command, maybe, one
from kemu.readings import Reading, Text

if TYPE_CHECKING:
    from kemu.experiment.session import Session

TRANSCRIPT = "# transcript of a session with kemu"
HEAD, MACHINE, STATE = "# kemu experiment", "# machine ", "# state "


@command(
    "save",
    arguments=(one("path", kinds.HOST_PATH),),
    effect=FREE,
    host=True,
    writes=True,
    summary="write the commands of this timeline to a file",
    more="restore and kemu run FILE run them again, to the same state. The file is text and "
    "can be edited.",
    examples=(
        "spawn app; mmap app 0x10000 1p rw; save story.kemu",
        "spawn app; mark born; save story.kemu; restore story.kemu; goto born",
    ),
)
def save(session: Session, path: str) -> Text:
    """The commands, the marks and the state's hash."""
    before = session.now
    session.goto(session.end)
    lines = experiment(session)
    session.goto(before)
    _write(path, "\n".join(lines) + "\n", "save")
    count = len(session.timeline.records)
    return Text((f"{path}: {count} command{'s' * (count != 1)}",))


def experiment(session: Session) -> list[str]:
    """The lines of the file; the session is at the end."""
    records = session.timeline.records
    lines = [HEAD, MACHINE + machine(session), *(record.text for record in records)]
    current = records[-1].current if records else NO_TASK
    if session.current_pid not in (current, NO_TASK):
        lines.append(f"use @{session.current_pid}")
    marks = [f"goto {event}; mark {name}" for name, event in session.marks.items()]
    lines += [*marks, "goto end"] if marks else []
    return [*lines, STATE + session.state_hash()]


def machine(session: Session) -> str:
    """The parameters of the machine, as text."""
    kernel = session.kernel.globals
    return f"mem={kernel['phys'].size} geometry={kernel['geometry'].name} cpus={session.cpus}"


@command(
    "restore",
    arguments=(one("path", kinds.HOST_PATH),),
    effect=FREE,
    host=True,
    summary="run a saved experiment again, from boot",
    more="It becomes a new timeline. The final state is compared with the saved one. If a "
    "command fails, the timeline is discarded.",
    examples=(
        "spawn app; fork as kid; save story.kemu; restore story.kemu",
        "spawn app; save app.kemu; exit app; restore app.kemu; ps",
    ),
)
def restore(session: Session, path: str) -> Text:
    """The saved commands, on a new timeline."""
    if session.desk.depth >= DEEPEST_RUN:
        raise UsageError(
            f"restore: more than {DEEPEST_RUN} files deep",
            hint="does a file restore itself?",
            about="path",
        )
    lines = read_lines(path, "restore")
    wanted = next((line[len(STATE) :] for line in lines if line.startswith(STATE)), "")
    made_for = next(
        (line[len(MACHINE) :] for line in lines if line.startswith(MACHINE)), machine(session)
    )
    if made_for != machine(session):
        hint = f"this one is {machine(session)}"
        raise UsageError(
            f"restore: {path} needs a different machine: {made_for}", hint=hint, about="path"
        )
    with session.anew():
        _run_all(session, lines, path)
        if wanted and session.state_hash() != wanted:
            hint = "was it edited, or made by another version of kemu? its timeline is discarded"
            raise UsageError(f"restore: {path} ended in a different state", hint=hint, about="path")
    same = "the state matches the saved one" if wanted else "the file records no state"
    return Text((f"{path}: #{session.end}, {same}",))


def _run_all(session: Session, lines: list[str], path: str) -> None:
    with session.desk.inside_file(restoring=True), quiet(session):
        for number, line in enumerate(lines, 1):
            _again(session, line, f"{path}:{number}: ")


def _again(session: Session, line: str, where: str) -> None:
    from kemu.commands.run import run

    results = run(session, line)
    if any(result.status == INTERRUPTED for result in results):
        raise KeyboardInterrupt
    failed = next((result.error for result in results if result.error), None)
    if failed is not None:
        what = failed.what if where in failed.what else where + failed.what
        raise UsageError(what, hint=failed.hint, about="path")


@command(
    "transcript",
    arguments=(maybe("path", kinds.HOST_PATH),),
    effect=FREE,
    host=True,
    writes=True,
    summary="all commands so far with their output",
    more="Printed, or written to a file.",
    examples=("spawn app; transcript", "spawn app; ps; transcript session.txt"),
)
def transcript(session: Session, path: str | None) -> Text:
    """Every command with its output."""
    lines = [line for result in session.desk.shown for line in _lines(result)]
    if path is None:
        return Text(tuple(lines) or ("nothing has been run yet",))
    _write(path, "\n".join([TRANSCRIPT, *lines]) + "\n", "transcript")
    return Text((f"{path}: {len(session.desk.shown)} commands",))


def _lines(result: Any) -> list[str]:
    """A command and its output, with notes and errors."""
    from kemu.views.procfs import render as render_proc
    from kemu.views.terminal import render

    lines = [f"> {result.command}"]
    if isinstance(result.reading, Reading):
        text = render_proc(result.reading) if result.form == "proc" else render(result.reading)
        lines += text.rstrip("\n").split("\n") if text else []
    if result.error is not None:
        lines.append(f"error: {result.error.what}")
    return [*lines, *result.notes]


def _write(path: str, text: str, command: str) -> None:
    """Replace the file as a whole or not at all."""
    replace_file(path, text.encode("utf-8", "surrogateescape"), command, "path")
