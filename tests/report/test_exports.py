"""`trace --format`: what it writes is what the other tools read, and what `calls` and `trace`
say."""

import json
import re
from collections import defaultdict

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import TraceProtoBuilder

from kemu.errors import UsageError
from kemu.readings import CallReading
from tests.report.plays import session_of

TEXT = (
    "spawn app; mmap app 0x10000 2p rw; write app 0x10000 7; fork app as kid; on 1 write kid "
    "0x10000 8; "
    "signal app SEGV handle; read app 0; exit kid; write app 0x11000 9"
)


@pytest.fixture(scope="module")
def session():
    return session_of(TEXT)


@pytest.fixture(scope="module")
def trace(session, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    session.run(f"trace 0 end --format chrome -o {path}")
    return json.loads(path.read_text(encoding="utf-8"))["traceEvents"]


def slices(trace):
    """(begin, end, event) of the slices of each track, in order, a longer one before those that
    begin with it."""
    found = defaultdict(list)
    for event in trace:
        if event["ph"] == "X":
            begin = round(event["ts"] * 1e6)
            found[event["pid"], event["tid"]].append(
                (begin, begin + round(event["dur"] * 1e6), event)
            )
    return {track: sorted(rows, key=lambda row: (row[0], -row[1])) for track, rows in found.items()}


def names(trace, what):
    return {
        (e["pid"], e.get("tid")): e["args"]["name"]
        for e in trace
        if e["ph"] == "M" and e["name"] == what
    }


def all_calls(node):
    for child in node:
        if isinstance(child, CallReading):
            yield child
            yield from all_calls(child.children)


# ---------------------------------------------------------------- chrome

FIELDS = {
    "M": {"ph": str, "name": str, "pid": int, "args": dict},
    "X": {
        "ph": str,
        "name": str,
        "cat": str,
        "pid": int,
        "tid": int,
        "ts": (int, float),
        "dur": (int, float),
        "args": dict,
    },
    "C": {"ph": str, "name": str, "pid": int, "ts": (int, float), "args": dict},
    "i": {"ph": str, "name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "s": str},
}
"""The fields that the Trace Event Format asks for, by phase."""


def test_every_event_has_the_fields_of_the_format(trace):
    assert {event["ph"] for event in trace} == set(FIELDS)
    for event in trace:
        for field, kind in FIELDS[event["ph"]].items():
            assert isinstance(event[field], kind), (field, event)
        assert event.get("dur", 1) > 0
        assert event.get("ts", 0) >= 0


def test_slices_of_a_track_lie_within_each_other_or_apart(trace):
    tracks = slices(trace)
    assert len(tracks) >= 5
    for rows in tracks.values():
        open_until = []
        for begin, end, event in rows:
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1], event
            open_until.append(end)


def test_there_is_a_track_for_each_task_and_each_cpu(trace):
    assert names(trace, "process_name") == {
        (1, None): "tasks",
        (2, None): "CPUs",
        (3, None): "commands",
    }
    tracks = names(trace, "thread_name")
    assert {"app (3)", "kid (4)"} <= {name for (pid, _), name in tracks.items() if pid == 1}
    assert [name for (pid, _), name in sorted(tracks.items()) if pid == 2] == ["CPU 0", "CPU 1"]
    used = {(event["pid"], event["tid"]) for event in trace if event["ph"] in "Xi"}
    assert used <= set(tracks)


def test_each_call_stands_once_on_a_task_and_once_on_a_cpu(session, trace):
    wanted = sorted(
        (call.function, call.path) for call in all_calls(session.reading("calls 0 end").roots)
    )
    for pid in (1, 2):
        found = [
            (e["name"], e["args"]["file"])
            for e in trace
            if e["ph"] == "X" and e["pid"] == pid and "file" in e["args"]
        ]
        assert sorted(found) == wanted


def test_the_child_copied_on_cpu_1_and_the_rest_ran_on_cpu_0(trace):
    places = {(e["pid"], e["tid"]) for e in trace if e["ph"] == "X" and e["name"] == "wp_page_copy"}
    assert places == {(1, 4), (2, 1)}
    forks = {(e["pid"], e["tid"]) for e in trace if e["ph"] == "X" and e["name"] == "kernel_clone"}
    assert (2, 0) in forks
    assert (2, 1) not in forks


def test_a_callee_lies_within_its_caller(trace):
    rows = slices(trace)[1, 4]
    begin, end, _ = next(row for row in rows if row[2]["name"] == "exc_page_fault")
    inner = [row[2]["name"] for row in rows if begin < row[0] and row[1] < end]
    assert {"handle_mm_fault", "do_wp_page", "wp_page_copy"} <= set(inner)


def test_commands_are_slices_too(session, trace):
    typed = [event["name"] for event in trace if event["ph"] == "X" and event["pid"] == 3]
    assert typed == [
        record.text for record in session.timeline.records if record.last > record.first
    ]


def test_faults_and_signals_are_points_on_the_task(session, trace):
    points = [(event["name"], event["tid"]) for event in trace if event["ph"] == "i"]
    faults = [
        call
        for call in all_calls(session.reading("calls 0 end").roots)
        if call.function == "exc_page_fault"
    ]
    assert len([name for name, _ in points if name == "page fault"]) == len(faults) == 4
    assert ("page fault", 4) in points
    assert ("SIGSEGV", 3) in points


def test_curves_end_at_what_the_machine_says(session, trace):
    last = {event["name"]: event["args"]["pages"] for event in trace if event["ph"] == "C"}
    assert last["free frames"] == session.reading("free").free
    assert last["rss of app"] == next(
        task.rss for task in session.reading("ps").tasks if task.name == "app"
    )
    assert last["rss of kid"] == 0


def test_perfetto_reads_the_same_back(trace):
    """Perfetto's own messages take every track and slice, and give back the same nesting."""
    builder = TraceProtoBuilder()
    uuids = {track: number for number, track in enumerate(sorted(names(trace, "thread_name")), 1)}
    for track, name in names(trace, "thread_name").items():
        packet = builder.add_packet()
        packet.track_descriptor.uuid = uuids[track]
        packet.track_descriptor.name = name
    for track, rows in slices(trace).items():
        ends = [(begin, 1, -end, row) for begin, end, row in rows] + [
            (end, 0, -begin, row) for begin, end, row in rows
        ]
        for time, begins, _, row in sorted(ends, key=lambda e: e[:3]):
            packet = builder.add_packet()
            packet.timestamp = time
            packet.trusted_packet_sequence_id = 1
            packet.track_event.type = (
                TrackEvent.TYPE_SLICE_BEGIN if begins else TrackEvent.TYPE_SLICE_END
            )
            packet.track_event.track_uuid = uuids[track]
            if begins:
                packet.track_event.name = row["name"]
    read = Trace.FromString(builder.serialize())
    assert all(isinstance(packet, TracePacket) for packet in read.packet)
    tracks = {
        p.track_descriptor.uuid: p.track_descriptor
        for p in read.packet
        if p.HasField("track_descriptor")
    }
    assert all(isinstance(track, TrackDescriptor) for track in tracks.values())
    stacks = defaultdict(list)
    deepest = defaultdict(int)
    for packet in read.packet:
        if packet.HasField("track_event"):
            stack, event = stacks[packet.track_event.track_uuid], packet.track_event
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                stack.append(event.name)
                deepest[event.track_uuid] = max(deepest[event.track_uuid], len(stack))
            else:
                stack.pop()
    assert not any(stacks.values())
    assert deepest[uuids[1, 4]] >= 8


# ---------------------------------------------------------------- ftrace

LINE = re.compile(r" (\d)\)(.{15})\|  ((?:  )*)(\w+\(\) \{|\w+\(\);|\}|/\* .* \*/)")


def lines_of(session, text):
    return session.text(text).split("\n")


def test_ftrace_is_the_call_tree(session):
    lines = lines_of(session, "trace 0 end --format ftrace")
    assert lines[0] == "# tracer: function_graph"
    body = [line for line in lines if re.match(r" \d\).*\|", line)]
    matched = [LINE.fullmatch(line) for line in body]
    assert all(matched), [line for line, match in zip(body, matched, strict=True) if not match]
    called = [match[4].split("(")[0] for match in matched if match[4].endswith(("{", ";"))]
    assert called == [call.function for call in all_calls(session.reading("calls 0 end").roots)]
    opened = sum(match[4].endswith("{") for match in matched)
    assert opened == sum(match[4] == "}" for match in matched)


def test_ftrace_counts_events_as_microseconds(session):
    durations = [
        match[2].strip()
        for match in map(LINE.fullmatch, lines_of(session, "trace 0 end --format ftrace"))
        if match
    ]
    tree = session.reading("calls 0 end")
    wanted = sorted(f"{call.last - call.first}.000 us" for call in all_calls(tree.roots))
    assert sorted(re.sub(r"^[+!#*@$] ", "", text) for text in durations if text) == wanted


def test_ftrace_says_when_a_cpu_changes_its_task(session):
    lines = lines_of(session, "trace 0 end --format ftrace")
    assert any(re.fullmatch(r" 0\) +app-3  =>  kid-4", line) for line in lines)


def test_ftrace_goes_to_a_file_too(session, tmp_path):
    path = tmp_path / "trace.txt"
    session.run(f"trace 0 end --format ftrace -o {path}")
    assert path.read_text(encoding="utf-8").rstrip("\n").split("\n") == lines_of(
        session, "trace 0 end --format ftrace"
    )


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("trace --format chrome", "needs a file"),
        ("trace -o /tmp/x.json", "-o needs a format"),
        ("trace --format svg", "expected one of ftrace, chrome"),
        ("trace --format", "missing"),
        ("trace 0 end --format chrome -o /no/such/folder/x.json", "cannot write"),
        ("trace 0 end --format chrome -o /", "is not a file"),
    ],
)
def test_a_mistake_is_one_clear_line(session, text, what):
    with pytest.raises(UsageError, match=what):
        session.run(text)


def test_ugly_names_stay_text(tmp_path):
    session = session_of(
        "spawn app; mkfile '/*/ \"<script>' 1p; mmap app 0x10000 1p r file '/*/ \"<script>'; read "
        "app 0x10000"
    )
    path = tmp_path / "ugly.json"
    session.run(f"trace 0 end --format chrome -o {path}")
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    assert any('"<script>' in event["name"] for event in events)
    assert all(
        LINE.fullmatch(line)
        for line in lines_of(session, "trace 0 end --format ftrace")
        if "script" in line
    )
