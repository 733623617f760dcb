"""A journal that was written is the same journal where it is read: in another process, whole or cut."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kemu import Session
from kemu.errors import KernelBug, UsageError
from kemu.experiment.journalfile import read, write
from tests.experiment.elsewhere import seen
from tests.structure.sources import ROOT

STORY = """
spawn app; mmap app 0x10000 4p rw; write app 0x10000 7; mark opening
mkfile /data 3p; mkfile /tmp/x 1p tmpfs; mmap app 0x20000 3p rw file /data; write app 0x20000 1
mmap app 0x200000 80p rw populate; fork app as kid; write kid 0x10000 8; write kid 0x200000 9
mmap app 0x30000 1p rw shared; pipe app; clone app vm thread sighand as th; read th 0x10000
on 1 read app 0x10000; munmap app 0x200000 80p; mark closing
mkfile /bin/x 1p; fork app as other; kill other 10; exit kid; wait app; write app 0xdead000 1
"""


@pytest.fixture(scope="module", params=[{"lru_batch": True}, {"geometry": "sv39", "cpus": 3}])
def session(request):
    made = Session(**request.param)
    for line in STORY.strip().split("\n"):
        made.run(line)
    return made


def there(lines):
    ran = subprocess.run(
        [sys.executable, "-m", "tests.experiment.elsewhere"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        cwd=ROOT,  # another test may have gone elsewhere
    )
    return json.loads(ran.stdout)


def test_another_process_sees_the_same_events_and_states(session):
    now, state = session.now, session.state_hash()
    lines = list(write(session.kernel))
    assert (session.now, session.state_hash()) == (now, state)
    assert there(lines) == seen(session.kernel)
    session.goto(now)


def test_a_part_can_be_cut_out_of_the_middle(session):
    first, last = session.marks["opening"], session.marks["closing"]
    found = there(list(write(session.kernel, first, last)))
    session.goto(last)
    here = seen(session.kernel, first, last)
    session.goto(session.end)
    assert found == here
    assert len(found["texts"]) > 300


def test_an_object_has_the_same_number_in_every_part(session):
    first, last = session.marks["opening"], session.marks["closing"]
    whole, part = list(write(session.kernel)), list(write(session.kernel, first, last))

    def events(lines):
        blocks = "\n".join(lines).split("\n\n")
        return [json.loads(line)[:2] for line in blocks[2].split("\n")]

    assert events(part) == events(whole)[first:last]


def test_what_was_read_can_be_written_again(session):
    lines = list(write(session.kernel))
    assert list(write(read(lines))) == lines


def test_a_name_from_outside_the_kernel_is_refused(session):
    lines = list(write(session.kernel, session.end - 5))
    at = next(i for i, line in enumerate(lines) if '"kemu.kernel.include.mm_types:page"' in line)
    lines[at] = lines[at].replace("kemu.kernel.include.mm_types:page", "os:system")
    with pytest.raises(KernelBug, match="os:system"):
        read(lines)


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda lines: lines[:-2], "lines are missing"),
        (lambda lines: lines[:5], "lines are missing"),
        (lambda _: [], "lines are missing"),
        (lambda lines: [*lines, "[1, 2]"], "too many"),
        (lambda lines: [*lines[:3], lines[3][:-4], *lines[4:]], "line 4 is not JSON"),
        (lambda _: ["[]", "", "", ""], "lines are missing"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(session, damage, what):
    with pytest.raises(UsageError, match=what):
        read(damage(list(write(session.kernel))))
