"""Races for the terminal: a bar for each outcome, and schedules as lanes with time going down."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from kemu.readings import RaceCase, RaceCases, RaceOutcome, RaceReading, RaceReplay, RaceStep
from kemu.views.style import Style, plural

BAR = 20
MOST_ROWS = 40
"""Width of a bar in columns; steps of a replay that are shown around the moment."""


def cases(reading: RaceCases, style: Style) -> str:
    """All built-in races."""
    lines: list[str] = []
    for engine, what in (
        ("litmus", "small programs, all schedules counted"),
        ("kernel", "kernel functions, each schedule run"),
    ):
        lines.append(what)
        for case in (case for case in reading.cases if case.engine == engine):
            lines += _case(case, style)
    return "\n".join(lines)


def _case(case: RaceCase, style: Style) -> list[str]:
    first, *rest = wrap(case.summary, style.width - 17)
    return [
        f"  {style.paint(case.name.ljust(14), 'name')} {first}",
        *(" " * 17 + line for line in rest),
    ]


def race(reading: RaceReading, style: Style) -> str:
    """What an exploration found."""
    r = reading
    within = "" if r.bound is None else f" with at most {plural(r.bound, 'preemption')}"
    head = (
        f"{plural(r.schedules, 'schedule')}{within}, {plural(r.steps, 'step')}, "
        f"{plural(r.states, 'state')}: "
    )
    verdict = f"{r.bad} end badly" if r.bad else "none ends badly"
    lines = [*_title(r.race, style), *_cpus(r.cpus, style), *wrap(head + verdict, style.width)]
    lines[-1] = lines[-1].replace(verdict, style.paint(verdict, "error")) if r.bad else lines[-1]
    if not r.complete:
        lines.append(
            f"given up after {plural(r.schedules, 'schedule')}: a smaller --bound explores all of "
            "them"
        )
    for outcome in r.outcomes:
        lines += _outcome(outcome, r, style)
    if r.enough is not None:
        are = "run is" if r.enough == 1 else "runs are"
        lines.append(f"{r.enough} {are} enough to see every outcome (partial-order reduction)")
    lines += r.warnings
    return "\n".join([*lines, *_beside(r, style)])


def _title(text: str, style: Style) -> list[str]:
    return [
        style.paint(line, "name")
        for line in wrap(text, style.width, subsequent_indent="  ", break_on_hyphens=False)
    ]


def _cpus(cpus: tuple[str, ...], style: Style) -> list[str]:
    """What each CPU does."""
    lines = []
    for number, text in enumerate(cpus):
        lines += wrap(
            text, style.width, initial_indent=f"  CPU {number}  ", subsequent_indent=" " * 9
        )
    return lines


def _outcome(outcome: RaceOutcome, r: RaceReading, style: Style) -> list[str]:
    """A row: good or bad, how many, a bar, the name; below it the fault and the schedule."""
    of = f"{outcome.schedules:>{len(str(r.schedules))}}"
    filled = max(1, round(BAR * outcome.schedules / r.schedules))
    mark = "bad" if outcome.bad else "ok "
    start = f"  {mark}  {of}  {'#' * filled:<{BAR}}  "
    name = wrap(outcome.name, max(style.width - len(start), 20)) or [""]
    lines = [
        start.replace(mark, style.paint(mark, "error"), 1) + name[0]
        if outcome.bad
        else start + name[0]
    ]
    lines += [" " * len(start) + more for more in name[1:]]
    for text in outcome.detail[:3]:
        lines += wrap(
            text,
            style.width,
            initial_indent="         ",
            subsequent_indent="           ",
            break_on_hyphens=False,
        )
    if outcome.bad:
        lines.append(f"         race replay {outcome.first}")
    return lines


# ---------------------------------------------------------------- two schedules side by side


def _beside(r: RaceReading, style: Style) -> list[str]:
    """The first good and the first bad schedule as lanes, where the steps are known."""
    good = next((o for o in r.outcomes if not o.bad and o.steps), None)
    bad = next((o for o in r.outcomes if o.bad and o.steps), None)
    shown = [o for o in (good, bad) if o is not None] if bad is not None else []
    if not shown:
        return []
    drawn = [_lanes(o, len(r.cpus)) for o in shown]
    widths = [max(len(line) for line in lines) for lines in drawn]
    if sum(widths) + 3 * len(drawn) > style.width:
        drawn, widths = drawn[-1:], widths[-1:]
    rows = max(len(lines) for lines in drawn)
    padded = [[*lines, *[""] * (rows - len(lines))] for lines in drawn]
    joined = (
        f" {style.glyphs.pipe} ".join(
            line.ljust(width) for line, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in zip(*padded, strict=True)
    )
    return ["", *joined]


def _lanes(outcome: RaceOutcome, cpus: int) -> list[str]:
    """A schedule: a column for each CPU, and memory."""
    width = max(len(step.what) for step in outcome.steps)
    width = max(width, 5) + 1
    lines = [
        f"{outcome.name}: {outcome.first}",
        "".join(f"CPU {cpu}".ljust(width) for cpu in range(cpus)) + "memory",
    ]
    for step in outcome.steps:
        lane = "".join((step.what if cpu == step.cpu else ".").ljust(width) for cpu in range(cpus))
        lines.append(lane + _memory(step))
    return lines


def _memory(step: RaceStep) -> str:
    """The contents of memory after a step; the CPU's private values are left out."""
    value = step.value.split(", CPU")[0]
    return f"{value}  {step.note}!" if step.note else value


# ---------------------------------------------------------------- a replay


def replay(reading: RaceReplay, style: Style) -> str:
    """A replayed schedule: the past, the present moment, and what is to come."""
    r = reading
    lines = [*_title(r.race, style), f"schedule {_short(r.schedule, style)}", *_cpus(r.cpus, style)]
    lines += wrap(f"{'ends badly' if r.bad else 'ends well'}: {r.outcome}", style.width)
    lines[-1] = (
        lines[-1].replace(r.outcome, style.paint(r.outcome, "error")) if r.bad else lines[-1]
    )
    for text in r.detail[:3]:
        lines += wrap(
            text, style.width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
    first = max(0, min(r.done - MOST_ROWS // 2, len(r.steps) - MOST_ROWS))
    shown = r.steps[first : first + MOST_ROWS]
    lines += _steps(r, shown, style)
    return "\n".join([*lines, _where(r)])


def _short(schedule: str, style: Style) -> str:
    return (
        schedule
        if len(schedule) <= style.width // 2
        else schedule[: style.width // 2] + style.glyphs.more
    )


def _steps(r: RaceReplay, shown: Iterable[RaceStep], style: Style) -> list[str]:
    """One line per step: its number, a lane for each CPU, memory or events."""
    lane = (style.width - 22) // len(r.cpus)
    last = "memory" if r.engine == "litmus" else "events"
    lines = ["  step  " + "".join(f"CPU {cpu}".ljust(lane) for cpu in range(len(r.cpus))) + last]
    for step in shown:
        mark = ">" if step.number == r.done + 1 else " "
        lanes = "".join(
            _cut(step.what if cpu == step.cpu else ".", lane, style) for cpu in range(len(r.cpus))
        )
        tail = step.value.split(", CPU")[0] if r.engine == "litmus" else _events(step)
        lines.append(f"{mark} {step.number:>4}  {lanes}{tail}".rstrip())
        if step.note:
            lines.append(" " * 8 + " " * lane * step.cpu + style.paint(f"! {step.note}", "error"))
    return lines


def _cut(text: str, width: int, style: Style) -> str:
    more = style.glyphs.more
    return (text if len(text) < width else text[: width - 1 - len(more)] + more).ljust(width)


def _events(step: RaceStep) -> str:
    if step.first == step.last:
        return ""
    return (
        f"#{step.first + 1}" if step.last == step.first + 1 else f"#{step.first + 1}-#{step.last}"
    )


def _where(r: RaceReplay) -> str:
    """Where the replay is, and what can be done next."""
    if r.done < len(r.steps):
        return (
            f"{r.done} of {plural(len(r.steps), 'step')} have happened: step and back walk "
            "through them, race shows where"
        )
    end = (
        "the calls are still under way: back leads away from here"
        if r.unfinished
        else "all have happened"
    )
    return f"{plural(len(r.steps), 'step')}: {end}"
