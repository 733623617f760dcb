"""The glossary: help answers with what a word means, whoever writes it how, and leads to commands
and lessons that exist."""

from __future__ import annotations

import pytest

from kemu.api import Session
from kemu.commands.glossary import GLOSSARY, entry_for
from kemu.commands.lessonrefs import titles
from kemu.commands.table import TABLE

ASKED = [
    "VMA", "RSS", "PTE", "exclusive", "refcount", "mapcount", "zero page", "TLB", "frame", "page table", "fault", "copy-on-write",
    "SIGSEGV", "vma", "pte", "copy on write", "COW", ("Zero "
                                                     " "
                                                     "Page"), "page fault", "segfault", "pfn", "_mapcount",
]  # fmt: skip


@pytest.mark.parametrize("word", ASKED)
def test_help_begins_with_what_the_word_means(word):
    name, entry = entry_for(word)
    text = Session().text(f"help {word}")
    assert text.startswith(f"{name}: {entry.text[:20]}")
    assert f"lesson start {entry.lesson}" in text
    assert max(map(len, text.split("teaches it")[0].split("\n"))) <= 80


@pytest.mark.parametrize("name", GLOSSARY)
def test_an_entry_leads_to_what_there_is(name):
    entry = GLOSSARY[name]
    assert set(entry.commands) <= TABLE.keys()
    assert entry.lesson in dict(titles())


def test_no_spelling_stands_for_two_words():
    spellings = [
        spelling
        for name, entry in GLOSSARY.items()
        for spelling in (name.lower(), *entry.spellings)
    ]
    assert len(set(spellings)) == len(spellings)


def test_a_command_of_that_name_has_its_page_below():
    assert "\nframe [TASK] PFN" in Session().text("help frame")


@pytest.mark.parametrize("word", ["fork", "sizes", "nonsense words"])
def test_other_words_are_no_terms(word):
    assert entry_for(word) is None


def test_an_alias_is_told_as_one():
    session = Session()
    session.run("alias rss ps")
    assert session.text("help rss").startswith("rss is an alias of")
