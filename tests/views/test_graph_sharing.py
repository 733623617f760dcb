"""Sharing: what a picture says a write would do is what the write does, and a process of a gigabyte
is drawn by folding."""

import time

import pytest

from kemu.api import Session
from kemu.kernel.include.mm_types import page
from kemu.kernel.include.system import system
from kemu.machine import mmu
from kemu.machine.physmem import Frame
from kemu.observe.pictures.sharing import sharing
from kemu.views.pictures import draw as graph
from kemu.views.style import UNICODE, Style
from kemu.views.terminal import render

PAGE = "spawn a; mmap a 0x10000 2p rw; write a 0x10000 1; "
STORIES = {
    "fresh": PAGE + "read a 0x11000 1",
    "forked": PAGE + "read a 0x11000 1; fork a as b",
    "copied": PAGE + "write a 0x11000 1; fork a as b; write b 0x10000 2",
    "read only": PAGE + "fork a as b; mprotect b 0x10000 1p r",
    "made writable again": PAGE + "mprotect a 0x10000 1p r; mprotect a 0x10000 1p rw",
    "shared file": "mkfile /d 2p; spawn a; mmap a 0x10000 2p rw file /d shared; read a 0x10000 1; "
    "write a 0x11000 1; fork a as b",
    "private file": "mkfile /d 2p; spawn a; mmap a 0x10000 2p rw file /d; read a 0x10000 1; write "
    "a 0x11000 1; fork a as b",
    "shared memory": "spawn a; mmap a 0x10000 2p rw shared; write a 0x10000 1; read a 0x11000 1; "
    "fork a as b",
    "held by a pipe": PAGE + "fork a as b; write b 0x10000 2; pipe a; vmsplice a 3 0x10000 1p",
    "in a batch": "set lru_batch on; " + PAGE + "fork a as b; write b 0x10000 2; write b 0x11000 2",
    "no access": PAGE + "mprotect a 0x10000 1p none",
}


def told(session, edge, space):
    """What a write at the edge really does, in the picture's words; it is taken back."""
    task = session.tasks[space.pid]
    before = frame_at(session, task, edge.address)
    with session.beside(session.now):
        done = session.performer.store(session.tasks[space.pid], edge.address, b"!")
        after = None if done.signal else frame_at(session, task, edge.address)
    if done.signal:
        return "SIGSEGV"
    if not done.minor + done.major:
        return "write"
    return "copy" if after != before else "same frame"


def frame_at(session, task, address):
    session.kernel.activate()
    steps, stopped = mmu.walk(system.phys, system.geometry, task.mm.pgd, address)
    return None if stopped else system.geometry.entry_pfn(steps[-1].entry)


@pytest.mark.parametrize("story", STORIES)
def test_the_picture_says_what_the_write_does(story):
    kemu = Session()
    results = kemu.run(STORIES[story])
    assert not [result for result in results if getattr(result.reading, "errno", 0)]
    tasks = [kemu.find(name) for name in ("a", "b") if name in kemu.names()]
    picture = sharing(kemu.kernel, tasks)
    edges = [edge for frame in picture.frames for edge in frame.edges]
    assert edges
    for edge in edges:
        says = "same frame" if edge.outcome in ("reuse", "fault") else edge.outcome
        assert told(kemu, edge, picture.spaces[edge.space]) == says, (story, edge)


def test_the_stories_meet_every_outcome():
    seen = set()
    for story in STORIES.values():
        kemu = Session()
        kemu.run(story)
        tasks = [kemu.find(name) for name in ("a", "b") if name in kemu.names()]
        seen |= {
            edge.outcome for frame in sharing(kemu.kernel, tasks).frames for edge in frame.edges
        }
    assert seen == {"write", "reuse", "copy", "fault", "SIGSEGV"}


def test_tasks_with_one_mm_are_one():
    kemu = Session()
    kemu.run("spawn app; mmap app 0x10000 1p rw; write app 0x10000 1; clone app vm as worker")
    picture = kemu.reading("graph sharing app worker app").subject
    assert [(space.name, space.pid) for space in picture.spaces] == [("app = worker", 3)]
    assert [len(frame.edges) for frame in picture.frames] == [1]


def test_whoever_else_holds_a_frame_is_named():
    kemu = Session()
    kemu.run("spawn app; mmap app 0x10000 1p rw; write app 0x10000 1; fork app as kid")
    (frame,) = kemu.reading("graph sharing app").subject.frames
    assert frame.others == ("kid 0x10000",)
    assert "also: kid 0x10000" in kemu.text("graph sharing app")


def test_before_a_child_is_born_only_the_parent_is_drawn():
    kemu = Session()
    kemu.run("spawn app; mmap app 0x10000 1p rw; write app 0x10000 1; mark alone; fork app as kid")
    picture = kemu.reading("graph sharing app kid --diff alone end")
    assert [space.name for space in picture.earlier.spaces] == ["app"]
    assert [space.name for space in picture.subject.spaces] == ["app", "kid"]
    assert kemu.now == kemu.end


def test_what_does_not_exist_at_one_moment_is_said_there():
    kemu = Session()
    kemu.run("spawn app; mmap app 0x10000 1p rw")
    text = kemu.text("graph mm app --diff 0 end")
    assert "nothing to draw: no task 'app'" in text
    assert "* mm#2 of app" in text
    assert "+ app (pid 3, R)" in text


# ---------------------------------------------------------------- a gigabyte

PAGES = 262_144
START = 0x40000000


@pytest.fixture(scope="module")
def big():
    """A process of 262,144 pages. The kernel would take ten seconds to fault them in, so frames and
    tables are put in place."""
    kemu = Session(mem=1280 << 20, record=False)
    kemu.run(f"spawn big; mmap big {START:#x} 1G rw; write big {START:#x} 1")
    phys, bits = system.phys, system.bits
    steps, _ = mmu.walk(phys, system.geometry, kemu.find("big").mm.pgd, START)
    model = system.mem_map[system.geometry.entry_pfn(steps[3].entry)]
    pfns = iter(pfn for pfn in range(0x1400, phys.nr_frames) if pfn not in system.mem_map)
    leaf, table = (step.entry & ~bits.pfn_mask for step in (steps[3], steps[2]))
    words = {}
    for number in range(512):
        below = {}
        for index in range(512):
            pfn = next(pfns)
            found = page(
                pfn=pfn,
                flags=model.flags,
                mapping=model.mapping,
                index=model.index + number * 512 + index,
            )
            found._restore("_refcount", 1)
            found._restore("_mapcount", 0)
            system.mem_map[pfn] = found
            below[index] = leaf | pfn << 12
        pfn = next(pfns)
        phys.frames.update({pfn: Frame(pfn, below)})
        words[number] = table | pfn << 12
    directory = steps[2].entry_pa >> 12
    phys.frames.update({directory: Frame(directory, words)})
    return kemu


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("tables big", "folded: 511 tables and 262143 leaves"),
        ("sharing big", "folded: 262144 frames that look alike are drawn as 1 box"),
        ("mm big", "262144 of 262144 pages"),
        ("mem", "frames not drawn"),
        ("mem refcount", "frames not drawn"),
        ("tree", "rss 1"),
        ("layout big", f"{START:#x}-{START + (1 << 30):#x} rw-p"),
        (f"walk big {START + (1 << 29):#x}", "frame 0x"),
        (f"rmap pfn(big,{START + 8192:#x})", "maps it"),
    ],
)
def test_a_gigabyte_is_drawn_in_three_seconds_and_says_what_is_folded(big, words, says):
    began = time.process_time()
    picture = big.reading(f"graph {words}")
    text = render(picture, Style(glyphs=UNICODE))
    source = graph.dot(picture)
    took = time.process_time() - began
    assert says in text
    assert took < 3
    assert len(text.split("\n")) < 70
    assert len(source) < 20_000


def test_two_processes_that_share_a_gigabyte_are_drawn_as_quickly(big):
    big.run(f"fork big as kid; write kid {START + (5 << 20):#x} 7")
    began = time.process_time()
    text = render(big.reading("graph sharing big kid"), Style(glyphs=UNICODE))
    assert time.process_time() - began < 6
    assert "0x40000000 [0] 1280 pages" in text
    assert "0x40501000 [257] x260863" in text
    assert "folded: 262143 frames that look alike are drawn as 2 boxes" in text
