r"""Commands about timelines: list them, switch to another, compare two.

    timeline 1   spawn | mmap | write | fork | write app
    timeline 2                             \_ write kid          what if the child writes first?

The machine has one state, so switching runs the commands of the other timeline again from the point
where the two diverge. The same commands in the same state give the same events; this is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kemu import readings
from kemu.debugger.standing import moment
from kemu.errors import UsageError, blaming
from kemu.language import kinds
from kemu.language.spec import FREE, command, one

if TYPE_CHECKING:
    from kemu.experiment.session import Record, Session, Timeline

_START = (
    "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid; write app 0x10000 8; "
    "undo; "
    "write kid 0x10000 9; "
)


@command(
    "timelines",
    effect=FREE,
    summary="the timelines of this experiment",
    more="A change made in the past starts a new timeline; the old one keeps its commands.",
    examples=("spawn app; timelines", _START + "timelines"),
)
def timelines(session: Session) -> readings.Timelines:
    """All timelines, the current one marked."""
    return readings.Timelines(
        tuple(
            readings.TimelineRow(
                number=line.number,
                parent=line.parent,
                branched=line.branched,
                commands=len(line.records),
                newest=line.records[-1].text if line.records else "",
                current=line.number == session.timeline.number,
            )
            for line in session.timelines
        )
    )


@command(
    "switch",
    arguments=(one("number", kinds.COUNT),),
    effect=FREE,
    summary="switch to the end of another timeline",
    examples=(_START + "switch 1; timelines", _START + "switch 1; switch 2"),
)
def switch(session: Session, number: int) -> readings.Moment:
    """Bring the machine to the end of the timeline."""
    with blaming("number"):
        go_to(session, _line(session, number))
    return moment(session, session.now)


def _line(session: Session, number: int) -> Timeline:
    found = next((line for line in session.timelines if line.number == number), None)
    if found is None:
        raise UsageError(f"timeline: no timeline {number}", hint="timelines lists them")
    return found


def go_to(session: Session, line: Timeline) -> None:
    """Run the commands that the timeline does not share with the current one; stop at its end."""
    old, wanted = session.timeline, line.records
    if line.number == old.number:
        session.goto(session.end)
        return
    shared = _shared(old.records, wanted)
    session.goto(wanted[shared - 1].last if shared else 0)
    with quiet(session):
        session.begin_again(line, wanted[:shared])
        try:
            for record in wanted[shared:]:
                _again(session, record)
        except BaseException:
            session.leave_unfinished(wanted)
            raise


def _shared(one: tuple[Record, ...], other: tuple[Record, ...]) -> int:
    """The number of commands that two timelines have in common, counted from the boot."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def _again(session: Session, record: Record) -> None:
    """Run a command of a timeline again. Raises UsageError if its events differ."""
    from kemu.commands.run import run

    results = run(session, record.text)
    if any(result.error for result in results) or session.end != record.last:
        raise UsageError(
            f"timeline: '{record.text}' did not give the same events again: #{session.end}, not "
            f"#{record.last}",
            hint="has a file of the host changed?",
        )


@contextmanager
def quiet(session: Session) -> Iterator[None]:
    """Run the block without stops and without recording output."""
    with session.debugger.without_stops(), session.desk.unrecorded():
        try:
            yield
        finally:
            session.take_notes()


def compare(session: Session, number: int) -> readings.TimelineDifference:
    """The differences between the end of the current timeline and that of timeline `number`."""
    from kemu.observe.facts import facts

    with blaming("timeline"):
        here, other = session.timeline, _line(session, number)
    before = session.now
    session.goto(session.end)
    new = facts(session.kernel, session.name_of)
    go_to(session, other)
    old = facts(session.kernel, session.name_of)
    go_to(session, here)
    session.goto(before)
    changes = [
        readings.FieldChange(
            kind=key[0],
            what=key[1],
            field=key[2],
            old=old.get(key, "none"),
            new=new.get(key, "none"),
        )
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
    return readings.TimelineDifference(one=other.number, other=here.number, changes=tuple(changes))
