"""The course that is shipped: every lesson is proved over three seeds, and is what the course
promises to be."""

from __future__ import annotations

import re

import attrs
import pytest

from kemu.lessonpath import lessons_folder
from kemu.lessons.format.course import course_of, every_lesson, together
from kemu.lessons.format.translate import check_translations, hash_of_text, sources
from kemu.lessons.making.checking import check_one
from tests.lessons.programs import FOLDER, PROGRAMS

VM = lessons_folder() / "vm"
LESSONS = every_lesson(VM)
NAMES = [lesson.path.stem for lesson in LESSONS]
RAW = {lesson.id: lesson.path.read_text(encoding="utf-8") for lesson in LESSONS}
IN_ORDER = [
    "a-process-is-born", "two-halves", "promises", "the-walk", "first-touch", "fork", "copy-on-write", "counting", "races",
    "who-owns-the-mm", "shared-and-private", "the-tlb-lies", "exec", "crossing", "bug-hunt",
]  # fmt: skip
SEEDS = 3


@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_a_lesson_is_proved_over_three_seeds_and_two_students(lesson):
    errors = [str(found) for found in check_one(lesson.path, SEEDS, 2) if found.severity == "error"]
    assert not errors


def test_the_course_has_fifteen_lessons_in_the_order_of_its_file():
    assert [lesson.id for lesson in LESSONS] == [f"vm/{name}" for name in IN_ORDER]
    assert list(course_of(VM).order) == NAMES
    assert not [str(found) for found in together(LESSONS)]


@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_a_lesson_has_a_goal_a_prediction_something_to_build_and_a_drawing(lesson):
    kinds = {step.kind for step in lesson.steps}
    assert lesson.goal.startswith("You can ")
    assert "predict" in kinds
    assert kinds & {"state", "bug"}
    assert re.search(r"^```(show)?\n", RAW[lesson.id], re.MULTILINE), "no drawing"
    assert 10 <= lesson.minutes <= 20


@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_a_lesson_begins_with_a_question_that_costs_nothing_and_draws_numbers(lesson):
    assert lesson.steps[0].points == 0
    assert lesson.vars


@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_a_lesson_ends_in_real_linux_with_a_function_a_page_to_read_and_a_command(lesson):
    _, heading, end = RAW[lesson.id].partition("## Now in real Linux")
    assert heading, "the ending is missing"
    assert "You can now " in end
    assert re.search(r"`\w+`", end), "no function is named"
    assert re.search(r"\w+\(\d\)|Documentation/", end), "nothing to read is named"
    assert "```sh" in end, "no command to try"


@pytest.mark.parametrize("lesson", LESSONS[:-1], ids=NAMES[:-1])
def test_a_lesson_leads_to_the_next(lesson):
    following = LESSONS[LESSONS.index(lesson) + 1]
    assert lesson.next == following.id
    assert f"`lesson start {following.id}`" in RAW[lesson.id]


@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_every_step_with_points_has_a_ladder_of_hints_and_a_reason(lesson):
    bare = [step.id for step in lesson.steps if step.points and not (step.hints and step.explain)]
    assert not bare


@pytest.mark.parametrize("lesson", LESSONS[:7], ids=NAMES[:7])
def test_the_first_seven_lessons_are_whole_in_chinese(lesson):
    assert lesson.path.with_name(f"{lesson.path.stem}.zh-CN.md").is_file()
    assert not [str(found) for found in check_translations(lesson)]


def test_a_translation_may_translate_the_texts_in_an_expression_and_change_nothing_else(tmp_path):
    lesson = LESSONS[6]
    key = "some-leave.ask"
    source = sources(lesson)[key]
    inside = "{if(lv == 0, 'exit', 'unmap the page')}"
    assert inside in source
    moved = attrs.evolve(lesson, path=tmp_path / "07-copy-on-write.md")

    def about(text):
        front = '+++\ntranslates = "vm/copy-on-write"\nlanguage = "zh-CN"\n+++\n\n'
        block = f"```text {key} {hash_of_text(source)}\n{source.replace(inside, text)}\n```\n"
        moved.path.with_name("07-copy-on-write.zh-CN.md").write_text(
            front + block, encoding="utf-8"
        )
        return [found.code for found in check_translations(moved) if found.code != "W01"]

    assert about("{if(lv == 0, '退出', '解除映射')}") == []
    assert about("{if(lv == 1, '退出', '解除映射')}") == ["T02"]


def test_the_programs_of_the_lesson_on_exec_are_those_that_their_maker_makes():
    assert {path.name: path.read_bytes() for path in FOLDER.iterdir()} == PROGRAMS
