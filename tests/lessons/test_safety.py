"""A lesson is data: one that tries to run Python, read a file of the host or loop for ever is
refused or bounded."""

import time
from pathlib import Path

import pytest

from kemu.api import Session
from kemu.errors import UsageError
from kemu.lessons.format.names import holds
from kemu.lessons.making.checking import check_files
from kemu.lessons.making.proof import prove, seeds_for
from kemu.lessons.taking import bounds, world
from kemu.lessons.taking.world import WorldError
from tests.lessons.hands import HEAD, Student, lesson_of

STEP = '```check state\nid = "one"\nmust = ["alive(app)"]\nsolution = ["spawn app"]\n{more}```\n'


def codes(tmp_path, body, front=""):
    path = tmp_path / "lesson.md"
    path.write_text(HEAD.format(front=front) + body)
    return [
        problem.code
        for problem in check_files([path], seeds=1, students=0)[1]
        if problem.severity == "error"
    ]


# ---------------------------------------------------------------- Python


PYTHON = [
    "__import__('os').system('true')",
    "open('/etc/passwd')",
    "[x for x in (1,)]",
    "lambda: 1",
    "app.__class__",
    "().__class__",
    "eval('1')",
    "exec('1')",
    "'a' 'b'",
    "1 if 2 else 3",
    "f'{1}'",
    "print(1)",
    "globals()",
    "x := 1",
    "@app",
    "\N{FULLWIDTH DIGIT ONE}",
]


@pytest.mark.parametrize("text", PYTHON)
def test_an_expression_is_no_python(text, tmp_path):
    assert codes(tmp_path, STEP.format(more="").replace("alive(app)", text)) in (["M01"], ["P03"])


def test_texts_run_nothing_either(tmp_path, monkeypatch):
    fired = tmp_path / "fired"
    monkeypatch.chdir(tmp_path)
    for hole in (
        f"__import__('pathlib').Path('{fired}').touch()",
        "().__class__.__mro__",
        "0.__class__",
    ):
        assert "M01" in codes(tmp_path, STEP.format(more=f'hints = ["{{{hole}}}"]\n'))
    for line in (
        "python import os",
        "!touch fired",
        "$(touch fired)",
        "`touch fired`",
        "| touch fired",
        "lesson start other",
    ):
        assert codes(tmp_path, STEP.format(more=f"setup = ['{line}']\n"))
    assert not fired.exists()
    assert not (tmp_path / "fired").exists()


# ---------------------------------------------------------------- files of the host

HOST_COMMANDS = [
    "load /etc/passwd", "run /etc/passwd", ("save "
                                           "/tmp/kemu-stolen"), "restore /etc/passwd", "transcript /tmp/kemu-stolen",
    "conform /etc", "load /etc/passwd as /x", "real",
]  # fmt: skip


@pytest.mark.parametrize("line", HOST_COMMANDS)
def test_a_lesson_cannot_touch_the_hosts_files(line, tmp_path):
    assert set(codes(tmp_path, STEP.format(more=f'setup = ["{line}"]\n'))) & {"M03", "P01"}


@pytest.mark.parametrize(
    "line", [*HOST_COMMANDS, "on 1 load /etc/passwd", "graph mem -o /tmp/kemu-stolen.dot"]
)
def test_a_student_in_a_lesson_cannot_either(line):
    ada = Student(lesson_of(STEP.format(more="")))
    (result,) = ada.types(line)
    assert result.error is not None
    assert "not available in a lesson" in result.error.what or "no command" in result.error.what
    assert not Path("/tmp/kemu-stolen").exists()  # noqa: S108 - that it is not made is the point


def test_what_a_lesson_allows_lies_beside_it(tmp_path, monkeypatch):
    (tmp_path / "prog.bin").write_bytes(b"#!/bin/sh\n")
    path = tmp_path / "lesson.md"
    path.write_text(HEAD.format(front='allow = ["load"]\n') + STEP.format(more=""))
    from kemu.lessons.format.parse import parse_file

    ada = Student(parse_file(path))
    for line in ("load /etc/passwd", "load ../../etc/passwd", f"load {tmp_path.parent}/other"):
        assert "is outside" in ada.types(line)[0].error.what
    link = tmp_path / "link"
    link.symlink_to("/etc/passwd")
    assert "is outside" in ada.types("load link")[0].error.what
    monkeypatch.chdir("/")
    (result,) = ada.types("load prog.bin as /bin/prog")
    assert result.ok


def test_an_alias_does_not_get_around_it():
    ada = Student(lesson_of(STEP.format(more="")))
    ada.types("alias peek load")
    assert "not available in a lesson" in ada.types("peek /etc/passwd")[0].error.what


def test_denied_words_are_denied_wherever_they_stand():
    ada = Student(lesson_of(STEP.format(more='deny = ["kill"]\n'), 'deny = ["fork"]\n'))
    ada.types("spawn app")
    for line in ("fork app", "on 1 fork app", "kill app KILL"):
        assert "not available in this" in ada.types(line)[0].error.what


# ---------------------------------------------------------------- for ever


def test_what_grows_without_end_is_stopped_by_its_events(monkeypatch):
    monkeypatch.setattr(world, "MOST_EVENTS", 5_000)
    lesson = lesson_of(
        STEP.format(more='setup = ["spawn big; mmap big 0x100000 200p rw populate"]\n')
    )
    assert [problem.code for problem in prove(lesson, seeds_for(lesson, 2, ()))] == ["P08"]


def for_ever():
    with bounds.seconds(0.05, 7, "it"):
        while True:
            pass


def test_what_takes_too_long_is_stopped_by_the_clock():
    begun = time.process_time()
    with pytest.raises(WorldError, match="takes more than"):
        for_ever()
    assert time.process_time() - begun < 5


def test_time_in_which_others_run_does_not_count():
    with bounds.seconds(0.05, 7, "it"):
        time.sleep(0.2)


def test_the_clock_is_put_back():
    with bounds.seconds(0.05, 7, "it"):
        pass
    begun = time.process_time()
    while time.process_time() - begun < 0.08:
        pass


ENDLESS = [
    "(" * 5000 + "1" + ")" * 5000,
    "not " * 5000 + "true",
    "1 << 127 << 127",
    "-" * 300 + "1",
]


@pytest.mark.parametrize("text", ENDLESS)
def test_expressions_of_any_size_end(text):
    with pytest.raises(UsageError) as caught:
        holds(Session(), text, {})
    assert "\n" not in caught.value.what


def test_aliases_that_stand_for_themselves_end():
    ada = Student(lesson_of(STEP.format(more="")))
    ada.types("alias one two", "alias two one")
    assert "refers to itself" in ada.types("one")[0].error.what


@pytest.mark.parametrize(
    "text", ["{" * 100, "{n" * 50, "}}{", "{'}'}", "{{{n}}}", "{n!r}", "{}", "{0}", "{n:>10}"]
)
def test_braces_of_any_kind_are_told_or_shown(text, tmp_path):
    found = codes(tmp_path, STEP.replace("{more}", f'ask = "{text}"\n'))
    assert set(found) <= {"M01", "P07"}


def test_unicode_names_are_names_of_nothing(tmp_path):
    lesson = STEP.format(more="").replace('id = "one"', 'id = "\N{CJK UNIFIED IDEOGRAPH-4E00}"')
    assert codes(tmp_path, lesson) == ["L09"]
    assert codes(
        tmp_path, STEP.format(more=""), 'vars = { "\N{LATIN SMALL LETTER E WITH ACUTE}" = "1" }\n'
    ) == ["M05"]
    assert "no lesson" not in codes(
        tmp_path, STEP.format(more="").replace("spawn app", "spawn \N{CJK UNIFIED IDEOGRAPH-4E00}")
    )
