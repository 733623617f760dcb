"""Every command is declared once, completely, and the table that is read at start-up tells the
truth."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kemu.api import Session
from kemu.commands import table
from kemu.commands.helping import overview, page, search, topic
from kemu.commands.topics import TOPICS
from kemu.errors import UsageError
from kemu.front.terminal.paging import FALLBACK_ROWS, KEPT
from kemu.language.formats import FORMATS, write
from kemu.language.spec import REGISTRY

COMMANDS = table.load_all()


def test_the_table_names_each_command_where_it_lives():
    for name, entry in table.TABLE.items():
        made = table.find(name)
        assert made is not None, name
        assert made.name == name
        assert made.function.__module__ == entry.module


def test_no_declared_command_is_missing_from_the_table():
    assert len(COMMANDS) == len(table.TABLE)
    assert set(REGISTRY) == set(table.TABLE) | set(table.ALIASES)


def test_other_words_mean_what_the_table_says():
    for alias, name in table.ALIASES.items():
        assert REGISTRY[alias] is REGISTRY[name]
    for made in COMMANDS:
        assert set(made.words[1:]) == {
            alias for alias, name in table.ALIASES.items() if name == made.name
        }


@pytest.mark.parametrize("made", COMMANDS, ids=lambda made: made.name)
def test_the_synopsis_and_the_list_of_a_page_name_the_same_things(made):
    lines = page(made)
    synopsis = " ".join(" ".join(lines[: lines.index("")]).split()).removeprefix(made.name)
    listed = [line[2:] for line in lines if line[:2] == "  " and line[2:3] not in ("", " ")]
    listed = [line for line in listed if line not in made.examples]
    for part in made.parts:
        assert any(line.startswith(f"{part.label}  ") for line in listed), part.label
        assert part.label in synopsis
        synopsis = synopsis.replace(part.label, "", 1)
    assert not synopsis.strip(" []."), "words that the list does not explain"
    assert len(listed) == len(made.parts)


def test_every_group_has_commands_and_every_command_a_known_group():
    assert {entry.group for entry in table.TABLE.values()} == set(table.GROUPS)


@pytest.mark.parametrize("made", COMMANDS, ids=lambda made: made.name)
def test_a_command_has_a_page_with_two_examples_that_use_it(made):
    assert made.summary
    assert not made.summary.endswith(".")
    assert len(made.examples) >= 2
    words = {word for example in made.examples for word in example.replace(";", " ").split()}
    assert words & {*made.words}
    text = " ".join(" ".join(page(made)).split())
    assert made.synopsis in text
    assert all(" ".join(argument.kind.what.split()) in text for argument in made.arguments)
    assert max(map(len, page(made))) <= 80 or max(map(len, made.examples)) > 76


@pytest.mark.parametrize(
    ("word", "lesson"), [("fork", "vm/fork"), ("mmap", "vm/promises"), ("walk", "vm/the-walk")]
)
def test_the_page_of_a_command_names_the_lesson_about_it(word, lesson):
    assert f"lesson: {lesson} (" in "\n".join(page(table.find(word)))


def test_a_search_finds_names_before_pages_and_topics_last():
    lines = search("copy")
    assert any(line.startswith("fork ") for line in lines)
    names = [line.split()[0] for line in search("map")]
    assert names[0] == "mmap"
    assert names.index("munmap") < names.index("fork")
    assert lines != search("mremap")
    found = [line for line in search("page") if not line.split()[0].endswith("()")]
    assert search("page")[: len(found)] == found
    last = ["topic: help" in line for line in found]
    assert any(last)
    assert last == sorted(last)


@pytest.mark.parametrize(
    ("words", "among"),
    [
        ("share", {"rmap", "frame", "graph", "fork"}),
        ("shared frame", {"frame", "graph"}),
        ("reverse mapping", {"rmap"}),
        ("backtrace", {"bt"}),
        ("kernel function code", {"list"}),
        ("wp_page", {"do_wp_page()", "wp_page_copy()"}),
        ("copies", {"fork"}),
    ],
)
def test_a_search_takes_several_words_in_any_form_and_finds_functions(words, among):
    names = {line.split()[0] for line in search(words, "apropos")}
    assert among <= names
    assert Session().text(f"apropos {words}").splitlines() == search(words, "apropos")


def test_every_label_that_help_prints_is_a_topic():
    labels = [line.split()[0] for line in overview() if not line.startswith((" ", "help "))]
    assert len(labels) == len(table.GROUPS) + 1
    for label in labels:
        page_ = topic(label)
        assert page_, label
        assert max(map(len, page_)) <= 80


@pytest.mark.parametrize("word", ["doctor", "demo", "grade"])
def test_help_knows_the_commands_of_the_hosts_shell(word):
    assert Session().text(f"help {word}").startswith(f"kemu {word}, in the host's shell")


def test_help_of_a_kernel_function_tells_what_it_does():
    assert "Linux: mm/memory.c" in Session().text("help do_wp_page")
    assert Session().text("help do_wp_page()") == Session().text("help do_wp_page").replace(
        "list do_wp_page shows", "list do_wp_page() shows"
    )


@pytest.mark.parametrize("word", ["q", "e"])
def test_a_single_letter_is_not_looked_for_in_texts(word):
    names = [line.split()[0] for line in search(word)]
    assert all(
        any(word in other for other in table.find(name).words) for name in names if table.find(name)
    )


@pytest.mark.parametrize(
    ("word", "said"), [("futex", "does not model"), ("setuid", "does not model")]
)
def test_help_about_what_is_not_there_says_what_is_known(word, said):
    with pytest.raises(UsageError) as caught:
        search(word)
    assert said in caught.value.what
    assert caught.value.hint


def test_a_search_that_finds_nothing_suggests_a_word():
    with pytest.raises(UsageError) as caught:
        search("mprotct")
    assert caught.value.hint == "did you mean 'mprotect'?"


def test_the_topic_formats_lists_every_format_with_what_it_writes():
    for letter, (what, _) in FORMATS.items():
        assert f"/{letter}" in TOPICS["formats"]
        assert what in TOPICS["formats"]
        assert write(0x3041, letter) in TOPICS["formats"]


def test_the_topic_words_lists_every_other_word_of_a_command():
    assert all(alias in TOPICS["words"].replace("=", " ").split() for alias in table.ALIASES)


def test_help_is_one_screen():
    lines = overview()
    assert len(lines) <= FALLBACK_ROWS - KEPT, "it would go through the pager"
    assert max(map(len, lines)) <= 80


def test_topics_fit_on_a_screen():
    for text in TOPICS.values():
        assert max(map(len, text.split("\n"))) <= 80
        assert text.count("\n") <= FALLBACK_ROWS - KEPT


def test_looking_up_a_command_imports_only_its_module():
    code = (
        "import sys\nfrom kemu.commands import table\ntable.find('mmap')\n"
        "print(sorted(name for name in sys.modules if name.startswith('kemu.commands.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "kemu.commands.memory" in done.stdout
    assert "kemu.commands.tasks" not in done.stdout
