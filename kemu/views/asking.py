"""Answers for the terminal: why, history, cost, timelines, sub-steps.

An answer of `why` is the thing, the events that wrote it, and after the newest of them the
command, the functions that were open, and the rule in one sentence.
"""

from __future__ import annotations

from textwrap import wrap

from kemu.readings import Cost, History, SubSteps, TimelineDifference, Timelines, Why
from kemu.views.moments import change_lines, event_lines, hanging
from kemu.views.style import Style, plural


def why(reading: Why, style: Style) -> str:
    """The chain of events, the newest marked, and the details of that one."""
    width = max((len(event.function) for event in reading.events), default=0)
    lines = [reading.thing]
    if reading.more:
        lines.append("older events are left out; history shows them all")
    for event in reading.events:
        lines += event_lines(event, width, style)
    rows = (
        ("command", reading.command),
        ("in", " > ".join(reading.calls)),
        ("at", reading.place),
        ("rule", reading.rule),
        ("instead", reading.advice),
    )
    for label, text in rows:
        if text:
            indent = f"  {label:<8} "
            lines += wrap(
                text,
                style.width,
                initial_indent=indent,
                subsequent_indent=" " * len(indent),
                break_on_hyphens=False,
            )
    return "\n".join(lines)


def history(reading: History, style: Style) -> str:
    """One line per value."""
    lines = [f"{reading.thing}: {plural(len(reading.changes) + reading.more, 'change')}"]
    if reading.more:
        lines.append(f"the first {reading.more} are left out")
    width = max((len(value.function) for value in reading.changes), default=0)
    for value in reading.changes:
        note = f", {value.note}" if value.note else ""
        command = f"  ({value.command})" if value.command else ""
        head = f"#{value.number:<5} {value.function:<{width}} "
        text = f"{value.old} -> {value.new}{note}{command}"
        lines += wrap(
            text,
            style.width,
            initial_indent=head,
            subsequent_indent=" " * len(head),
            break_long_words=False,
        )
    return "\n".join(lines)


def cost(reading: Cost, _style: Style) -> str:
    """Two columns: the actual cost, and the cost if fork copied at once."""
    lines = [
        f"#{reading.first} -> #{reading.last}",
        f"{'':<24} {'as it was':>12} {'eager copy':>12}",
    ]
    lines += [f"{row.what:<24} {row.now:>12} {row.eager:>12}" for row in reading.rows]
    if reading.shared:
        saved = reading.shared - reading.copied
        lines.append(
            f"fork shared {plural(reading.shared, 'page')}, {reading.copied} of them copied since: "
            "copy-on-write saved "
            f"{plural(saved, 'frame')}, {saved * 4096} bytes of copying"
        )
    return "\n".join(lines)


def timelines(reading: Timelines, _style: Style) -> str:
    """One line per timeline, the current one marked."""
    lines = []
    for row in reading.rows:
        mark = "*" if row.current else " "
        origin = f"left {row.parent} at #{row.branched}" if row.parent else "from the boot"
        newest = f", last: {row.newest}" if row.newest else ""
        lines.append(
            f"{mark} {row.number:<3} {origin:<20} {plural(row.commands, 'command')}{newest}"
        )
    return "\n".join(lines)


def timeline_difference(reading: TimelineDifference, style: Style) -> str:
    """What differs, by object."""
    head = f"timeline {reading.one} -> timeline {reading.other}"
    lines = change_lines(reading.changes, style)
    return "\n".join(
        [
            f"{head}: {plural(len(reading.changes), 'difference')}"
            if lines
            else f"{head}: nothing differs",
            *lines,
        ]
    )


def sub_steps(reading: SubSteps, style: Style) -> str:
    """The entries of a row, numbered below the event."""
    width = max((len(event.function) for event in reading.events), default=0)
    lines: list[str] = []
    for event in reading.events:
        number = f"{reading.number}.{event.number}"
        lines += hanging(f"#{number:<9} {event.function:<{width}} ", event.text, style)
    if reading.events and reading.events[-1].number < reading.total:
        lines.append(f"of {reading.total} in event #{reading.number}; step into goes on")
    return "\n".join(lines)
