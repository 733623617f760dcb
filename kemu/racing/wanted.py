"""Parse the words after race: a case or commands, the options, a schedule; find the litmus program
that they name.

This module depends on no command, so that expressions can run races too (`names/races.py`).
"""

from __future__ import annotations

import attrs

from kemu.errors import UsageError
from kemu.language.suggest import did_you_mean
from kemu.races import litmus, schedule
from kemu.races.cases import KERNEL_CASES
from kemu.races.programs import LITMUS, Knobs, build
from kemu.racing.knobs import KERNEL, KNOBS, Options

KERNEL_LOCKS = ("ptl", "mmap_lock", "vma_lock", "folio_lock")
LITMUS_LOCK = "lock"
MOST_RACERS = 3


@attrs.frozen
class Wanted:
    """The race to run: a litmus or kernel case by name, or commands; ``schedule`` is played if
    ``replay``."""

    case: str
    commands: tuple[str, ...]
    options: Options
    replay: bool = False
    schedule: str = ""

    @property
    def text(self) -> str:
        """The words after race that describe this race."""
        return " ".join([*self._raced(), *attrs.evolve(self.options, end=False).words()])

    @property
    def replay_text(self) -> str:
        """The command that repeats this replay at any time, and leaves the machine at its end.
        The bound within which the schedule was found is left out: a replay does not need it."""
        return attrs.evolve(self, options=attrs.evolve(self.options, end=True)).typed_text

    @property
    def typed_text(self) -> str:
        """The command that does this replay, and leaves the machine where the user asked for."""
        options = attrs.evolve(self.options, bound=None)
        return " ".join(["race replay", *self._raced(), self.schedule, *options.words()])

    def _raced(self) -> list[str]:
        return [self.case] if self.case else [quoted(command) for command in self.commands]

    @property
    def is_litmus(self) -> bool:
        """Is it a litmus program?"""
        return self.case in LITMUS


def quoted(text: str) -> str:
    """A command, quoted as one word."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def read(words: tuple[str, ...], options: Options) -> Wanted:
    """What the words after `race` mean.  UsageError for an unknown case, or for too few or too many
    commands."""
    for index, word in enumerate(words):
        if word.startswith("--"):
            options_of_race = [option for knob in KNOBS for option in knob.words]
            raise UsageError(
                f"race: no option {word[:40]}",
                hint=did_you_mean(word, options_of_race) or "help race lists them",
                about="what",
                index=index,
            )
    replay = words[0] == "replay"
    words = words[1:] if replay else words
    given = words[-1] if replay and words and schedule.looks_like_one(words[-1]) else ""
    words = words[:-1] if given else words
    if options.end and not replay:
        raise UsageError("race: --end is for race replay")
    if replay and not given:
        raise UsageError(
            "race: replay which schedule?",
            hint="race prints one for each outcome, such as 0*12,1*30 or 100001",
            about="what",
        )
    if not words:
        return Wanted("", (), options, replay, given)
    if len(words) == 1:
        return Wanted(known_case(words[0]), (), options, replay, given)
    if len(words) > MOST_RACERS:
        raise UsageError(
            f"race: {len(words)} commands, at most {MOST_RACERS}",
            hint="put each command in quotes",
            about="what",
            index=MOST_RACERS,
        )
    return Wanted("", words, options, replay, given)


def known_case(name: str) -> str:
    """The name, if a built-in case has it."""
    if name in LITMUS or name in KERNEL_CASES:
        return name
    if " " in name:
        raise UsageError(
            "race: a race needs at least two commands",
            hint='race "write a 0x10000 1" "write b 0x10000 2"',
            about="what",
        )
    guess = did_you_mean(name, [*LITMUS, *KERNEL_CASES])
    raise UsageError(
        f"race: no case named '{name[:40]}'", hint=guess or "race alone lists them", about="what"
    )


def program_of(wanted: Wanted) -> litmus.Program:
    """The litmus program that is named."""
    o = wanted.options
    if o.only_for(KERNEL):
        what = f"race {wanted.case}: {o.only_for(KERNEL)[0]} is for kernel races"
        raise UsageError(what, hint="here all schedules are counted")
    cpus = 2 if o.cpus is None else o.cpus
    unlocked = frozenset(cpu for _, cpu in removed_locks(o.lock, (LITMUS_LOCK,), cpus))
    return build(LITMUS[wanted.case], Knobs(o.kind, cpus, o.uses, o.count, o.unless_zero, unlocked))


def removed_locks(text: str, known: tuple[str, ...], cpus: int) -> frozenset[tuple[str, int]]:
    """The locks that are taken away, by name and CPU: `ptl`, `ptl@1`, or several separated by
    commas."""
    found: set[tuple[str, int]] = set()
    for part in text.split(",") if text else ():
        name, at, cpu = part.partition("@")
        if name not in known:
            raise UsageError(
                f"--without-lock: no lock named '{name[:40]}' here",
                hint=f"known are {', '.join(known)}",
                about="lock",
            )
        if at and not (cpu.isascii() and cpu.isdigit() and len(cpu) < 3 and int(cpu) < cpus):
            raise UsageError(
                f"--without-lock: '{cpu[:40]}' is not a CPU of this race",
                hint=f"{name}@0 to {name}@{cpus - 1}",
                about="lock",
            )
        found |= {(name, int(cpu))} if at else {(name, number) for number in range(cpus)}
    return frozenset(found)
