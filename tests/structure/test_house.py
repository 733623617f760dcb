"""How well the inside is kept, held: each count of ``house.py`` that matters has its bound here."""

from collections import Counter
from statistics import median

import pytest

from tests.structure import house


def test_a_system_call_is_a_word_of_few_files():
    """The median was 12 files, and mseal's 14, before there were rows."""
    found = {call: len(files) for call, files in house.files_per_call().items()}
    assert median(found.values()) <= 5
    assert {call: found[call] for call in ("mseal", "munlock", "msync") if found[call] > 3} == {}


def test_a_typed_line_stays_in_few_rooms():
    """It was 34 stays, with one room visited 11 times, before there was a pipeline."""
    visited = house.stays()
    assert len(visited) <= 12, visited
    assert {room: n for room, n in Counter(visited).items() if n > 2} == {}


def test_no_line_is_too_wide():
    assert not house.wide_lines()


def test_most_constants_of_the_kernel_come_with_a_star():
    """682 were imported by name before constants-only modules were included whole."""
    assert house.constants_imported() < 682 / 2


def test_the_experiment_is_changed_by_its_own_methods():
    assert house.set_from_elsewhere() == []


def test_nobody_asks_a_step_for_its_kind():
    assert house.kinds_asked() == []


def test_help_says_each_argument_as_the_synopsis_does():
    assert house.help_mismatches() == []


def test_nothing_reads_as_translated():
    texts = list(house.own_texts())
    assert len(texts) > 5_000, "hardly any texts were found"
    assert house.translated(texts) == []


def test_each_story_is_short_and_there_are_many():
    found = house.stories()
    assert len(found) >= house.FEWEST_STORIES
    assert [name for name, lines in found.items() if lines > house.LONGEST_STORY] == []


# ---------------------------------------------------------------- the counts can rise


def package(folder, text):
    (folder / "kemu" / "lessons").mkdir(parents=True)
    (folder / "kemu" / "__init__.py").write_text("")
    (folder / "kemu" / "lessons" / "__init__.py").write_text("")
    (folder / "kemu" / "lessons" / "one.py").write_text(text)
    return folder / "kemu"


def test_a_tiny_helper_is_found(tmp_path):
    text = "def _a():\n    return 1\n\n\ndef b():\n    return _a()\n"
    assert house.tiny_helpers(package(tmp_path, text)) == [("kemu.lessons.one", 1, "_a")]


def test_a_wide_line_is_found(tmp_path):
    made = package(tmp_path, "x = 1\n" + "y" * 101 + " = 2\n")
    assert house.wide_lines(made) == ["kemu.lessons.one:2"]


@pytest.mark.parametrize(
    "line", ["session.end = 1", "self.session.end += 1", "experiment.end: int = 1"]
)
def test_an_attribute_set_from_elsewhere_is_found(tmp_path, line):
    found = house.set_from_elsewhere(package(tmp_path, f"def f(self, session):\n    {line}\n"))
    assert [entry.split()[0] for entry in found] == ["kemu.lessons.one:2"]


def test_a_question_for_the_kind_is_found(tmp_path):
    made = package(tmp_path, 'def f(step):\n    return step.kind == "ask"\n')
    assert house.kinds_asked(made) == ['kemu.lessons.one:2: return step.kind == "ask"']


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The page behind the file's end.", "behind the"),
        ("It stands in a table.", "stands in"),
        ("A mark that is none.", "is none"),
        ("0x3 is no multiple of 4096", "is no multiple"),
        ("Who calls this waits.", "Who calls"),
        ("What came of it is said.", "came of"),
        ("The page behind\n    the end", "behind the"),
    ],
)
def test_a_translated_phrase_is_found(text, found):
    assert [hit.strip() for hit in house.translated([("here", text)])] == [f"here: {found}"]


def test_good_english_is_left_alone():
    text = "It is no longer mapped; none of these pages come from a file. CPU 1 lags behind."
    assert house.translated([("here", text)]) == []
