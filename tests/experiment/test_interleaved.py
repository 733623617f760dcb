"""Sessions that take turns in one process show what each shows in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kemu import Session
from kemu.kernel.init.boot import Kernel
from kemu.userland.script import Script
from tests.experiment.interleaved import after

STORY = """
spawn app; mmap app 0x10000 4p rw; write app 0x10000 7
mark before; fork app as kid
mkfile /data 2p; mkfile /tmp/x 1p tmpfs; mmap app 0x20000 1p r file /data; read app 0x20000
write kid 0x10000 8; frame pfn(kid,0x10000); read app app.stack-8 4
walk kid 0x10000; tlb; frame pfn(kid, 0x10000)
print pfn(app, 0x10000) != pfn(kid, 0x10000)
goto before; until pfn(kid, 0x10000) == pfn(app, 0x10000); maps app; goto end
back 3; why pte app 0x10000; goto end
verify; mem; ls; smaps app
break do_wp_page; write app 0x10000 9; continue; delete
munmap kid 0x10000 2p; exit kid; wait app
undo; trace 400 410; on 1 write app 0x11000 5; timelines; switch 1
cost before; diff before end
setcpu app 1; mremap app 0x11000 1p 2p; why last; write app 0xdead000 1; why last
"""
MACHINES = {
    "recorded": ({}, STORY),
    "another geometry": ({"geometry": "sv39", "cpus": 1}, STORY.replace("0x10000", "0x40000")),
    "not recorded": ({"record": False}, STORY),
    "a wrong kernel": (
        {"mem": "32M"},
        "spawn early\nmutant plant munmap_skips_tlb_flush" + STORY + "goto 0; goto end; verify\n",
    ),
    "batches": ({"lru_batch": True, "cpus": 3}, "set aslr 7" + STORY),
}


def lines_of(story):
    return [line for line in story.split("\n") if line]


@pytest.fixture(scope="module")
def taking_turns():
    """By machine: what each command showed, where every command was followed by one of every other
    session."""
    sessions = {name: Session(**options) for name, (options, _) in MACHINES.items()}
    found = {name: [] for name in MACHINES}
    stories = {name: lines_of(story) for name, (_, story) in MACHINES.items()}
    for turn in range(max(map(len, stories.values()))):
        for name, session in sessions.items():
            if turn < len(stories[name]):
                found[name].append(after(session, stories[name][turn]))
    return found


@pytest.mark.parametrize("name", MACHINES)
def test_a_session_shows_what_it_shows_alone(taking_turns, name):
    options, story = MACHINES[name]
    lines = lines_of(story)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.experiment.interleaved", json.dumps(options)],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    alone = [tuple(part) for part in json.loads(ran.stdout)]
    assert len(alone) == len(lines)
    for line, here, there in zip(lines, taking_turns[name], alone, strict=True):
        assert here == there, line


def test_a_script_spawns_in_its_own_kernel():
    one, other = Kernel(), Kernel()
    for kernel in (one, other, one):
        task = Script(kernel).spawn("app")
        assert task.real_parent is kernel.globals["tasks"][1]
        assert kernel.globals["tasks"][task.pid] is task
