"""Colour by meaning: it never changes a letter, every meaning has a word, and pictures name theirs."""

from __future__ import annotations

import re

import pytest

from kemu.api import Session
from kemu.commands.context import LINE_WIDTH
from kemu.front.terminal.output import to_text
from kemu.readings import Picture
from kemu.views.colours import LEGEND, coloured
from kemu.views.pictures.dot import LEGEND as PICTURE_LEGEND
from kemu.views.pictures.dot import ROLES as NODE_ROLES
from kemu.views.pictures.dot import WRITES
from kemu.views.pictures.draw import dot, svg
from kemu.views.pictures.layout import scaling
from kemu.views.style import ROLES, UNICODE, Style

STORY = (
    "spawn app; mmap app 0x10000 2p rw; write app 0x10000 7; write app 0x11000 7; fork app as kid; "
    "write kid 0x10000 8; "
)
LOOKS = (
    "maps app",
    "walk kid 0x10000",
    "walk app 0x11000",
    "graph sharing app kid",
    "graph walk app 0x10000",
    "graph sharing app kid --diff 0 end",
    "trace",
    "calls",
    "diff 0 end",
    "tlb",
    "why pte kid 0x10000",
    "write app 0x11000 9",
    "read app 0x900000",
    "back; step",
)
_ESCAPE = re.compile("\x1b\\[[0-9;]*m")


def drawn(line, *, colour):
    session = Session()
    session.run(STORY)
    style = Style(glyphs=UNICODE, colour=colour)
    return "\n".join(to_text(result, style) for result in session.run(line))


@pytest.mark.parametrize("line", LOOKS)
def test_colour_changes_no_letter(line):
    painted = drawn(line, colour=True)
    assert _ESCAPE.sub("", painted) == drawn(line, colour=False)


@pytest.mark.parametrize(
    ("line", "role", "text"),
    [
        ("maps app", "writable", "w"),
        ("walk kid 0x10000", "writable", "W"),
        ("graph sharing app kid", "copy", "COPY"),
        ("write app 0x11000 9", "copy", "copied"),
        ("write app 0x10000 9", "reuse", "reused"),
        ("read app 0x900000", "error", "SIGSEGV"),
        ("munmap app 0x10001 1p", "error", "-EINVAL (22)"),
        ("mmap app 0x50000 1p rw", "new", "0x50000"),
        ("trace", "address", "0x10000"),
    ],
)
def test_each_meaning_has_its_colour(line, role, text):
    assert f"\x1b[{ROLES[role]}m{text}\x1b[0m" in drawn(line, colour=True)


def test_a_stale_translation_is_marked():
    style = Style(colour=True)
    assert f"\x1b[{ROLES['stale']}mSTALE\x1b[0m" in coloured("0x1 STALE", style)


def test_help_has_the_legend_from_the_table():
    page = Session().text("help colours")
    assert all(what in page for what in LEGEND.values())
    assert set(LEGEND) <= set(ROLES)


def test_text_for_people_and_code_stay_plain():
    for line in ("help fork", "list do_wp_page", "help colours"):
        assert drawn(line, colour=True) == drawn(line, colour=False)


# ---------------------------------------------------------------- SVG


def picture(line):
    session = Session()
    session.run(STORY)
    reading = session.reading(line)
    assert isinstance(reading, Picture)
    return reading


def test_a_picture_names_each_colour_that_it_uses():
    text = dot(picture("graph sharing app kid")).replace("\\", "")
    for key, colour in WRITES.items():
        assert (f'color="{colour}"' in text) is (PICTURE_LEGEND[key] in text)
    assert PICTURE_LEGEND["COPY"] in text
    assert PICTURE_LEGEND["shared"] in text
    for role in ("shared", "frame"):
        assert NODE_ROLES[role]["fillcolor"] in text


def test_a_colour_is_never_alone():
    text = dot(picture("graph sharing app kid"))
    for line in text.splitlines():
        if f'color="{WRITES["COPY"]}"' in line:
            assert "COPY" in line
        if NODE_ROLES["shared"]["fillcolor"] in line:
            assert "penwidth=2.5" in line


def test_a_comparison_names_the_colours_of_its_marks():
    text = dot(picture("graph sharing app kid --diff 300 end")).replace("\\", "")
    assert "new: green border" in text
    assert "changed: yellow border" in text


def test_an_svg_takes_the_width_of_the_page():
    made = scaling(b'<svg width="1297pt" height="300pt" viewBox="0.00 0.00 1297.00 300.00">')
    assert made == b'<svg width="100%" style="max-width:1297pt" viewBox="0.00 0.00 1297.00 300.00">'
    plotted = svg(picture("graph plot app.rss"))
    opening = plotted[: plotted.index(">")]
    assert 'width="100%"' in opening
    assert "viewBox=" in opening
    assert "height=" not in opening


# ---------------------------------------------------------------- one line of context


def test_context_line_is_one_line_per_change():
    session = Session()
    session.run("context line")
    from kemu.commands.context import shown_after

    for line in STORY.split("; "):
        if line.strip():
            (result,) = session.run(line)
            shown = list(shown_after(session, result.command, result.first, result.last))
            assert len(shown) <= 1
            for text in shown:
                (only,) = text.lines
                assert only.startswith(f"#{result.first} -> #{result.last}  ")
                assert len(only) <= LINE_WIDTH + 30
    assert any("pte kid 0x10000" in line for line in shown[0].lines)
    moved = session.reading("goto 300; step")
    assert moved.calls == ()
    assert moved.picture is None
