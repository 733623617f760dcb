"""The exported page, looked at in Chromium: hints and solutions are folded, nothing is asked of the
network."""

import pytest

from kemu.lessons.format.course import every_lesson
from kemu.lessons.making.export import page
from tests.lessons.hands import lesson_named
from tests.report import browser

pytestmark = pytest.mark.skipif(browser.find() is None, reason="no Chromium here")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "lesson.html"
    path.write_text(page(lesson_named("nine-kinds"), "ada"), encoding="utf-8")
    program = browser.Browser()
    yield program.open(path)
    program.close()


def test_the_page_is_quiet_and_asks_for_nothing(shown):
    assert shown.complaints == []
    assert [
        address for address in shown.requests if not address.startswith(("file:", "data:"))
    ] == []


def test_everything_that_gives_an_answer_is_folded(shown):
    assert shown.run("document.querySelectorAll('details').length") > 10
    assert shown.run("document.querySelectorAll('details[open]').length") == 0
    shut = "[...document.querySelectorAll('details > :not(summary)')].every((part) => part.getClientRects().length === 0)"
    assert (
        shown.run(shut)
        or shown.run("document.querySelector('details').getBoundingClientRect().height") < 60
    )


def test_a_hint_opens_with_its_words(shown):
    shown.run("document.querySelector('details summary').click()")
    assert "not pages" in shown.run("document.querySelector('details[open]').innerText")


def test_nothing_is_wider_than_the_page(shown):
    assert shown.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_every_shipped_lesson_is_quiet_and_fits(tmp_path):
    program = browser.Browser()
    try:
        for lesson in every_lesson():
            path = tmp_path / f"{lesson.path.stem}.html"
            path.write_text(page(lesson, "ada"), encoding="utf-8")
            looked = program.open(path)
            assert looked.complaints == []
            assert looked.run(
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            ), lesson.id
            assert (
                looked.run("document.querySelectorAll('section').length") == len(lesson.steps) + 1
            )
    finally:
        program.close()
