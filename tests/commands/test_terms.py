"""The words of the lessons: a line each, found by any spelling."""

from __future__ import annotations

import pytest

from kemu.api import Session
from kemu.commands.terms import TERMS, meaning_of, terms_page


@pytest.mark.parametrize(
    ("word", "begins"),
    [
        ("VMA", "VMA: "),
        ("rss", "RSS: "),
        ("pte", "pgd, pud, pmd, pte: "),
        ("maperr", "MAPERR, ACCERR: "),
        ("Exclusive", "exclusive: "),
    ],
)
def test_a_word_is_explained_in_any_case(word, begins):
    assert (meaning_of(word) or "").startswith(begins)


@pytest.mark.parametrize("word", ["zero", "fault", "table", "", "nonsense"])
def test_half_a_term_is_no_term(word):
    assert meaning_of(word) is None


def test_the_page_names_every_term_and_fits_on_a_narrow_terminal():
    page = terms_page()
    assert all(term in page for term in TERMS)
    assert max(map(len, page.split("\n"))) <= 80


def test_help_tells_a_term_where_there_is_no_command_of_that_name():
    session = Session()
    assert "esident set size" in session.text("help RSS")
    assert "\nframe [TASK] PFN" in session.text("help frame")
    assert "zombie" in session.text("help terms")
