"""Events, calls and differences for the terminal.

An event is one line, a call tree is drawn as ftrace's function_graph draws it:

    #58  folio_get            pfn 0x1a3 _refcount 2 -> 3

    58-83   exc_page_fault() {                                arch/x86/mm/fault.c
    60-83     handle_mm_fault() {
"""

from __future__ import annotations

import re
from itertools import groupby
from textwrap import shorten, wrap

from kemu.readings import (
    Backtrace,
    CallReading,
    CallTree,
    Change,
    Difference,
    EventList,
    EventReading,
    FieldChange,
    Listing,
    Moment,
    Text,
    Value,
)
from kemu.views.onepage import three_lines
from kemu.views.style import Style, plural

CHANGES_SHOWN = 24
"""Maximum lines of the summary that follows a command; the rest are counted."""


def event(reading: EventReading, style: Style) -> str:
    """One event in one line, wrapped if it is long."""
    return "\n".join(event_lines(reading, 20, style))


def event_lines(reading: EventReading, width: int, style: Style) -> list[str]:
    """The lines of one event; ``width``: of the column of functions."""
    head = f"#{reading.number:<5} {reading.function:<{width}} "
    return hanging(head, reading.text, style)


def hanging(head: str, text: str, style: Style) -> list[str]:
    """``text`` after ``head``, with continuation lines aligned below its beginning."""
    room = max(style.width - len(head), 30)
    first, *rest = wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [head + first, *[" " * len(head) + line for line in rest]]


def events(reading: EventList, style: Style) -> str:
    """trace: the events of a range."""
    width = max((len(item.function) for item in reading.events), default=0)
    lines = [line for item in reading.events for line in event_lines(item, width, style)]
    if reading.hidden:
        lines.append(
            f"{plural(reading.hidden, 'event')} not shown: lists, locks, statistics, nothing new"
        )
    return "\n".join(lines) or "no event"


def calls(reading: CallTree, style: Style) -> str:
    """calls: the functions as ftrace draws them, with the events that happened in each."""
    lines: list[str] = []
    for root in reading.roots:
        _node(root, 0, style, lines)
    return "\n".join(lines) or "no call"


def _node(node: CallReading | EventReading, depth: int, style: Style, lines: list[str]) -> None:
    indent = "  " * depth
    if isinstance(node, EventReading):
        lines.extend(hanging(f"{f'#{node.number}':>13}  {indent}", node.text, style))
        return
    head = f"{_range(node):>13}  {indent}{node.function}()"
    if not node.children:
        lines.append(_with_path(f"{head};", node.path, style))
        return
    lines.append(_with_path(f"{head} {{", node.path, style))
    for child in node.children:
        _node(child, depth + 1, style, lines)
    lines.append(f"{'':>13}  {indent}}}")


def _range(call: CallReading) -> str:
    """The events of a call: ``58-83``, or nothing."""
    if call.last == call.first:
        return ""
    return f"{call.first + 1}-{call.last}" if call.last > call.first + 1 else f"{call.last}"


def _with_path(head: str, path: str, style: Style) -> str:
    """Linux's file at the right edge, where there is room for it."""
    room = style.width - len(head)
    return head + path.rjust(room) if path and len(path) + 2 <= room else head


def difference(reading: Difference, style: Style) -> str:
    """diff: what differs, by object."""
    head = f"#{reading.first} -> #{reading.last}"
    lines = change_lines(reading.changes, style)
    if reading.hidden:
        lines.append(
            f"{plural(reading.hidden, 'field')} not shown: lists, locks, statistics, details of "
            "what is new or gone"
        )
    return "\n".join(
        [
            f"{head}: {plural(len(reading.changes), 'difference')}"
            if lines
            else f"{head}: nothing differs",
            *lines,
        ]
    )


ALIKE_SHOWN = 3
"""How many neighbours that changed in the same way are shown."""


def change_lines(changes: tuple[FieldChange, ...], style: Style) -> list[str]:
    """One line per field, each object named once; only the first few of many objects that changed
    in the same way."""
    blocks = [tuple(block) for _, block in groupby(changes, key=lambda change: change.what)]
    width = min(max((len(block[0].what) for block in blocks), default=0), style.width * 2 // 5)
    lines: list[str] = []
    for _, alike in groupby(blocks, key=_shape):
        shown = list(alike)
        folded = shown[ALIKE_SHOWN:] if len(shown) > ALIKE_SHOWN + 1 else []
        for block in shown[: len(shown) - len(folded)]:
            lines += _block_lines(block, width, style)
        if folded:
            lines.append(
                f"{'':<{width}} {style.glyphs.more} {len(folded)} more like this, to "
                f"{folded[-1][0].what}"
            )
    return lines


def _shape(block: tuple[FieldChange, ...]) -> list[str]:
    """How an object changed, addresses and frame numbers left out."""
    return [
        re.sub(r"0x[0-9a-f]+", "0x", f"{c.what} {c.field} {c.old} {c.new} {c.note}") for c in block
    ]


def _block_lines(block: tuple[FieldChange, ...], width: int, style: Style) -> list[str]:
    lines: list[str] = []
    for change in block:
        what = change.what if change is block[0] else ""
        note = f" ({change.note})" if change.note else ""
        text = f"{change.field} {change.old} -> {change.new}{note}".strip()
        first, *rest = hanging(f"{what:<{width}} * ", text, style)
        at = max(width, len(what)) + 1
        lines += [first[:at] + style.paint("*", "changed") + first[at + 1 :], *rest]
    return lines


def change(reading: Change, style: Style) -> str:
    """What a command changed, shortly."""
    if reading.first == reading.last:
        return "\n".join(reading.notes)
    lines = change_lines(reading.difference.changes, style)
    if len(lines) > CHANGES_SHOWN:
        hidden = len(lines) - CHANGES_SHOWN + 1
        lines[CHANGES_SHOWN - 1 :] = [
            f"{style.glyphs.more} {hidden} more lines: diff {reading.first} {reading.last}"
        ]
    return "\n".join([f"#{reading.first} -> #{reading.last}", *lines, *reading.notes])


def moment(reading: Moment, style: Style) -> str:
    """Where the experiment is; with context also how it got there: calls, changes, the page in
    question."""
    r = reading
    where = f"#{r.now}" + (f" of {r.end}, past" if r.now < r.end else "")
    words = [
        where,
        f"timeline {r.timeline}" if r.timeline > 1 else "",
        f"mark {r.mark}" if r.mark else "",
    ]
    line = ", ".join(word for word in words if word)
    line += f", inside '{r.inside}'" if r.inside else ""
    line += f", at the entry of {r.entered}()" if r.entered else ""
    return "\n".join(
        [
            *r.stops,
            line,
            *_calls_above(r, style),
            *_event_of(r, style),
            *([f"       {shorten(r.rule, style.width - 7, placeholder=' ...')}"] if r.rule else []),
            *change_lines(r.changes, style),
            *([three_lines(r.picture, style)] if r.picture else []),
            *([r.hint] if r.hint else []),
            *r.shown,
        ]
    )


def _event_of(reading: Moment, style: Style) -> list[str]:
    """The line of the event; a star where it is what the move did."""
    if reading.event is None:
        return []
    head = f"#{reading.event.number:<5} {reading.event.function:<20} "
    if not reading.marked:
        return hanging(head, reading.event.text, style)
    first, *rest = hanging(head + "* ", reading.event.text, style)
    return [head + style.paint("*", "changed") + first[len(head) + 1 :], *rest]


def _calls_above(reading: Moment, style: Style) -> list[str]:
    """The open functions that were not open before the move, as ftrace draws them."""
    return [
        _with_path(f"{'  ' * depth}  {call.function}() {{", call.path, style)
        for depth, call in enumerate(reading.calls)
        if depth >= reading.kept
    ]


def backtrace(reading: Backtrace, _style: Style) -> str:
    """bt: the open functions as gdb numbers them, the innermost first."""
    inside = f" in '{reading.command}'" if reading.command else ""
    if not reading.calls:
        return (
            f"no kernel function is open at #{reading.now}{inside}: "
            "goto an event inside a command, or break FUNCTION"
        )
    width = max(len(call.function) for call in reading.calls) + 2
    return "\n".join(
        f"#{number:<2} {call.function + '()':<{width}}  {call.path}".rstrip()
        for number, call in enumerate(reversed(reading.calls))
    )


def listing(reading: Listing, style: Style) -> str:
    """list: numbered lines, the current one marked with an arrow."""
    lines = [f"{reading.function}() in {reading.file}, Linux: {reading.path}"]
    for number, line in enumerate(reading.lines, reading.first):
        current = number == reading.marked
        mark = style.paint("=>", "changed") if current else "  "
        lines.append(f"{mark} {number:>4}  {line}".rstrip())
    return "\n".join(lines)


def text(reading: Text, _style: Style) -> str:
    """Lines of text, unchanged."""
    return "\n".join(reading.lines)


def value(reading: Value, _style: Style) -> str:
    """The value of an expression."""
    return reading.text
