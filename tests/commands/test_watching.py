"""A watch looks only where something that the expression read is written: it must find what looking
everywhere finds."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.api import Session
from kemu.debugger.stops import Changes, chunks, first_true, is_true, value_at
from kemu.errors import UsageError
from kemu.language.expr import compile_text
from kemu.observe.reads import noting
from kemu.observe.translation import page_tables
from kemu.trace.barrier import STRUCTS, Table

EXPRESSIONS = (
    "pfn(kid, 0x10000)",
    "refcount(pfn(app, 0x10000))",
    "mapcount(pfn(app, 0x11000))",
    "pte(app, 0x11000)",
    "app.rss + kid.rss",
    "app.total_vm",
    "kid.minor",
    "tasks()",
    "shared(app, kid)",
    "data_frames(app)",
    "table_frames(kid)",
    "alive(kid)",
    "byte(app, 0x10000)",
    "$pid",
    "mapped(app, 0x10000, 4p)",
    "rights(app, 0x11000)",
    "event() % 3",
)
COMMANDS = (
    "write app 0x10000 8",
    "write app 0x11000 8",
    "read app 0x12000",
    "fork app as kid",
    "write kid 0x10000 9",
    "write kid 0x11000 9",
    "exit kid",
    "wait app",
    "mprotect app 0x11000 1p r",
    "mprotect app 0x11000 1p rw",
    "munmap app 0x12000 1p",
    "mmap app 0x12000 1p rw",
    "madvise app 0x10000 2p dontneed",
    "use app",
)


def story(commands):
    session = Session()
    session.run("spawn app; mmap app 0x10000 4p rw; write app 0x10000 7")
    for command in commands:
        with contextlib.suppress(UsageError):  # what cannot be done in this order is left out
            session.run(command)
    return session


def everywhere(session, expression, low, high):
    """The changes of an expression, by looking at every moment."""
    found, old = [], value_at(session, expression, low)
    for moment in range(low + 1, high + 1):
        new = value_at(session, expression, moment)
        if new != old or type(new) is not type(old):
            found.append((moment, old, new))
        old = new
    return found


@settings(max_examples=15)
@given(st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=6), st.sampled_from(EXPRESSIONS))
def test_a_watch_finds_every_change(commands, text):
    session = story(commands)
    expression = compile_text(text)
    low = max(0, session.end - 600)
    wanted = everywhere(session, expression, low, session.end)
    changes = Changes(session, expression)
    found = [
        hit
        for begin, end in chunks(low, session.end, backwards=False, size=100)
        for hit in changes.values(begin, end)
    ]
    assert found == wanted


@settings(max_examples=10)
@given(
    st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=5), st.integers(0, 3), st.booleans()
)
def test_until_stops_where_looking_at_every_moment_would(commands, number, back):
    session = story(commands)
    condition = compile_text(
        ("app.rss == 1", "tasks() > 3", "refcount(pfn(app, 0x10000)) == 2", "app.rss == 99")[number]
    )
    low = max(0, session.end - 400)
    moments = range(session.end, low - 1, -1) if back else range(low, session.end + 1)
    wanted = next(
        (moment for moment in moments if is_true(value_at(session, condition, moment))), None
    )
    assert first_true(session, condition, moments[0], moments[-1]) == wanted


def test_noting_leaves_no_trace():
    before = [(cls.__dict__.get("__getattribute__"), cls.__name__) for cls in STRUCTS]
    methods = {name: value for name, value in vars(Table).items() if callable(value)}
    with noting() as reads, pytest.raises(ZeroDivisionError):
        1 // 0  # noqa: B018 - what a look may run into
    assert reads.cells == set()
    assert [(cls.__dict__.get("__getattribute__"), cls.__name__) for cls in STRUCTS] == before
    assert {name: value for name, value in vars(Table).items() if callable(value)} == methods


def test_what_is_read_is_noted_by_field_by_key_or_as_a_whole():
    table = Table("t", {1: 2})
    with noting() as reads:
        assert table.get(1) == 2
        assert 5 not in table
    assert (reads.cells, reads.whole) == ({(id(table), 1), (id(table), 5)}, set())
    with noting() as reads:
        assert list(table) == [1]
    assert reads.whole == {id(table)}


def test_a_watch_over_a_large_command_looks_at_few_moments(monkeypatch):
    session = Session()
    session.run(
        "spawn app; mmap app 0x10000000 400p rw populate; watch refcount(pfn(app, 0x10000000)); "
        "goto 0"
    )
    looks = []
    seen = Changes.look
    monkeypatch.setattr(
        Changes, "look", lambda self, moment: (looks.append(moment), seen(self, moment))
    )
    reading = session.run("continue")[-1].reading
    assert reading.stops[0].endswith("not there -> 1, by do_anonymous_page")
    session.run("continue")
    assert session.now == session.end > 10_000
    assert len(looks) < session.end / 20


# ---------------------------------------------------------------- many pages

GEOMETRIES = ("x86-64", "x86-64-la57", "sv39")


def frames_of_reading(session, name):
    """The frames that the picture of the page tables shows: the same question, asked of every entry
    in full."""

    def leaves(table):
        for run in table.runs:
            if run.table is not None:
                yield from leaves(run.table)
            elif (
                run.entry is not None and run.entry.pfn is not None and "zero" not in run.entry.note
            ):
                yield from range(run.entry.pfn, run.entry.pfn + run.count)

    return set(leaves(page_tables(session.kernel, session.tasks[session.names()[name]]).root))


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_frames_are_counted_as_the_page_tables_show_them(geometry):
    session = Session(geometry=geometry)
    session.run(
        "spawn app; mmap app 0x10000 40p rw; write app 0x10000 1b 20p; read app 0x30000; fork app "
        "as kid"
    )
    session.run(
        "write kid 0x10000 1b 7p; madvise app 0x18000 2p guard_install; mprotect kid 0x19000 3p -"
    )
    app, kid = frames_of_reading(session, "app"), frames_of_reading(session, "kid")
    assert session.reading("print shared(app, kid)").value == len(app & kid) > 5
    assert session.reading("print data_frames(app, kid)").value == len(app | kid) > len(app)
    assert session.reading("print data_frames(app)").value == len(app)
    tables = page_tables(session.kernel, session.tasks[session.names()["kid"]]).tables
    assert session.reading("print table_frames(kid)").value == tables
    assert session.reading("print frames_in(0x10000, 40p, app, kid)").value == len(app | kid)
    assert session.reading("print present(app, 0x10000, 40p)").value == 19
    assert session.reading("print zero_pages(app, 0x10000, 40p)").value == 1
    assert session.reading("print free_frames()").value == session.reading("free").free


def test_a_watch_over_many_pages_reads_no_entry_in_full(monkeypatch):
    session = Session()
    session.run("spawn app; mmap app 0x10000 1500p rw populate; fork app as kid")
    start = session.end
    session.run("write kid 0x10000 1b 20p")
    monkeypatch.setattr("kemu.observe.translation.read_entry", None)
    with session.traveling():
        found = list(Changes(session, compile_text("shared(app, kid)")).values(start, session.end))
    assert [new for _, _, new in found] == list(range(1499, 1479, -1))
