"""Every golden script shows what it says."""

from __future__ import annotations

import re

import pytest

from tests.golden.runner import FOLDER, SCRIPTS, chosen, machine, play, read, write


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_golden_script_shows_what_it_says(path):
    text = path.read_text(encoding="utf-8")
    assert write(play(text)) == text


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_golden_script_opens_with_its_reason(path):
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    assert first.startswith("# ")
    assert first.endswith(".")


def test_every_story_of_the_kernel_is_told_and_each_is_short():
    assert len(SCRIPTS) >= 80
    lines = {path.stem: path.read_text(encoding="utf-8").count("\n") for path in SCRIPTS}
    assert [name for name, count in lines.items() if count > 150] == []


SITUATIONS = (
    "first_touch_read_then_write", "fork_then_child_writes", "fork_then_parent_writes", "fork_then_both_write",
    "three_sharers_last_one_reuses", "chained_forks", "zero_page_after_fork", "mprotect_over_shared_pages",
    "munmap_in_the_middle", "exec_after_fork", "segfaults_by_code", "vfork_lends_the_address_space",
    "a_thread_shares_the_address_space", "a_kernel_thread_borrows_an_mm",
)  # fmt: skip
"""The situations that everyone who teaches this subject shows."""


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_situations_show_their_events_and_the_call_tree(name):
    text = (FOLDER / f"{name}.kemu").read_text(encoding="utf-8")
    assert re.search(r"\[events[^]]*\] \[calls[^]]*\]", text)
    assert "() {" in text
    assert re.search(r"^#\d+ +\w+ .* -> ", text, re.MULTILINE)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_nothing_of_the_host_shows(path):
    """Objects of Python and where they lie say nothing to a student, and differ from run to run."""
    assert not re.search(r"<\w+ \w+|object at|\w\(\w+=", path.read_text(encoding="utf-8"))


def test_a_script_is_read_as_blocks_of_commands_and_output():
    text = "# why\nspawn a\n---\nspawn -> 3\n\n! nonsense\n---\nerror\n.\n"
    blocks = read(text)
    assert [block.commands for block in blocks] == [["# why", "spawn a"], ["! nonsense"]]
    assert [block.output for block in blocks] == [["spawn -> 3"], ["error", "."]]
    assert write(blocks) == text


TREE = [
    "      1-9  f() {                     mm/f.c",
    "      1-4    g() {                   mm/g.c",
    "        3      h();                  mm/h.c",
    "             }",
    "             h();                    mm/h.c",
    "           }",
]
ROWS = [
    "1 differences",
    "mm of app * rss 0 -> 1",
    "          * total_vm 1 -> 2 (a",
    "            b)",
]


@pytest.mark.parametrize(
    ("kind", "lines", "words", "shown"),
    [
        ("calls", TREE, ["g"], TREE[1:4]),
        ("calls", TREE, ["h", "g"], [TREE[2], *TREE[1:4]]),
        ("calls", TREE, [], TREE),
        (
            "events",
            ["#1  f  pte", "       more", "#2  g  pte", "3 not shown"],
            ["g"],
            ["#2  g  pte"],
        ),
        ("events", ["#1  f  pte", "       more", "#2  g"], ["pte"], ["#1  f  pte", "       more"]),
        ("diff", ROWS, ["total"], ["mm of app * total_vm 1 -> 2 (a", "            b)"]),
        ("diff", ROWS, ["app"], [*ROWS[1:2], "mm of app * total_vm 1 -> 2 (a", "            b)"]),
    ],
)
def test_a_story_shows_what_its_words_ask_for(kind, lines, words, shown):
    assert chosen(kind, lines, words) == shown


def test_a_script_may_say_what_its_machine_is():
    assert machine("# why\n[machine cpus=1 mem=8M geometry=sv39]\nspawn a\n") == {
        "cpus": 1,
        "mem": 8 << 20,
        "geometry": "sv39",
    }
    assert machine("# why\nspawn a\n") == {}
