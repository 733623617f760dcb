"""A class of 30 is graded by repeating what it did: good, partial, foreign, edited and older
submissions, in five formats."""

import csv
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kemu.lessons.format.parse import parse_file
from kemu.lessons.grading.grade import FLAGS
from kemu.lessons.grading.results import WRITERS
from kemu.lessons.grading.roll import grade_all, grade_one, read_roster
from kemu.lessons.grading.transcript import digest, read_transcript
from tests.lessons.class_of_30 import (
    FOREIGN,
    GOOD,
    IDS,
    NAMES,
    PARTIAL,
    SALT,
    STRANGER,
    sealed,
    taken,
    write_class,
    write_roster,
)
from tests.lessons.hands import LESSONS, Student, lesson_named, lesson_of

LESSON = LESSONS / "nine-kinds.md"
SCHEMA = json.loads((Path(__file__).parent / "gradescope" / "results.schema.json").read_text())


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    """The class: its folder, its files, its grades by file stem."""
    folder = tmp_path_factory.mktemp("class")
    lesson = parse_file(LESSON)
    files = write_class(lesson, folder / "in")
    roster = read_roster(write_roster(folder / "roster.csv"))
    grades = grade_all(lesson, files, SALT, roster, jobs=2)
    by_name = {
        Path(grade.path).name.split(".")[0] if grade.path else f"{grade.student} absent": grade
        for grade in grades
    }
    return folder, files, grades, by_name


@pytest.fixture
def graded(handed_in):
    return handed_in[3]


def test_who_did_everything_has_everything_and_no_flags(graded):
    for name in GOOD:
        assert (graded[name].score, graded[name].flags, graded[name].error) == (
            graded[name].most,
            (),
            "",
        )


def test_who_did_a_part_has_that_part(graded):
    lesson = parse_file(LESSON)
    for index, name in enumerate(PARTIAL):
        missed = sum(step.points for step in lesson.steps[: index + 1])
        assert graded[name].score == lesson.points - missed
        assert {step.state for step in graded[name].steps[: index + 1]} <= {"shown", "failed"}
        assert not graded[name].flags


def test_work_done_with_somebody_elses_numbers_is_found(graded):
    for name in FOREIGN:
        assert "foreign seed" in graded[name].flags
        assert graded[name].score < graded[name].most


def test_an_edited_file_is_found_by_its_digest_or_by_its_claims(graded):
    assert {"edited", "claims"} <= set(graded["s21"].flags)
    assert graded["s22"].flags == ("claims",)
    for name in ("s21", "s22"):
        assert graded[name].score < graded[name].most


def test_older_versions_are_found_and_graded_all_the_same(graded):
    assert graded["s23"].flags == ("older lesson",)
    assert graded["s24"].flags == ("older kemu",)
    assert graded["s23"].score == graded["s24"].score == graded["s23"].most


def test_what_is_no_transcript_is_an_error_and_not_an_end(graded):
    assert "not a transcript" in graded["s25"].error
    assert graded["s25"].score == 0


def test_of_two_submissions_the_better_one_counts(graded):
    assert graded["s26-first"].flags == ("second submission",)
    assert graded["s26-second"].flags == ()


def test_a_torn_file_is_graded_as_far_as_it_goes(graded):
    assert "edited" in graded["s27"].flags
    assert 0 < graded["s27"].score < graded["s27"].most


def test_the_roster_finds_strangers_and_those_who_handed_in_nothing(graded):
    assert graded[STRANGER].flags == ("not in roster",)
    for name in ("s28", "s29", "s30"):
        assert graded[f"{name} absent"].error == "nothing was handed in"


def test_every_flag_has_words():
    assert all(FLAGS.values())


# ---------------------------------------------------------------- formats


def test_json_has_everything(handed_in):
    data = json.loads(WRITERS["json"](handed_in[2], NAMES))
    assert [one["student"] for one in data["grades"]] == [one.student for one in handed_in[2]]
    assert data["grades"][0]["steps"][0]["id"] == "frames-after-fork"
    assert data["grades"][0]["name"] == "Student 01"


def test_csv_has_a_row_a_submission_and_a_column_a_step(handed_in):
    rows = list(csv.DictReader(io.StringIO(WRITERS["csv"](handed_in[2], NAMES))))
    assert len(rows) == len(handed_in[2])
    good = next(row for row in rows if row["student"] == "s01")
    assert (good["score"], good["max"], good["name"], good["split-one"]) == (
        "13",
        "13",
        "Student 01",
        "3",
    )


def test_csv_holds_no_formula_for_a_spreadsheet(tmp_path):
    lesson = lesson_named("nine-kinds")
    path = Student(lesson, name="=HYPERLINK(1)", salt=SALT).hands_in(tmp_path, "evil")
    text = WRITERS["csv"]([grade_one(str(LESSON), str(path), SALT, None)], {})
    assert "'=HYPERLINK(1)" in text
    assert "\n=" not in text


def test_junit_is_xml_with_a_case_a_step(handed_in):
    root = ET.fromstring(WRITERS["junit"](handed_in[2], NAMES))  # noqa: S314 - our own text
    suites = {suite.get("name"): suite for suite in root}
    assert len(suites["s01"].findall("testcase")) == 9
    assert not suites["s01"].findall("testcase/failure")
    assert suites["s13"].find("testcase/failure").get("message")
    assert suites["s30"].find("testcase/error") is not None


def test_text_is_a_line_a_submission(handed_in):
    text = WRITERS["text"](handed_in[2], NAMES)
    assert "s01" in text
    assert "foreign seed: " in text


@pytest.mark.parametrize("name", ["s01", "s13", "s19", "s25", "s30 absent"])
def test_gradescopes_results_keep_to_its_specification(graded, name):
    made = json.loads(WRITERS["gradescope"]([graded[name]], NAMES))
    assert mismatches(made, SCHEMA) == []
    assert made["score"] == sum(test["score"] for test in made["tests"])


def test_the_schema_can_fail():
    wrong = {"tests": [{"score": "2", "status": "ok", "extra": 1}], "visibility": "all", "color": 1}
    assert len(mismatches(wrong, SCHEMA)) == 5
    assert mismatches({}, SCHEMA)


TYPES = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int}


def mismatches(value, schema, where="$"):
    """Where the value does not keep to the schema: types, enumerations, unknown and missing
    keys."""
    found = []
    kind = TYPES.get(schema.get("type"))
    if kind and (not isinstance(value, kind) or isinstance(value, bool)):
        return [f"{where}: {value!r} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is not one of {schema['enum']}"]
    if isinstance(value, dict) and "properties" in schema:
        found += [
            f"{where}: unknown key {key}" for key in value.keys() - schema["properties"].keys()
        ]
        found += [
            f"{where}: {key} is missing" for key in schema.get("required", []) if key not in value
        ]
        if "anyRequired" in schema and not value.keys() & set(schema["anyRequired"]):
            found.append(f"{where}: one of {schema['anyRequired']} is needed")
        for key in value.keys() & schema["properties"].keys():
            found += mismatches(value[key], schema["properties"][key], f"{where}.{key}")
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            found += mismatches(item, schema["items"], f"{where}[{index}]")
    return found


# ---------------------------------------------------------------- trust nothing


def test_the_replay_is_what_counts_not_a_word_of_the_file(tmp_path):
    lesson = lesson_named("nine-kinds")
    claims = [
        {"run": "r", "step": step.id, "do": "result", "state": "passed", "share": 1.0}
        for step in lesson.steps
    ]
    entered = [{"run": "r", "step": step.id, "do": "enter"} for step in lesson.steps]
    head = json.loads(
        Student(lesson, name="s01", salt=SALT).hands_in(tmp_path).read_text().splitlines()[0]
    )
    path = tmp_path / "made.jsonl"
    path.write_text(
        "\n".join(sealed([json.dumps(line) for line in (head, *entered, *claims)])) + "\n"
    )
    found = grade_one(str(LESSON), str(path), SALT, None)
    assert (found.score, found.flags) == (0.0, ("claims",))


def test_hints_and_skips_cannot_be_left_out_to_gain_anything(tmp_path):
    lesson = lesson_named("nine-kinds")
    path = taken(lesson, "s01", {"split-one"}).hands_in(tmp_path)
    lines = [line for line in path.read_text().splitlines()[:-1] if '"skip' not in line]
    path.write_text("\n".join(sealed(lines)) + "\n")
    found = grade_one(str(LESSON), str(path), SALT, None)
    assert next(step for step in found.steps if step.id == "split-one").points == 0


def test_of_a_prediction_the_first_counts_however_often_it_is_repeated(tmp_path):
    ada = Student(lesson_named("nine-kinds"), name="s01", salt=SALT)
    right = ada.solves()
    ada.types("answer 991", "reset", *right)
    found = grade_one(str(LESSON), str(ada.hands_in(tmp_path)), SALT, None)
    assert found.steps[0].points == 0
    assert found.steps[0].said.endswith("(991)")


def test_an_answer_that_never_heard_how_sure_one_is_counts_in_the_replay_too(tmp_path):
    path = tmp_path / "sure.md"
    path.write_text(
        '+++\nformat = 1\nid = "t/sure"\ntitle = "Sure"\nconfidence = true\nsetup = ["spawn '
        'app"]\n+++\n'
        '```check predict\nid = "p"\nreveal = "fork app as b"\nexpect = "tasks()"\n```\n'
        '```check predict\nid = "q"\nreveal = "fork app as c"\nexpect = "tasks()"\n```\n'
    )
    ada = Student(parse_file(path), name="s01", salt=SALT)
    ada.types("answer 5", "ps", "lesson next", "answer 6", "guess", "task")
    found = grade_one(str(path), str(ada.hands_in(tmp_path)), SALT, None)
    assert [step.points for step in found.steps] == [1, 1]
    assert [step.confidence for step in found.steps] == ["", "guess"]
    assert not found.flags


@pytest.mark.parametrize(
    "line",
    [
        '{"do": "command", "step": "split-one", "text": "load /etc/passwd"}',
        '{"do": "command", "step": "split-one", "text": "lesson leave"}',
        '{"do": "command", "step": "split-one", "text": "quit"}',
        '{"do": "answer", "step": "split-one", "text": "leave"}',
        '{"do": "answer", "step": "nowhere", "text": "answer 1"}',
        '{"do": "enter", "step": "nowhere"}',
        '{"do": "dance", "step": "split-one"}',
        '{"do": 7}',
        '{"do": "command", "step": "split-one", "text": 7}',
        '{"do": "command", "step": "split-one", "text": "' + "x" * 5000 + '"}',
        '{"do": "command", "step": "split-one", "text": "alias a a; a"}',
        '{"do": "result", "step": "split-one", "state": "passed", "share": 1e999}',
        "[" * 100_000,
        "\\ud800",
        "null",
    ],
)
def test_a_hostile_line_harms_nobody(line, tmp_path):
    lesson = lesson_named("nine-kinds")
    path = taken(lesson, "s01").hands_in(tmp_path)
    *lines, _ = path.read_text().splitlines()
    at = next(
        index
        for index, text in enumerate(lines)
        if '"step": "split-one"' in text and '"enter"' in text
    )
    path.write_text("\n".join(sealed([*lines[: at + 1], line, *lines[at + 1 :]])) + "\n")
    found = grade_one(str(LESSON), str(path), SALT, None)
    assert found.score == found.most
    assert not found.error


def test_a_submission_that_takes_for_ever_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("kemu.lessons.grading.grade.PATIENCE", 0.002)
    path = taken(lesson_named("nine-kinds"), "s01").hands_in(tmp_path)
    assert "takes more than" in grade_one(str(LESSON), str(path), SALT, None).error


def test_an_exam_is_judged_by_its_last_answers(tmp_path):
    lesson_text = (
        '+++\nformat = 1\nid = "t/exam"\ntitle = "Exam"\nmode = "exam"\nsetup = ["spawn '
        'app"]\n+++\n'
        '```check predict\nid = "p"\nreveal = "fork app as b"\nexpect = "tasks()"\n```\n'
        '```check state\nid = "s"\nstart = "setup"\nmust = ["alive(other)"]\nsolution = ["spawn '
        'other"]\n```\n'
        '```check choice\nid = "c"\nstart = "setup"\noptions = [{ text = "x", right = true }, { '
        'text = "y" }]\n```\n'
    )
    path = tmp_path / "exam.md"
    path.write_text(lesson_text)
    ada = Student(parse_file(path), name="s01", salt=SALT)
    ada.types(
        "answer 4",
        "answer 5",
        "lesson next",
        "spawn other",
        "lesson next",
        "answer a",
        "answer b",
        "lesson previous",
    )
    found = grade_one(str(path), str(ada.hands_in(tmp_path)), SALT, None)
    right = "b" if ada.guide.stay.world and found.steps[2].was == "b" else "a"
    assert [step.points for step in found.steps] == [1, 1, int(right == "b")]


def test_a_file_says_what_it_is(tmp_path):
    path = taken(lesson_named("nine-kinds"), "s01").hands_in(tmp_path)
    found = read_transcript(path)
    assert (found.student, found.lesson, found.doubts) == ("s01", "t/nine-kinds", ())
    lines = path.read_text().splitlines()
    assert json.loads(lines[-1])["digest"] == digest(lines[:-1])


# ---------------------------------------------------------------- the command


def kemu(*words, **more):
    command = [sys.executable, "-m", "kemu", *map(str, words)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        stdin=subprocess.DEVNULL,
        **more,
    )


def test_the_command_grades_a_folder_with_a_roster(handed_in):
    folder = handed_in[0]
    words = ("--roster", folder / "roster.csv", "--salt", SALT, "--format", "csv", "--jobs", 2)
    done = kemu("grade", LESSON, folder / "in", *words)
    assert done.returncode == 3, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["student"] for row in rows} >= set(IDS) - {"s25"}


def test_the_command_grades_one_for_gradescope(handed_in, tmp_path):
    folder = handed_in[0]
    metadata = tmp_path / "submission_metadata.json"
    metadata.write_text(json.dumps({"users": [{"email": "s01@example.edu", "name": "Ann"}]}))
    words = ("--salt", SALT, "--format", "gradescope", "--metadata", metadata)
    mine = kemu("grade", LESSON, folder / "in" / "s01.kemu.jsonl", *words)
    assert mine.returncode == 0, mine.stderr
    assert mismatches(json.loads(mine.stdout), SCHEMA) == []
    stolen = json.loads(kemu("grade", LESSON, folder / "in" / "s02.kemu.jsonl", *words).stdout)
    assert stolen["extra_data"]["flags"] == ["not the submitter"]
    assert kemu("grade", LESSON, folder / "in", *words).returncode == 2


def test_the_zip_for_gradescope_holds_what_its_scripts_use(handed_in, tmp_path):
    target = tmp_path / "autograder.zip"
    done = kemu(
        "grade", LESSON, "--gradescope-zip", target, "--roster", handed_in[0] / "roster.csv"
    )
    assert done.returncode == 0, done.stderr
    made = zipfile.ZipFile(target)
    assert set(made.namelist()) == {"setup.sh", "run_autograder", "nine-kinds.md", "roster.csv"}
    run = made.read("run_autograder").decode()
    for part in (
        "source/nine-kinds.md",
        "results/results.json",
        "--roster /autograder/source/roster.csv",
    ):
        assert part in run
    assert made.getinfo("run_autograder").external_attr >> 16 & 0o111


def test_the_grader_is_installed_from_a_wheel_and_never_by_its_name(tmp_path):
    from kemu.lessons.grading.gradescope import SETUP

    installs = [line for line in SETUP.splitlines() if "pip install" in line]
    assert installs == ["/autograder/kemu/bin/pip install ./kemu-*.whl"]
    script = tmp_path / "setup.sh"
    script.write_text(SETUP.replace("/autograder/source", str(tmp_path)))
    done = subprocess.run(
        ["/bin/bash", script], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("no wheel of kemu is in the zip")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "expected a lesson"),
        ((LESSON,), "expected transcripts"),
        ((LESSON, "nowhere.jsonl"), "does not exist"),
        (("nowhere.md", "x"), "does not exist"),
        ((LESSON, "x", "--format", "xml"), "expected one of"),
        ((LESSON, "x", "--roster", "nowhere.csv"), "cannot read"),
        ((LESSON, LESSON, "--jobs", "many"), "expected a number"),
        ((LESSON, "x", "--what"), "unknown option"),
    ],
)
def test_what_cannot_be_graded_is_said_in_one_line(words, said, tmp_path):
    done = kemu("grade", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["", "name\nAda\n", "\0", '"'])
def test_a_roster_without_ids_is_refused(text, tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text(text)
    done = kemu("grade", LESSON, path, "--roster", path)
    assert done.returncode == 2
    assert "roster" in done.stderr


def test_a_lesson_that_is_none_ends_with_4(tmp_path):
    path = tmp_path / "broken.md"
    path.write_text("no lesson\n")
    assert kemu("grade", path, path).returncode == 4


def test_lesson_of_is_never_graded_by_its_name_alone(tmp_path):
    other = Student(lesson_of('```check explain\nid = "one"\n```\n'), name="s01", salt=SALT)
    other.types("answer yes")
    assert (
        "it is about t/lesson"
        in grade_one(str(LESSON), str(other.hands_in(tmp_path)), SALT, None).error
    )
