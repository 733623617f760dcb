"""A trace for ui.perfetto.dev and chrome://tracing: JSON of the Trace Event Format.

    process 1 "tasks"     a track per task: the calls that it ran, nested; page faults and signals
                          as points
    process 2 "CPUs"      a track per CPU: which task ran, and in it the same calls; free frames as
                          a curve
    process 3 "commands"  what was typed; the resident pages of each process as curves

There is no clock in kemu: a microsecond is one event. Event N is at N us; a call that begins
between two events begins at a fraction between them, each at a different one, so that a call is
nested in the one that made it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from kemu.readings.tracks import RanCall, Tracks

TASKS, CPUS, COMMANDS = 1, 2, 3
"""Processes of the trace."""

Event = dict[str, Any]


class Span(NamedTuple):
    """A call with the times at which it begins and ends, in microseconds."""

    call: RanCall
    begin: float
    end: float
    root: bool


def chrome(tracks: Tracks) -> str:
    """The file."""
    events = list(trace_events(tracks))
    about = {"unit": "1 us is one event of kemu", "events": f"{tracks.first + 1} to {tracks.last}"}
    rows = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    return (
        f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about)},"traceEvents":[\n{rows}\n]}}\n'
    )


def trace_events(tracks: Tracks) -> Iterator[Event]:
    """All events, names first."""
    spans = timed(tracks.roots)
    yield from _names(tracks)
    for text, first, last in tracks.commands:
        yield _slice(
            (COMMANDS, 1),
            text,
            first + COMMAND,
            last + COMMAND,
            {"events": f"#{first + 1}-#{last}"},
        )
    yield from (_of_call(span, TASKS, span.call.pid) for span in spans)
    yield from _running(spans)
    yield from (_of_call(span, CPUS, span.call.cpu) for span in spans)
    for counted in tracks.counters:
        place = CPUS if counted.name == "free frames" else COMMANDS
        yield {
            "ph": "C",
            "name": counted.name,
            "pid": place,
            "ts": counted.number,
            "args": {"pages": counted.value},
        }
    faults = [
        (span.begin, "page fault", span.call.pid)
        for span in spans
        if span.call.function == "exc_page_fault"
    ]
    sent = [(float(at.number), at.name, at.pid) for at in tracks.signals]
    for time, name, task in sorted([*faults, *sent]):
        yield {
            "ph": "i",
            "s": "t",
            "name": name,
            "cat": "instant",
            "pid": TASKS,
            "tid": task,
            "ts": time,
        }


COMMAND = 0.5
"""How long after the event before its first and its last one a command begins and ends: where its
neighbours end and begin."""


def timed(roots: tuple[RanCall | tuple[int, str], ...]) -> list[Span]:
    """Every call with its times. Marks after the same event share the microsecond after it, in
    order."""
    order: list[tuple[int, RanCall, bool]] = []
    for root in roots:
        if isinstance(root, RanCall):
            order += _marks(root)
    share, seen = Counter(at for at, _, _ in order), Counter[int]()
    open_calls: list[tuple[RanCall, int, float]] = []
    spans: list[Span] = []
    for at, call, begins in order:
        seen[at] += 1
        time = round(at + 0.002 + 0.996 * seen[at] / (share[at] + 1), 6)
        if begins:
            open_calls.append((call, len(spans), time))
            spans.append(Span(call, time, time, root=len(open_calls) == 1))
        else:
            _, place, begun = open_calls.pop()
            spans[place] = spans[place]._replace(begin=begun, end=time)
    return spans


def _marks(call: RanCall) -> Iterator[tuple[int, RanCall, bool]]:
    """Beginnings and ends, as they happened."""
    yield call.first, call, True
    for node in call.inner:
        if isinstance(node, RanCall):
            yield from _marks(node)
    yield call.last, call, False


def _slice(
    track: tuple[int, int], name: str, begin: float, end: float, args: dict[str, Any]
) -> Event:
    times = {"ts": round(begin, 6), "dur": round(end - begin, 6)}
    return {
        "ph": "X",
        "name": name,
        "cat": "kemu",
        "pid": track[0],
        "tid": track[1],
        **times,
        "args": args,
    }


def _of_call(span: Span, pid: int, tid: int) -> Event:
    call = span.call
    args: dict[str, Any] = {"file": call.path}
    if call.last > call.first:
        args["events"] = f"#{call.first + 1}-#{call.last}"
    own = [text for number, text in (node for node in call.inner if not isinstance(node, RanCall))]
    if own:
        args["changes"] = own[:MOST_CHANGES]
    return _slice((pid, tid), call.function, span.begin, span.end, args)


MOST_CHANGES = 20
"""Maximum number of a call's own events that are listed."""


def _running(spans: list[Span]) -> Iterator[Event]:
    """For each CPU the stretches in which one task ran: from its first call there to its last."""
    stretches: dict[int, list[list[Any]]] = {}
    for span in (span for span in spans if span.root):
        runs = stretches.setdefault(span.call.cpu, [])
        who = f"{span.call.task} ({span.call.pid})"
        if runs and runs[-1][0] == who:
            runs[-1][2] = span.end
        else:
            runs.append([who, span.begin, span.end])
    for cpu, runs in sorted(stretches.items()):
        for who, begin, end in runs:
            yield _slice((CPUS, cpu), who, begin - EDGE, end + EDGE, {})


EDGE = 0.0005
"""How much wider than its calls the stretch of a task is."""


def _names(tracks: Tracks) -> Iterator[Event]:
    """What processes and tracks are called, and in which order they are listed."""
    for order, (pid, name) in enumerate(((TASKS, "tasks"), (CPUS, "CPUs"), (COMMANDS, "commands"))):
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": order}}
    threads = [(TASKS, pid, f"{name} ({pid})") for pid, name in tracks.tasks]
    threads += [(CPUS, cpu, f"CPU {cpu}") for cpu in range(tracks.cpus)]
    for pid, tid, name in [*threads, (COMMANDS, 1, "commands")]:
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
