"""A lesson as a page, as a notebook, for students without answers, and in another language."""

import contextlib
import io
import json
from html.parser import HTMLParser

import pytest

from kemu.lessons.format.course import every_lesson
from kemu.lessons.format.lesson import LessonError
from kemu.lessons.format.parse import parse_file
from kemu.lessons.format.schema import COMMANDS, EXPRESSION, SOLUTION, TEMPLATE, holding
from kemu.lessons.format.translate import hash_of_text, in_language, skeleton, sources
from kemu.lessons.grading.roll import grade_one
from kemu.lessons.kinds.registry import KINDS
from kemu.lessons.making import pack as packing
from kemu.lessons.making.checking import check_files
from kemu.lessons.making.export import html, page
from kemu.lessons.making.notebook import notebook
from tests.lessons.hands import LESSONS, Student, lesson_named, lesson_of

SAMPLE = LESSONS / "nine-kinds.md"
COW = lesson_named("nine-kinds")
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Tree(HTMLParser):
    """Checks that every tag is closed, and keeps tags and text."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, f"{tag} is closed and was not open"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read_page(text):
    tree = Tree()
    tree.feed(text)
    assert tree.open == []
    return tree


# ---------------------------------------------------------------- HTML


def test_the_page_is_whole_and_hides_hints_and_solutions():
    tree = read_page(page(COW, "ada"))
    summaries = sum(tag == "summary" for tag, _ in tree.tags)
    assert summaries == sum(len(step.hints) for step in COW.steps) + len(COW.steps) - 1
    assert not any(tag == "script" for tag, _ in tree.tags)
    text = " ".join(tree.text)
    for step in COW.steps:
        assert step.id in text
    assert "Reading never splits a page." in text
    assert "kemu> fork app as child" in text


def test_the_page_needs_no_network():
    for tag, attributes in read_page(page(COW)).tags:
        for key in ("src", "href", "action"):
            assert not attributes.get(key, "").startswith(("http", "//")), tag


MARKUP = [
    "<script>alert(1)</script>",
    "<b onclick=x>",
    "`<i>`",
    "[x](javascript:alert(1))",
    "**<u>**",
    "a & b < c",
]


@pytest.mark.parametrize("text", MARKUP)
def test_prose_cannot_become_markup(text):
    tags = {tag for tag, _ in read_page(html(text)).tags}
    assert tags <= {"p", "code", "strong"}


def test_markdown_is_what_it_looks_like():
    text = "# Head\n\ntext *and* **bold** `code`\nmore\n\n- one\n- two\n\n1. first\n2. second\n\n"
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n```c\nint x;\n```"
    tags = " ".join(tag for tag, _ in read_page(html(text + table)).tags)
    assert tags == "h2 p em strong code ul li li ol li li table tr th th tr td td pre"


# ---------------------------------------------------------------- notebook


def executed(text, answers=()):
    """What the cells print when they are run top to bottom, in a namespace of their own; `answers`
    instead of the comments."""
    cells = json.loads(text)["cells"]
    space, printed = {}, []
    replies = iter(answers)
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        if source.startswith("# desk.") and answers:
            source = next(replies)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(source, cell["id"], "exec"), space)  # noqa: S102 - a notebook is code; this one is kemu's own
        printed.append(out.getvalue())
    return printed


def test_the_notebook_keeps_to_its_format():
    made = json.loads(notebook(COW, SAMPLE.read_text()))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in made["cells"]]
    assert len(set(names)) == len(names)
    for cell in made["cells"]:
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | (
            {"outputs", "execution_count"} if cell["cell_type"] == "code" else set()
        )


def test_the_notebook_runs_top_to_bottom():
    printed = "".join(executed(notebook(COW, SAMPLE.read_text(), "ada")))
    assert "Step 9 of 9" in printed
    assert "You can now" in printed
    assert "Traceback" not in printed


def test_the_notebook_can_be_solved():
    ada = Student(COW, salt="")
    replies = []
    for index, step in enumerate(COW.steps):
        lines = ada.solves(index)
        calls = [
            f"desk.answer({line[7:]!r})" if line.startswith("answer ") else f"desk.run({line!r})"
            for line in lines
        ]
        replies.append(
            "\n".join([*calls, "desk.check()" if step.kind in ("state", "explore") else ""])
        )
    printed = "".join(
        executed(notebook(COW, SAMPLE.read_text(), "ada"), [reply or "pass" for reply in replies])
    )
    assert "13 of 13 points" in printed


# ---------------------------------------------------------------- pack


def test_a_students_copy_has_no_answers_and_can_be_taken_and_graded(tmp_path):
    files, notes = packing.pack(COW, tmp_path / "out", student=True)
    text = files[0].read_text()
    for secret in (
        "solution =",
        "expect",
        "must",
        "wrong",
        "explain =",
        "Neither side copies",
        "ptep_clear_flush",
        "right =",
    ):
        assert secret not in text
    assert any("isolation" in note for note in notes)
    assert any("split-one" in note for note in notes)
    assert not [
        problem for problem in check_files([files[0]], 1, 0)[1] if problem.severity == "error"
    ]
    packed = parse_file(files[0])
    assert packed.hash == COW.hash
    ada, full = Student(packed), Student(COW)
    while ada.visit is not None:
        lines = full.solves(ada.guide.stay.index)
        said = ada.reads(
            *lines, *(["check"] if ada.visit.step.kind in ("state", "explore") else [])
        )
        assert "Yes" not in said
        if ada.visit.step.kind == "explain":
            ada.types("answer because")
        ada.types("lesson next")
    found = grade_one(str(SAMPLE), str(ada.hands_in(tmp_path)), "salt", None)
    assert (found.score, found.flags) == (found.most, ())


def test_a_copy_is_never_written_over_the_lesson():
    with pytest.raises(Exception, match="own folder"):
        packing.pack(COW, LESSONS, student=True)


def test_options_and_events_stand_in_no_telling_order(tmp_path):
    files, _ = packing.pack(COW, tmp_path, student=True)
    order = next(step for step in parse_file(files[0]).steps if step.kind == "order")
    assert [item.text for item in order.items] == sorted(item.text for item in order.items)


# ---------------------------------------------------------------- translation


def translated(tmp_path, change=lambda text: text):
    """The sample lesson with a translation beside it, in which each text is marked."""
    path = tmp_path / "lesson.md"
    path.write_text(SAMPLE.read_text())
    lesson = parse_file(path)
    made = skeleton(lesson, "zh-CN")
    for text in sorted(set(sources(lesson).values()), key=len, reverse=True):
        made = made.replace(
            f"\n{text.strip()}\n```", f"\n\N{CJK UNIFIED IDEOGRAPH-8BD1} {text.strip()}\n```"
        )
    (tmp_path / "lesson.zh-CN.md").write_text(change(made))
    return lesson


def test_a_translation_holds_all_texts_and_nothing_else(tmp_path):
    lesson = translated(tmp_path)
    assert not [
        problem for problem in check_files([lesson.path], 1, 0)[1] if problem.severity == "error"
    ]
    chinese = in_language(lesson, "zh-CN")
    assert chinese.language == "zh-CN"
    for step, own in zip(chinese.steps, lesson.steps, strict=True):
        assert step.ask.startswith("\N{CJK UNIFIED IDEOGRAPH-8BD1}")
        for told, meant in zip(
            holding(step, EXPRESSION, COMMANDS, SOLUTION, TEMPLATE),
            holding(own, EXPRESSION, COMMANDS, SOLUTION, TEMPLATE),
            strict=True,
        ):
            assert told == meant
    assert {step.kind for step in chinese.steps} == set(KINDS)


def test_a_translation_that_is_named_is_checked_with_its_lesson(tmp_path):
    lesson = translated(
        tmp_path, lambda text: text.replace(hash_of_text(COW.steps[0].ask), "00000000")
    )
    count, problems = check_files([tmp_path / "lesson.zh-CN.md", lesson.path], 1, 0)
    assert count == 1
    assert "W02" in {problem.code for problem in problems}
    assert not [problem for problem in problems if problem.severity == "error"]


def test_what_is_missing_or_stale_is_said_in_english_and_listed(tmp_path):
    def spoil(text):
        text = text.replace(hash_of_text(COW.steps[0].ask), "00000000")
        start = text.index("```text split-one.ask")
        return text[:start] + text[text.index("```text", start + 8) :]

    lesson = translated(tmp_path, spoil)
    chinese = in_language(lesson, "zh-CN")
    assert chinese.steps[0].ask == lesson.steps[0].ask
    assert chinese.steps[1].ask == lesson.steps[1].ask
    found = {(problem.code, problem.text) for problem in check_files([lesson.path], 1, 0)[1]}
    assert ("W02", "'frames-after-fork.ask' is older than the text it translates") in found
    assert ("W01", "'split-one.ask' is not translated") in found


def test_emphasis_needs_no_blank_beside_wide_characters_on_a_page():
    wide = "\N{CJK UNIFIED IDEOGRAPH-9875}"
    assert (
        html(f"{wide}*{wide}*{wide}, a *task* and 2*3*4")
        == f"<p>{wide}<em>{wide}</em>{wide}, a <em>task</em> and 2*3*4</p>"
    )


def test_a_translated_lesson_is_taken_with_the_same_letters_and_graded_by_the_english_one(tmp_path):
    lesson = translated(tmp_path)
    chinese, english = Student(in_language(lesson, "zh-CN")), Student(lesson)
    for index in range(len(lesson.steps)):
        assert chinese.solves(index) == english.solves(index)
    chinese.takes_all()
    found = grade_one(str(lesson.path), str(chinese.hands_in(tmp_path)), "salt", None)
    assert (found.score, found.flags) == (found.most, ())


def test_the_engine_speaks_the_language_too(tmp_path):
    ada = Student(in_language(translated(tmp_path), "zh-CN"))
    assert "\N{CJK UNIFIED IDEOGRAPH-9884}\N{CJK UNIFIED IDEOGRAPH-6D4B}" in ada.reads("answer 991")


def test_translated_words_are_taken_for_the_authors_words(tmp_path):
    body = (
        '```check predict\nid = "w"\nask = "Does it work?"\nsetup = ["spawn app"]\nreveal = '
        '"ps"\nwords = ["works", "fails"]\n'
        "expect = \"if(alive(app), 'works', 'fails')\"\n```\n"
    )
    lesson = lesson_of(body)
    (tmp_path / "lesson.md").write_text(
        '+++\nformat = 1\nid = "t/lesson"\ntitle = "A lesson"\n+++\n' + body
    )
    lesson = parse_file(tmp_path / "lesson.md")
    made = skeleton(lesson, "zh-CN").replace("\nworks\n", "\n\N{CJK UNIFIED IDEOGRAPH-884C}\n")
    (tmp_path / "lesson.zh-CN.md").write_text(made)
    ada = Student(in_language(lesson, "zh-CN"))
    ada.types("answer \N{CJK UNIFIED IDEOGRAPH-884C}")
    assert ada.visit.state == "passed"
    bo = Student(in_language(lesson, "zh-CN"))
    bo.types("answer WORKS")
    assert bo.visit.state == "passed"


def test_a_skeleton_keeps_what_is_translated_already(tmp_path):
    lesson = translated(tmp_path)
    assert skeleton(lesson, "zh-CN") == (tmp_path / "lesson.zh-CN.md").read_text()


def test_an_unknown_language_is_said(tmp_path):
    for language in ("fr", "../x", "zh-CN/x"):
        with pytest.raises(Exception, match=r"unknown language|not available in fr"):
            in_language(translated(tmp_path), language)


def test_a_translation_that_cannot_be_read_is_said_to_whoever_asks_for_it(tmp_path, monkeypatch):
    lesson = translated(tmp_path)
    (tmp_path / "lesson.zh-CN.md").write_bytes(b"\xff\xfe")
    with pytest.raises(LessonError, match=r"zh-CN.md:1: L01 not UTF-8"):
        in_language(lesson, "zh-CN")
    monkeypatch.setenv("KEMU_LANG", "zh_CN.UTF-8")
    assert in_language(lesson) == lesson


def test_the_locale_chooses_the_language(tmp_path, monkeypatch):
    lesson = translated(tmp_path)
    monkeypatch.setenv("KEMU_LANG", "zh_CN.UTF-8")
    assert in_language(lesson).language == "zh-CN"
    monkeypatch.setenv("KEMU_LANG", "de_DE.UTF-8")
    assert in_language(lesson).language == "en"


# ---------------------------------------------------------------- every lesson that is shipped

SHIPPED = every_lesson()


@pytest.mark.parametrize("lesson", SHIPPED, ids=[lesson.path.stem for lesson in SHIPPED])
def test_a_shipped_lesson_exports_to_a_page_and_to_a_notebook_that_runs(lesson, monkeypatch):
    monkeypatch.chdir("/")
    tree = read_page(page(lesson, "ada"))
    assert sum(tag == "section" for tag, _ in tree.tags) == len(lesson.steps) + 1
    printed = "".join(executed(notebook(lesson, lesson.path.read_text(encoding="utf-8"), "ada")))
    assert f"Step {len(lesson.steps)} of {len(lesson.steps)}" in printed
    assert "Traceback" not in printed
