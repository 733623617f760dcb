"""The pages for instructors and authors are true: every command of the one runs, every key and code
of the other exists."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from kemu.lessons.format.codes import CODES
from kemu.lessons.format.lesson import Lesson
from kemu.lessons.format.parse import parse
from kemu.lessons.format.schema import keys
from kemu.lessons.grading.grade import FLAGS
from kemu.lessons.kinds.registry import KINDS
from kemu.lessons.taking.guide import BARE
from tests.structure.sources import ROOT

INSTRUCTORS = (ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
FORMAT = (ROOT / "docs" / "lesson-format.md").read_text(encoding="utf-8")


def test_every_command_for_instructors_runs_in_order(tmp_path):
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```$", INSTRUCTORS)
    assert len(blocks) >= 5
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "kemu").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kemu "$@"\n')
    (tools / "kemu").chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    home = {
        "KEMU_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
        "PATH": f"{tools}:{os.environ['PATH']}",
    }
    script = "set -eu\n" + "\n".join(blocks)
    command = [shutil.which("bash"), "-c", script]
    environment = {**os.environ, **home}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=work, env=environment
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    grades = json.loads((work / "grades.json").read_text())["grades"]
    assert {grade["student"] for grade in grades} == {"s01", "s02"}
    assert grades[0]["steps"][0]["state"] in ("passed", "failed")
    assert json.loads((work / "results.json").read_text())["tests"]
    for name in ("grades.csv", "grades.xml", "autograder.zip"):
        assert (work / name).stat().st_size > 100


def test_every_flag_is_explained_to_instructors():
    for flag in FLAGS:
        if flag not in ("too long", "other lesson"):
            assert f"`{flag}`" in INSTRUCTORS


def test_the_format_page_names_every_key_kind_and_code():
    of_steps = {name for kind in KINDS.values() for name in keys(kind)}
    for name in (*keys(Lesson), *of_steps, *KINDS):
        if name not in ("packed", "makes"):
            assert re.search(rf"`{name}\b|\b{name}\b", FORMAT), name
    for code, text in CODES.items():
        assert f"| {code} | {text} |" in FORMAT


def test_the_lesson_on_the_format_page_is_one():
    (text,) = re.findall(r"(?ms)^````markdown\n(.*?)^````$", FORMAT)
    lesson = parse(text, Path("page.md"))
    assert [step.kind for step in lesson.steps] == ["predict"]


def test_the_words_of_a_lesson_are_no_commands():
    from kemu.commands.table import ALIASES, TABLE

    assert not BARE & (TABLE.keys() | ALIASES.keys())
