"""A made-up class: a roster of 30 ids, and what each of them handed in.

s01 .. s12   everything right             s19, s20   made with the seed of somebody else
s13 .. s18   some steps right             s21, s22   the file was edited: a claim, an answer
s23, s24     an older version of the lesson, of kemu
s25          no transcript at all         s26   twice: the better one counts
s27          cut off in the middle        s28   somebody who is not in the roster
s29, s30     nothing
"""

import json
import sys
from pathlib import Path

from kemu.lessons.format.parse import parse_file
from kemu.lessons.format.seeds import seed_for
from kemu.lessons.grading.transcript import digest, lines_of
from kemu.lessons.taking.world import World
from tests.lessons.hands import LESSONS, Student

SALT = "autumn"
IDS = [f"s{number:02}" for number in range(1, 31)]
GOOD, PARTIAL, FOREIGN = IDS[:12], IDS[12:18], IDS[18:20]
NAMES = {name: f"Student {name[1:]}" for name in IDS}
STRANGER = "x99"


def write_roster(path):
    """The roster as a table."""
    rows = [f'{name},"{NAMES[name]}",{name}@example.edu' for name in IDS]
    path.write_text("\n".join(["id,name,email", *rows]) + "\n")
    return path


def write_class(lesson, folder):
    """Everybody's file; the files in order."""
    folder.mkdir(exist_ok=True)
    for name in GOOD:
        taken(lesson, name).hands_in(folder)
    for index, name in enumerate(PARTIAL):
        missed = {step.id for step in lesson.steps[: index + 1]}
        taken(lesson, name, missed).hands_in(folder)
    for name in FOREIGN:
        foreign(lesson, name, folder)
    edited(lesson, folder)
    older(lesson, folder)
    (folder / "s25.kemu.jsonl").write_text("my computer was broken\n")
    taken(lesson, "s26", {step.id for step in lesson.steps}).hands_in(folder, "s26-first")
    taken(lesson, "s26").hands_in(folder, "s26-second")
    torn = taken(lesson, "s27").hands_in(folder)
    torn.write_text(torn.read_text()[: len(torn.read_text()) // 2])
    taken(lesson, STRANGER).hands_in(folder)
    return sorted(folder.glob("*.jsonl"))


def taken(lesson, name, wrong=()):
    """A student who has taken the lesson, but for the steps in `wrong`."""
    return Student(lesson, name=name, salt=SALT).takes_all(wrong)


def foreign(lesson, name, folder):
    """What somebody else did, handed in under a name of one's own."""
    own = World(lesson, seed_of(lesson, name)).values
    friends = (f"friend {number} of {name}" for number in range(50))
    friend = next(
        friend
        for friend in friends
        if World(lesson, seed_of(lesson, friend)).values["n"] != own["n"]
    )
    other = taken(lesson, friend)
    records = [
        {**record, "student": name} if record["do"] == "enter" else record
        for record in other.records
    ]
    lines = lines_of(lesson, name, other.guide.stay.seed, records)
    (folder / f"{name}.kemu.jsonl").write_text("\n".join(lines) + "\n")


def sealed(lines):
    """The lines with a fresh digest: a careful cheat."""
    return [*lines, json.dumps({"end": len(lines), "digest": digest(lines)})]


def edited(lesson, folder):
    """s21 claims what was not done and forgets the digest; s22 claims it and writes a new
    digest."""
    for name, careful in (("s21", False), ("s22", True)):
        path = taken(lesson, name, {step.id for step in lesson.steps}).hands_in(folder)
        *lines, last = path.read_text().splitlines()
        lines = [
            line.replace('"state": "shown", "share": 0.0', '"state": "passed", "share": 1.0')
            for line in lines
        ]
        lines = [line for line in lines if '"do": "skip"' not in line]
        path.write_text("\n".join(sealed(lines) if careful else [*lines, last]) + "\n")


def older(lesson, folder):
    """s23 took another version of the lesson, s24 used another kemu."""
    for name, key, value in (("s23", "hash", "0" * 64), ("s24", "kemu", "0.0.9")):
        path = taken(lesson, name).hands_in(folder)
        head, *lines = path.read_text().splitlines()[:-1]
        head = json.dumps(json.loads(head) | {key: value})
        path.write_text("\n".join(sealed([head, *lines])) + "\n")


def seed_of(lesson, name):
    """The seed that the grader computes."""
    return seed_for(SALT, lesson.id, name)


def main(argv):
    """Write the class, for the sample lesson, below the folder."""
    (folder,) = map(Path, argv)
    folder.mkdir(parents=True, exist_ok=True)
    lesson = folder / "nine-kinds.md"
    lesson.write_text((LESSONS / "nine-kinds.md").read_text())
    files = write_class(parse_file(lesson), folder / "in")
    write_roster(folder / "roster.csv")
    grade = f"kemu grade {lesson} {folder / 'in'} --roster {folder / 'roster.csv'} --salt {SALT}"
    sys.stdout.write(f"{len(files)} files; {grade}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
