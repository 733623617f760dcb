"""The registry and its page agree; the right kernel breaks nothing anywhere; what is broken by hand
is named with both values."""

import os
import re
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings

from kemu.commands.run import run
from kemu.experiment.session import Session
from kemu.invariants import ALWAYS, INVARIANTS, check, check_at, first_broken
from kemu.kernel.include.flags import PG_anon_exclusive
from kemu.kernel.include.system import system
from kemu.races.mutants import MUTANTS, bodies
from kemu.testing.strategies import play, programs
from tests.kernel.scenes import Scene
from tests.races.battery import ALONG, WHERE, broken_along, broken_by

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "invariants.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
TABLE = re.findall(r"^\| (\d+) \|[^|]*\| ([^|]*) \| ([^|]*) \|$", PAGE, re.MULTILINE)
ROWS = {int(number): here for number, here, _ in TABLE}
CATCHES = {
    invariant: mutant
    for _, here, mutants in TABLE
    for invariant, mutant in zip(
        re.findall(r"`(\w+)` \(\w+\)", here), re.findall(r"`(\w+)`", mutants), strict=True
    )
    if invariant in INVARIANTS
}
"""Invariant -> the wrong kernel beside it in the table."""
LIVES_LONGER = {
    "munmap_forgets_rss": "a thread on the other CPU",
    "split_forgets_to_shrink": "locked memory",
}
"""Stories in which a wrong kernel that soon stops itself breaks an invariant first."""


def test_the_page_has_all_76_and_each_is_here_or_has_a_reason():
    assert sorted(ROWS) == list(range(1, 77))
    for number, text in ROWS.items():
        named = dict(re.findall(r"`(\w+)` \((\w+)\)", text))
        here = {found.name: found.when for found in INVARIANTS.values() if number in found.numbers}
        assert named == here, number
        assert here or text.startswith("not modelled as a condition: "), number


def test_each_invariant_says_what_it_is_and_where_linux_has_it():
    assert sum(found.when == ALWAYS for found in INVARIANTS.values()) >= 10
    for found in INVARIANTS.values():
        assert re.search(r"\w+/[\w-]+(\.[ch]|:)|arch/x86", found.function.__doc__), found.name
        assert found.reason.endswith("."), f"{found.name}: the first line is cut mid-sentence"


@pytest.mark.parametrize("name", INVARIANTS)
def test_each_invariant_catches_the_wrong_kernel_beside_it(name):
    mutant = CATCHES[name]
    wrong = bodies(MUTANTS[mutant])
    story = LIVES_LONGER.get(mutant) or WHERE.get(mutant, ALONG)
    assert name in broken_by(wrong, story) or name in broken_along(wrong, story)


@settings(max_examples=6)
@given(programs(8))
def test_the_right_kernel_breaks_nothing_at_any_event(program):
    world = play(program, record=True, verifying=False)
    world.kernel.journal.catch_up()
    assert first_broken(world.kernel, 0, len(world.kernel.journal), set(world.moments)) is None


@pytest.fixture
def scene():
    s = Scene(record=True)
    s.addr = s.mmap(s.p, 4)
    s.write(s.p, s.addr, 1)
    assert check(s.kernel) == []
    return s


def broken(scene, quiescent=True):
    return {
        violation.invariant: str(violation)
        for violation in check(scene.kernel, quiescent=quiescent)
    }


def test_a_reference_too_many_is_named_with_both_values(scene):
    pfn = scene.pfn(scene.p, scene.addr)
    system.mem_map[pfn]._refcount = 3
    assert broken(scene) == {
        "refcount_is_explained": f"page {pfn:#x}: _refcount 3, but 1 mappings + 0 cache + 0 pins"
    }
    assert broken(scene, quiescent=False) == {}


def test_an_entry_without_the_mark_is_found_always(scene):
    page = system.mem_map[scene.pfn(scene.p, scene.addr)]
    page.flags &= ~PG_anon_exclusive
    assert list(broken(scene, quiescent=False)) == ["writable_private_pages_are_exclusive"]


def test_a_pinned_page_of_one_process_without_the_mark_is_found(scene):
    pfn = scene.pfn(scene.p, scene.addr)
    assert scene.call(scene.p, "pin", scene.addr, 4096).ok
    assert broken(scene) == {}
    system.mem_map[pfn].flags &= ~PG_anon_exclusive
    assert "pinned_pages_stay_exclusive" in broken(scene)


def test_counters_that_are_off_by_one(scene):
    mm = scene.p.mm
    for field, name in {
        "map_count": "vmas_are_ordered",
        "total_vm": "vm_sizes_add_up",
        "mm_users": "mm_users_are_tasks",
    }.items():
        setattr(mm, field, getattr(mm, field) + 1)
        assert name in broken(scene)
        setattr(mm, field, getattr(mm, field) - 1)
    assert broken(scene) == {}


def test_the_past_can_be_checked_and_the_first_event_is_named(scene):
    page = system.mem_map[scene.pfn(scene.p, scene.addr)]
    scene.kernel.journal.catch_up()
    before = len(scene.kernel.journal)
    page._refcount = 0
    page._refcount = 1
    scene.kernel.journal.catch_up()
    found = first_broken(scene.kernel, 0, before + 2, {0})
    assert found.event == before + 1
    assert "mapped_frames_are_allocated" in {violation.invariant for violation in found.violations}
    assert check_at(scene.kernel, before, quiescent=True) == []
    assert check_at(scene.kernel, before + 1, quiescent=False)
    assert scene.kernel.journal.cursor == before + 2


def test_ten_thousand_pages_are_checked_in_well_under_a_second():
    s = Scene()
    s.write_pages(s.p, s.mmap(s.p, 10_000), 10_000)
    took = []
    for _ in range(3):
        start = time.perf_counter()
        assert check(s.kernel) == []
        took.append(time.perf_counter() - start)
    assert min(took) < 3


def test_verify_in_the_shell_names_the_event_and_gives_exit_code_3():
    session = Session()
    assert [
        r.status
        for r in run(session, "spawn app; mmap app 0x10000 1p rw; write app 0x10000 1; verify")
    ] == [0] * 4
    run(session, "mutant plant fork_forgets_wrprotect; set verify on")
    fork = run(session, "fork app as kid")[0]
    assert fork.status == 3
    assert fork.notes[0].startswith(
        "broken: writable_private_pages_are_exclusive: app 0x10000: entry"
    )
    now = run(session, "verify")[0]
    assert (now.status, now.reading.event, now.reading.violations[0].place) == (
        3,
        session.now,
        "app 0x10000",
    )
    along = run(session, "verify every-event")[0]
    assert (along.status, along.reading.function) == (3, "copy_pte_range")
    assert fork.first < along.reading.event < fork.last
    run(session, "mutant remove; set verify off")
    assert run(session, "fork app as other")[0].status == 0


def test_the_failing_allocation_is_part_of_the_machine_and_is_used_up():
    session = Session()
    run(session, "spawn app; mmap app 0x10000 1p rw; write app 0x10000 1; set fail alloc 2")
    assert session.settings()["fail"] == 2
    assert run(session, "fork app as kid")[0].reading.errno == 12
    assert session.settings()["fail"] == 0
    assert run(session, "verify; fork app as kid")[-1].reading.errno == 0


def test_the_examples_of_the_page_run(tmp_path, capsys):
    failure, _, machine = EXAMPLES
    found = [
        runpy.run_path(str(_written(tmp_path / f"{n}.py", text)))
        for n, text in enumerate((failure, machine))
    ]
    assert {line.split()[1] for line in capsys.readouterr().out.splitlines()} == {"12"}
    assert found[1]["TestMemory"].settings.max_examples > 1000


def test_the_property_of_the_page_runs_as_it_stands(tmp_path):
    _written(tmp_path / "test_own.py", EXAMPLES[1])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        "test_own.py",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def _written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_reason_is_plain_text():
    assert not [name for name, invariant in INVARIANTS.items() if "`" in invariant.reason]
