"""A folder of broken lessons, one for each code of the linter: each is found, with file and line,
and nothing else is."""

from pathlib import Path

import pytest

from kemu.lessons.format.codes import CODES
from kemu.lessons.format.lesson import LessonError
from kemu.lessons.format.parse import parse_file
from kemu.lessons.making.checking import check_files
from tests.lessons.hands import HEAD, lesson_of

FOLDER = Path(__file__).parent / "broken"

PLACES = {
    "L01": ("L01.md", 1), "L02": ("L02.md", 1), "L03": ("L03.md", 8), "L04": ("L04.md", 11), "L05": ("L05.md", 6),
    "L06": ("L06.md", 8), "L07": ("L07.md", 14), "L08": ("L08.md", 14), "L09": ("L09.md", 15), "L10": ("L10.md", 2),
    "L11": ("L11.md", 1), "M01": ("M01.md", 9), "M02": ("M02.md", 11), "M03": ("M03.md", 8), "M04": ("M04.md", 10),
    "M05": ("M05.md", 5), "M06": ("M06.md", 9), "M07": ("M07.md", 9), "M08": ("M08.md", 5), "M09": ("M09/a.md", 5),
    "M10": ("M10.md", 15), "M11": ("M11/forgotten.md", 1), "P01": ("P01.md", 8), "P02": ("P02.md", 6), "P03": ("P03.md", 11),
    "P04": ("P04.md", 12), "P05": ("P05.md", 5), "P06": ("P06.md", 13), "P07": ("P07.md", 10), "P08": ("P08.md", 9),
    "P09": ("P09.md", 10), "P10": ("P10.md", 9), "P11": ("P11.md", 14), "T01": ("T01.zh-CN.md", 17), "T02": ("T02.zh-CN.md", 13),
    "W01": ("W01.zh-CN.md", 1), "W02": ("W02.zh-CN.md", 9), "W03": ("W03.md", 6), "W04": ("W04.md", 12), "W05": ("W05.md", 13),
    "W06": ("W06.md", 7), "W07": ("W07.md", 14),
}  # fmt: skip


def test_every_code_has_a_broken_lesson():
    assert set(PLACES) == set(CODES)
    assert {path.name.split(".")[0] for path in FOLDER.iterdir()} == set(CODES)


@pytest.mark.parametrize("code", sorted(PLACES))
def test_a_broken_lesson_is_found_with_its_file_and_line(code):
    place = FOLDER / code
    _, problems = check_files(
        [place if place.is_dir() else FOLDER / f"{code}.md"], seeds=3, students=2
    )
    name, line = PLACES[code]
    assert [(problem.code, problem.path, problem.line) for problem in problems] == [
        (code, str(FOLDER / name), line)
    ]
    (problem,) = problems
    assert problem.severity == ("warning" if code.startswith("W") else "error")
    assert str(problem).startswith(f"{FOLDER / name}:{line}: {code} ")


# ---------------------------------------------------------------- input that nobody means well


def problems_of(body, front=""):
    with pytest.raises(LessonError) as caught:
        lesson_of(body, front)
    return [problem.code for problem in caught.value.problems]


STEP = '```check state\nid = "one"\nmust = ["alive(app)"]\n```\n'


@pytest.mark.parametrize(
    ("front", "code"),
    [
        ('minutes = "ten"\n', "L06"),
        ("vars = 3\n", "L06"),
        ("vars = { n = [1] }\n", "L06"),
        ('machine = { mem = "1T" }\n', "L06"),
        ('machine = { geometry = "vax" }\n', "L06"),
        ('mode = "closed"\n', "L06"),
        ("x = " + "[" * 5000 + "]" * 5000 + "\n", "L03"),
        ("title = 1\n", "L03"),
    ],
)
def test_front_matter_of_a_wrong_kind_is_one_problem(front, code):
    assert code in problems_of(STEP, front)


@pytest.mark.parametrize("name", ["../etc", "a b", "/etc/passwd", "", "x" * 100, "a/../b"])
def test_an_id_that_leaves_its_folder_is_none(name, tmp_path):
    path = tmp_path / "x.md"
    path.write_text(HEAD.format(front="").replace("t/lesson", name) + STEP)
    with pytest.raises(LessonError, match="L06"):
        parse_file(path)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.md"
    path.write_text("+++\n" + "x" * (1 << 20))
    with pytest.raises(LessonError, match="L01"):
        parse_file(path)


def test_a_missing_file_and_a_folder_are_problems_not_tracebacks(tmp_path):
    for path in (tmp_path / "nowhere.md", tmp_path):
        with pytest.raises(LessonError, match="L01"):
            parse_file(path)


def test_all_mistakes_of_a_file_are_told_at_once():
    body = '```check stat\n```\n```check state\nid = "a b"\nmust = 3\nwhat = 1\n```\n'
    assert sorted(problems_of(body, "extra = 1\n")) == ["L04", "L04", "L06", "L07", "L09"]


def test_three_lessons_in_a_circle_are_one_problem(tmp_path):
    for name, wanted in (("a", "b"), ("b", "c"), ("c", "a")):
        front = f'requires = ["t/{wanted}"]\n'
        text = HEAD.format(front=front).replace("t/lesson", f"t/{name}")
        (tmp_path / f"{name}.md").write_text(text + STEP)
    _, problems = check_files([tmp_path], seeds=1, students=0)
    assert [problem.code for problem in problems if problem.code == "M09"] == ["M09"]
