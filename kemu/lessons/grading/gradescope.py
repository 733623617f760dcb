"""An autograder for Gradescope: a zip file with the lesson, the roster and two scripts.

    /autograder/source/         what is in the zip
    /autograder/submission/     what the student handed in: one transcript
    /autograder/results/results.json     what kemu grade writes

Gradescope adds a submission_metadata.json; the submitter must be the student of the transcript.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from kemu.errors import UsageError
from kemu.lessons.format.course import COURSE_FILE
from kemu.lessons.format.lesson import Lesson

SETUP = """\
#!/usr/bin/env bash
# Runs once, when the image is built.  kemu comes from the wheel beside this file, nowhere else.
set -euo pipefail
cd /autograder/source
if ! ls kemu-*.whl; then
  echo "no wheel of kemu is in the zip; in kemu's folder run: python -m pip wheel --no-deps ." >&2
  exit 1
fi
apt-get update && apt-get install -y python3 python3-pip python3-venv
python3 -m venv /autograder/kemu
/autograder/kemu/bin/pip install ./kemu-*.whl
"""

RUN = """\
#!/usr/bin/env bash
# Runs for each submission.
set -uo pipefail
mkdir -p /autograder/results
/autograder/kemu/bin/kemu grade /autograder/source/{lesson} /autograder/submission {roster}\\
  --metadata /autograder/submission_metadata.json --format gradescope \\
  > /autograder/results/results.json
"""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of each file in the zip: equal contents make equal zips."""


def write_zip(target: Path, lesson: Lesson, roster: Path | None) -> None:
    """Write the autograder.  Raises UsageError where that cannot be."""
    course = lesson.path.parent / COURSE_FILE
    named = "--roster /autograder/source/roster.csv " if roster else ""
    files: dict[str, bytes] = {
        "setup.sh": SETUP.encode(),
        "run_autograder": RUN.format(lesson=lesson.path.name, roster=named).encode(),
        lesson.path.name: lesson.path.read_bytes(),
    }
    if course.is_file():
        files[COURSE_FILE] = course.read_bytes()
    if roster:
        files["roster.csv"] = roster.read_bytes()
    try:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
            for name, data in files.items():
                info = zipfile.ZipInfo(name, EPOCH)
                info.external_attr = (
                    0o755 if name in ("setup.sh", "run_autograder") else 0o644
                ) << 16
                made.writestr(info, data)
    except OSError as error:
        raise UsageError(f"grade: cannot write '{target}': {error.strerror}") from error


def submitters(path: Path) -> frozenset[str]:
    """The ids of the submitters, from submission_metadata.json: email, its first part, student
    number, in lower case."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"metadata: cannot read '{path}': {error}") from error
    users = data.get("users", []) if isinstance(data, Mapping) else []
    found: set[str] = set()
    for user in users if isinstance(users, list) else []:
        if isinstance(user, dict):
            email = str(user.get("email", ""))
            found |= {
                email,
                email.partition("@")[0],
                str(user.get("sid", "")),
                str(user.get("name", "")),
            }
    return frozenset(name.casefold() for name in found if name)
