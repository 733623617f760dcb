"""Every golden script shows what it says."""

from __future__ import annotations

import pytest

from tests.golden.runner import SCRIPTS, play, read, write


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_golden_script_shows_what_it_says(path):
    text = path.read_text(encoding="utf-8")
    assert write(play(text)) == text


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_golden_script_opens_with_its_reason(path):
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    assert first.startswith("# ")
    assert first.endswith(".")


def test_a_script_is_read_as_blocks_of_commands_and_output():
    text = "# why\nspawn a\n---\nspawn -> 3\n\n! nonsense\n---\nerror\n.\n"
    blocks = read(text)
    assert [block.commands for block in blocks] == [["# why", "spawn a"], ["! nonsense"]]
    assert [block.output for block in blocks] == [["spawn -> 3"], ["error", "."]]
    assert write(blocks) == text
