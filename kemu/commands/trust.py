"""verify checks the invariants of the kernel; mutant plants a bug that breaks one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.result import OK, UNSATISFIED, Shown
from kemu.language.spec import CHANGE, FREE, command, flags, maybe, one
from kemu.readings import (
    MutantList,
    MutantReading,
    MutantRow,
    Text,
    VerifyReading,
    ViolationReading,
)

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.invariants import Violation
    from kemu.races.mutants import Mutant


@command(
    "verify",
    options=(
        flags("along", {"--every-event": True, "every-event": True}, "at each event, not only now"),
    ),
    effect=FREE,
    summary="check the invariants of the kernel",
    more="Counts everything twice: references against holders, entries against mappings, TLBs "
    "against tables. With every-event, checks after each event up to this moment and names "
    "the first one that broke an invariant; conditions that hold only between two commands "
    "are checked there. set verify on checks after every command. See docs/invariants.md.",
    examples=(
        "spawn app; verify",
        "spawn app; mmap app 0x10000 1p rw; write app 0x10000 1; verify every-event",
    ),
)
def verify(session: Session, along: tuple[bool, ...]) -> Shown:
    """The invariants that do not hold; the exit code is then 3."""
    reading = verify_along(session) if along else verify_now(session)
    return Shown(reading, status=UNSATISFIED if reading.violations else OK)


def verify_now(session: Session) -> VerifyReading:
    """Check the invariants at this moment; inside a command only those that always hold."""
    from kemu.invariants import ALWAYS, INVARIANTS, check

    quiet = session.boundary(session.now)
    found = check(session.kernel, session.name_of, quiescent=quiet)
    checked = sum(quiet or invariant.when == ALWAYS for invariant in INVARIANTS.values())
    return VerifyReading(session.now, 0, checked, "", readings(found))


def verify_along(session: Session) -> VerifyReading:
    """The first event up to this moment that broke an invariant."""
    from kemu.invariants import INVARIANTS, first_broken
    from kemu.observe.events import one_event

    now = session.now
    quiet = {0, now} | {record.last for record in session.timeline.records}
    broken = first_broken(
        session.kernel,
        0,
        now,
        {event for event in quiet if session.boundary(event)},
        session.name_of,
    )
    if broken is None:
        return VerifyReading(now, now + 1, len(INVARIANTS), "", ())
    function = (
        one_event(session.kernel, broken.event, session.name_of).function if broken.event else ""
    )
    return VerifyReading(
        broken.event, now + 1, len(INVARIANTS), function, readings(broken.violations)
    )


def readings(found: list[Violation] | tuple[Violation, ...]) -> tuple[ViolationReading, ...]:
    """The violations as data."""
    from kemu.invariants import INVARIANTS

    return tuple(
        ViolationReading(v.invariant, INVARIANTS[v.invariant].reason, v.place, v.has, v.wants)
        for v in found
    )


@command(
    "mutant",
    arguments=(
        one("what", kinds.WordKind("WHAT", ("list", "plant", "reveal", "remove"))),
        maybe("name", kinds.ANY),
    ),
    effect=CHANGE,
    summary="plant a bug in the kernel for someone to find",
    more="mutant list names the mutants, and with NAME shows the patch of one. mutant plant "
    "NAME applies it; mutant plant NUMBER applies one without naming it. mutant reveal shows "
    "the planted mutant, mutant remove removes it. Planting is part of the history: before "
    "it, the kernel is correct, even when you go back there.",
    examples=(
        "mutant list",
        "mutant list cow_skips_flush",
        "mutant plant 3; mutant reveal",
        "mutant plant munmap_skips_tlb_flush; mutant remove",
    ),
    session_words=("list", "reveal"),
)
def mutant(session: Session, what: str, name: str | None) -> MutantList | MutantReading | Text:
    """List, plant, reveal or remove."""
    if what == "plant":
        return plant(session, name)
    if what == "list":
        return listing(session) if name is None else shown(name)
    if name is not None:
        raise UsageError(f"mutant: unexpected '{name[:40]}' after {what}", about="name")
    planted = session.planted
    if not planted:
        raise UsageError(
            "mutant: no mutant is planted",
            hint="mutant plant NAME, or a number for an unnamed one",
        )
    if what == "remove":
        session.plant("", {})
        return Text(("the kernel is correct again",))
    return shown(planted)


def listing(session: Session) -> MutantList:
    """All mutants."""
    from kemu.races.mutants import MUTANTS

    return MutantList(tuple(row(found) for found in MUTANTS.values()), int(bool(session.planted)))


def plant(session: Session, name: str | None) -> MutantReading | Text:
    """Plant a mutant, effective from the next command. Raises UsageError without a name."""
    from kemu.races.mutants import bodies, find

    if name is None:
        raise UsageError(
            "mutant: expected the name of a mutant, or a number",
            hint="mutant list names them; a number picks one for you to find",
            about="what",
        )
    found = find(name)
    session.plant(found.name, bodies(found))
    if name == found.name:
        return shown(name).replace(planted=True)
    return Text(("planted: a bug; mutant reveal shows it",))


def row(found: Mutant) -> MutantRow:
    """The mutant as data."""
    return MutantRow(found.name, found.place, found.story, found.caught)


def shown(name: str) -> MutantReading:
    """The mutant as a patch."""
    from kemu.races.mutants import diff, find

    found = find(name)
    return MutantReading(row(found), diff(found))
