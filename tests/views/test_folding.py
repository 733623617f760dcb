"""At a terminal no line is torn in the middle of a word: tables at 80 and at 60 columns."""

import pytest

from kemu.api import Session
from kemu.commands import table
from kemu.commands.run import run
from kemu.front.terminal.output import fitted, to_text
from kemu.readings import Picture
from kemu.views.folding import folded
from kemu.views.style import ASCII, Style

SETUP = (
    "spawn app; mmap app 0x10000 4p rw; write app 0x10000 7; load "
    "tests/data/exec/files/tiny-static as "
    "/bin/a-rather-long-name/tiny; exec app /bin/a-rather-long-name/tiny one two; fork app as child"
)
TABLES = (
    "maps app", "smaps app", "status app", ("stat "
                                           "app"), "ps", "tree", "mm app", "mem", "free", "tlb", "ls",
    "walk app 0x401000", "pt app", "vma app 0x401000", ("frame "
                                                       "0x112"), "rmap 0x112", "layout", "regs app", "pagemap app",
    "trace", "calls", ("diff "
                      "0 "
                      "end"), "timelines", "show", "help", "apropos page", "help terms", "show settings", "cost",
)  # fmt: skip


def terminal(width, **more):
    return Style(width, fold=True, **more)


@pytest.fixture(scope="module")
def kemu():
    session = Session()
    assert all(result.ok for result in run(session, SETUP))
    return session


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("command", TABLES)
def test_no_line_is_wider_than_the_terminal(kemu, command, width):
    for result in run(kemu, command):
        if not result.ok:
            continue
        for line in to_text(result, terminal(width)).split("\n"):
            assert len(line) <= width or " " not in line.strip() or ";" in line, line


def test_each_of_the_tables_is_a_command():
    assert all(table.find(command.split()[0]) is not None for command in TABLES)


def test_names_in_maps_move_left_together_before_one_is_torn(kemu):
    lines = to_text(run(kemu, "maps app")[-1], terminal(80)).split("\n")
    assert any(line.endswith(" 0 [vsyscall]") for line in lines)
    assert len({line.index("[") for line in lines if "[" in line and not line.startswith("f")}) == 1
    assert all(len(line) <= 80 for line in lines)


def test_where_nobody_looks_maps_is_the_kernels_text(kemu):
    result = run(kemu, "maps app")[-1]
    proc = to_text(run(kemu, "maps app proc")[-1], terminal(60))
    assert to_text(result, Style(60)) == proc
    assert {line.index("/") for line in proc.split("\n") if "/" in line} == {73}
    assert to_text(result, terminal(120)) == proc


def test_the_memory_map_has_half_as_many_frames_on_a_narrow_terminal(kemu):
    wide, narrow = (
        to_text(run(kemu, "mem")[-1], terminal(width)).split("\n")[0] for width in (80, 60)
    )
    assert (len(wide.split()[1]), len(narrow.split()[1])) == (64, 32)


def test_what_follows_goes_under_the_last_column_of_the_left_half():
    line = "cost    what a command or a range cost, beside the same"
    assert (
        folded(line, 30)
        == "cost    what a command or a\n        range cost, beside the\n        same"
    )
    assert folded("aaaa  bbbb  cccc", 14) == "aaaa  bbbb\n    cccc"
    assert folded("  pid, zombie, minor fault", 20) == "  pid, zombie, minor\n      fault"
    assert folded("a" * 20 + "  " + "b" * 8, 24) == "a" * 20 + "\n    " + "b" * 8


def test_what_cannot_be_broken_or_is_to_be_copied_stays_whole():
    assert folded("x" * 50, 20) == "x" * 50
    assert folded("  spawn app; mmap app 2p rw", 20) == "  spawn app; mmap app 2p rw"


def test_colour_takes_no_columns():
    painted = "\x1b[1;31mred\x1b[0m and as long as it may be"
    assert folded(painted, 29) == painted
    assert folded(painted, 20) == "\x1b[1;31mred\x1b[0m and as long as\n    it may be"


def test_a_drawing_is_left_as_it_is(kemu):
    result = run(kemu, "graph tree")[-1]
    assert isinstance(result.reading, Picture)
    assert to_text(result, terminal(40)) == to_text(result, Style(40))
    assert fitted("a b", terminal(2)) == "a\n b"
    assert fitted("a b", Style(2, ASCII)) == "a b"
