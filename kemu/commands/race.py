"""race: explore the interleavings of steps on several CPUs and their outcomes; replay one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.result import OK, UNSATISFIED, Result, Shown
from kemu.language.spec import FREE, Option, command, many
from kemu.racing import knobs as raceknobs
from kemu.racing.knobs import Options
from kemu.readings import RaceCase, RaceCases

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.language.spec import Candidate, Kind

_COW = "spawn parent; mmap parent 0x10000 1p rw; write parent 0x10000 1; fork parent as child; "


class RacedKind(kinds.TextKind):
    """A case, a command, a schedule, or the word replay."""

    def complete(self, session: Session) -> Iterable[Candidate]:
        """The built-in cases."""
        return [
            ("replay", "play a schedule"),
            *((case.name, case.summary) for case in cases().cases),
        ]


class LockKind(kinds.TextKind):
    """The name of a lock, optionally with a CPU."""

    def complete(self, session: Session) -> Iterable[Candidate]:
        """The locks that can be removed."""
        return [
            ("ptl", "of a page table"),
            ("mmap_lock", "of an mm"),
            ("vma_lock", "of a VMA"),
            ("folio_lock", "of a page"),
            ("lock", "of locked-gets"),
        ]


class MutantKind(kinds.TextKind):
    """The name of a mutant."""

    def complete(self, session: Session) -> Iterable[Candidate]:
        """All mutants."""
        from kemu.races.mutants import MUTANTS

        return [(mutant.name, mutant.story) for mutant in MUTANTS.values()]


class Schedules(Mapping[str, str]):
    """Every word that looks like a schedule, as the words of an option, so that a schedule may
    follow the options."""

    def __contains__(self, word: object) -> bool:
        """Whether the word looks like a schedule."""
        from kemu.races.schedule import looks_like_one

        return isinstance(word, str) and looks_like_one(word)

    def __getitem__(self, word: str) -> str:
        """The schedule itself."""
        return word

    def __iter__(self) -> Iterator[str]:
        """Empty: there are too many to list."""
        return iter(())

    def __len__(self) -> int:
        """0: there are too many to list."""
        return 0


class ScheduleOption(Option):
    """A schedule after the options."""

    label = "SCHEDULE"

    def __str__(self) -> str:
        """As the synopsis shows it."""
        return f"[{self.label}]"

    @property
    def meaning(self) -> str:
        """A description in place of the list of words."""
        return "a schedule printed by race, such as 0*12,1*30 or 0110"


RACED = RacedKind("CASE|CMD", "a case, or a command in quotes")
KINDS: dict[str, Kind] = {
    raceknobs.COUNT: kinds.COUNT,
    raceknobs.NUMBER: kinds.NUMBER,
    raceknobs.LOCK: LockKind(
        "LOCK", "a lock: ptl, mmap_lock, vma_lock, folio_lock or lock; ptl@1 for CPU 1 alone"
    ),
    raceknobs.MUTANT: MutantKind("MUTANT", "the name of a mutant"),
}
"""The types of the values of knobs."""


@command(
    "race",
    arguments=(many("what", RACED),),
    options=(
        *(Option(knob.name, knob.words, KINDS.get(knob.kind)) for knob in raceknobs.KNOBS),
        ScheduleOption("schedule", Schedules()),
    ),
    effect=FREE,
    summary="explore every interleaving of steps on several CPUs",
    more="race alone (or race list) lists the built-in cases, race CASE explores one, race "
    "'CMD' 'CMD' your own commands: each runs on its own CPU from this moment, and the "
    "machine is left unchanged. race counts the schedules that lead to each outcome, and "
    "prints a schedule for each bad one; race replay SCHEDULE plays it on the machine, where "
    "step, back, trace and all other commands can examine it. A step ends before each atomic "
    "operation, lock operation and access to a page-table entry. --bound N allows N "
    "preemptions. --without-lock NAME removes a lock, NAME@1 on CPU 1 only; --end stops a "
    "replay after its last step instead of before its first. The exit code is 3 if a schedule "
    "ends badly. See docs/races.md.",
    examples=(
        "race",
        "race gets --non-atomic; race replay 00100111; step",
        "race get-last-put; race get-last-put --unless-zero",
        "race cow-cow --bound 1",
        _COW + 'race "write parent 0x10000 2" "write child 0x10000 3" --bound 1 --non-atomic',
    ),
)
def race(
    session: Session, *, what: tuple[str, ...], schedule: tuple[str, ...], **knobs: Any
) -> Shown | list[Result]:
    """List, explore, or play a schedule."""
    from kemu.racing import exploring as racing
    from kemu.racing.wanted import read

    options = Options.of(knobs)
    if schedule and what[:1] != ("replay",):
        raise UsageError(f"race: {schedule[0][:40]} is a schedule, which only race replay plays")
    given, what = schedule, what + schedule
    if not what or what == ("list",):
        here = racing.where(session) if options == Options() and not what else None
        return Shown(here or cases())
    wanted = read(what, options)
    if wanted.replay:
        from kemu.racing.replaying import replay

        try:
            return replay(session, wanted)
        except UsageError as error:
            if error.about == "schedule" and not given:
                error.about, error.index = "what", len(what) - 1
            raise
    reading = racing.explored(session, wanted)
    return Shown(reading, status=UNSATISFIED if reading.bad else OK)


def cases() -> RaceCases:
    """The built-in races."""
    from kemu.races.cases import KERNEL_CASES
    from kemu.races.programs import LITMUS

    small = [RaceCase(case.name, "litmus", case.summary) for case in LITMUS.values()]
    return RaceCases(
        (*small, *(RaceCase(case.name, "kernel", case.summary) for case in KERNEL_CASES.values()))
    )
