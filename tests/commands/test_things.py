"""One grammar for things: each form is accepted wherever a thing may be named, and what trace and
context print can be typed."""

from __future__ import annotations

import re

import pytest

from kemu.api import Session
from kemu.errors import UsageError
from kemu.language.things import HEADS

STORY = (
    "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid; mark before; "
    "write kid 0x10000 8; "
)

FORMS = {
    "refcount of a frame": [
        "frame 0x112 _refcount",
        "frame 0x112",
        "refcount 0x112",
        "refcount(0x112)",
        "frame(0x112, '_refcount')",
        "pfn 0x112 _refcount",
        "pfn 0x112 * _refcount",
        "pfn 0x112",
    ],
    "mapcount": ["frame 0x112 _mapcount", "mapcount 0x112", "pfn 0x112 _mapcount"],
    "an entry": ["pte kid 0x10000", "pte(kid, 0x10000)", "pfn(kid, 0x10000)"],
    "an upper entry": ["pmd kid 0x10000", "pte(kid, 0x10000, 'pmd')"],
    "a field of an mm": [
        "mm kid total_vm",
        "mm of kid total_vm",
        "mm(kid, 'total_vm')",
        "kid.total_vm",
        "mm of kid * total_vm",
    ],
    "resident pages": ["mm kid rss", "kid.rss", "rss(kid)"],
    "a counter of an mm": ["mm kid MM_ANONPAGES", "mm of kid rss_stat MM_ANONPAGES"],
    "a field of a task": [
        "task kid min_flt",
        "task kid (4) min_flt",
        "task(kid, 'min_flt')",
        "kid.minor",
    ],
    "a mapping": ["vma kid 0x10000", "vma 0x10000-0x11000 of kid", "vma(kid, 0x10000)"],
    "a field of one": ["vma kid 0x10000 vm_end", "vma 0x10000-0x11000 of kid vm_end"],
    "a number of the machine": ["counter nr_free_pages", "zone nr_free_pages"],
    "a TLB entry": ["tlb 0x10000", "tlb 0x10000 0", "tlb(0x10000)"],
    "a register": ["regs of kid ax", "field 'regs of kid' ax", "field('regs of kid', 'ax')"],
    "a word of RAM": ["ram 0x117000", "ram(0x117000)"],
}
CASES = [(thing, form) for thing, forms in FORMS.items() for form in forms]


@pytest.fixture(scope="module")
def session():
    session = Session()
    session.run(STORY)
    return session


@pytest.mark.parametrize(("thing", "form"), CASES, ids=[form for _, form in CASES])
@pytest.mark.parametrize("word", ["why", "history"])
def test_why_and_history_take_each_form(session, word, thing, form):
    assert session.reading(f"{word} {form}") == session.reading(f"{word} {FORMS[thing][0]}")


@pytest.mark.parametrize(("thing", "form"), CASES, ids=[form for _, form in CASES])
def test_an_expression_takes_each_form(session, thing, form):
    values = {}
    for typed in (FORMS[thing][0], form):
        session.run("goto before; delete; watch " + typed)
        session.run("delete")
        values[typed] = session.reading("goto end; print " + typed).value
    if form == "mapcount 0x112":
        assert values[form] == session.value("mapcount(0x112)") == values[FORMS[thing][0]] + 1
    elif form.startswith("pfn("):
        assert values[form] == session.value("pfn(kid, 0x10000)")
    else:
        assert values[form] == values[FORMS[thing][0]]


@pytest.mark.parametrize(
    "line",
    [
        "watch refcount 0x112",
        "display refcount 0x112",
        "break do_wp_page if refcount 0x112 == 2",
        "break do_wp_page if refcount 0x112 == 2 and kid.rss == 1",
        "goto before; until refcount 0x112 == 3",
        "back until pfn 0x112 _refcount == 3",
        "print/x pfn 0x112 _refcount",
        "refcount 0x112",
    ],
)
def test_things_stand_where_expressions_do(line):
    session = Session()
    session.run(STORY)
    assert session.run(line)[-1].ok


@pytest.mark.parametrize("word", ["refcount", "mapcount"])
def test_a_function_of_a_frame_in_words_is_the_function(session, word):
    session.run("goto end")
    assert session.reading(f"print {word} 0x112").value == session.value(f"{word}(0x112)")
    assert session.text(f"watch {word} 0x112; delete").startswith("watch ")
    assert f"{word}(0x112)" in session.text(f"watch {word} 0x112; delete all")


def test_every_name_that_trace_prints_can_be_asked_about(session):
    refused = []
    for event in session.reading("trace before end all").events:
        if event.kind in ("alloc", "list", "row") or event.what.startswith(("page ", "tasks", "(")):
            continue
        session.run(f"goto {event.number}")
        try:
            found = session.reading(f"history {event.what} {event.field}".strip())
        except UsageError as error:
            refused.append(f"{event.what} {event.field}: {error.what}")
            continue
        if event.old != event.new and not any(c.number == event.number for c in found.changes):
            refused.append(f"{event.what} {event.field}: #{event.number} is missing")
    assert not refused


@pytest.mark.parametrize(
    ("line", "value"),
    [("kid.rss", 1), ("3p + 0x10", 12304), ("refcount(0x112)", 1), ("(1 + 2) * 3", 9), ("$1", 1)],
)
def test_a_bare_expression_is_printed(line, value):
    session = Session()
    session.run(STORY + "print kid.rss")
    reading = session.reading(line)
    assert reading.value == value
    assert re.match(r"\$2 = ", reading.text)


@pytest.mark.parametrize("line", ["frob", "refcounts 0x112", "x.y.z.", "kid.rsss", "nobody.rss"])
def test_what_means_nothing_is_still_an_error(session, line):
    with pytest.raises(UsageError):
        session.run(line)


def test_an_error_in_a_thing_names_it(session):
    with pytest.raises(UsageError, match="has no '_refcnt'") as caught:
        session.run("print frame 0x112 _refcnt")
    assert "_refcount" in caught.value.hint
    with pytest.raises(UsageError, match="mm_struct has no 'totl_vm'"):
        session.run("why mm of kid totl_vm")


def test_the_page_of_expressions_names_the_things(session):
    page = session.text("help expressions") + session.text("print functions")
    assert all(head in page for head in HEADS - {"pgd", "p4d", "pud", "pmd"})
