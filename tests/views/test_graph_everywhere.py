"""Every kind of picture can be taken at any moment of any story, in the middle of a command too."""

import random
from pathlib import Path

import pytest

from kemu.api import Session
from kemu.commands.run import run
from kemu.views.json import to_data
from kemu.views.pictures import draw as graph
from kemu.views.style import UNICODE, Style
from kemu.views.terminal import render

STORIES = (
    "chained_forks", "exec_after_fork", "files_shrink_under_a_mapping", "guard_pages_kill", "mremap_moves_entries_not_pages",
    "others_reach_in", "vfork_lends_the_address_space", "zombies_and_orphans",
)  # fmt: skip
GEOMETRIES = ("x86-64", "sv39", "x86-64-la57")
ADDRESSES = (
    0x10000,
    0x11000,
    0,
    0x7FFFFFFDF000,
    0xFFFF888000000000,
    0x800000000000,
    0xFFFFFFFFFFFFFFFF,
)


def told(name, geometry):
    """The machine behind the story; what fails on the way is part of it."""
    text = (
        (Path(__file__).parents[1] / "golden" / f"{name}.kemu")
        .read_text(encoding="utf-8")
        .split("\n---\n")[0]
    )
    kemu = Session(geometry=geometry)
    run(
        kemu,
        "; ".join(line for line in text.split("\n") if not line.startswith(("#", "["))),
        keep_going=True,
    )
    return kemu


def words(kemu, rng):
    """One of each kind, about tasks and addresses drawn by lot."""
    one, other, third = (f"@{rng.choice(sorted(kemu.tasks))}" for _ in range(3))
    yield from (
        f"walk {one} {rng.choice(ADDRESSES):#x}",
        f"tables {one}",
        f"tables {one} kernel",
        f"sharing {one} {other}",
    )
    yield from (
        f"sharing {one} {other} {third}",
        f"mm {one}",
        f"rmap {rng.randrange(0x140)}",
        "tree",
        "mem",
        "mem refcount",
    )
    yield from (f"layout {one}", f"mm {one} --diff {rng.randrange(kemu.end + 1)} here")


@pytest.mark.parametrize("name", STORIES)
def test_every_picture_can_be_taken_anywhere(name):
    rng = random.Random(name)
    kemu = told(name, rng.choice(GEOMETRIES))
    drawn = 0
    for event in (kemu.end, *(rng.randrange(kemu.end + 1) for _ in range(2))):
        kemu.goto(event)
        for line in words(kemu, rng):
            (result,) = run(kemu, f"graph {line}")
            assert kemu.now == event
            if result.ok:
                drawn += 1
                assert_drawn(result.reading, line)
            else:
                assert "address space" in result.error.what or "no task" in result.error.what, (
                    line,
                    result.error,
                )
    assert drawn >= 12


def assert_drawn(picture, line):
    for style in (Style(), Style(glyphs=UNICODE)):
        text = render(picture, style)
        assert max(map(len, text.split("\n"))) <= 80, line
    assert graph.dot(picture).startswith("digraph")
    assert to_data(picture)["kind"] == line.split()[0]
