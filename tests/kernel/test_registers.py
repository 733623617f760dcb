"""All user registers: saved as Linux saves them, copied by fork and clone, set anew by exec."""

from __future__ import annotations

import attrs
import pytest

from kemu import Session
from kemu.abi.uapi import CLONE_SETTLS, CLONE_VM, EPERM
from kemu.kernel.include.sched_types import GENERAL_REGISTERS, pt_regs, thread_struct
from kemu.kernel.include.system import system
from tests.kernel.scenes import Scene
from tests.kernel.test_exec import execute
from tests.kernel.test_exec import scene as scene_with_programs

LINUX = "r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig_ax ip cs flags sp ss"
"""The order of struct pt_regs in arch/x86/include/asm/ptrace.h."""


@pytest.fixture
def scene():
    return Scene(record=True)


def values(structure):
    return {field.name: getattr(structure, field.name) for field in attrs.fields(type(structure))}


def filled(task):
    """Give every register of the task a value of its own."""
    for number, field in enumerate(attrs.fields(pt_regs)):
        setattr(task.regs, field.name, 0x1000 + number)
    for number, field in enumerate(attrs.fields(thread_struct)):
        setattr(task.thread, field.name, 0x2000 + number)


def test_the_structure_is_linux_s():
    assert [field.name for field in attrs.fields(pt_regs)] == LINUX.split()
    assert {*GENERAL_REGISTERS} == {*LINUX.split()} - {"ip", "cs", "flags", "sp", "ss", "orig_ax"}


def test_fork_copies_all_and_gives_the_child_0(scene):
    filled(scene.p)
    child = scene.fork(scene.p)
    assert values(child.regs) == values(scene.p.regs) | {"ax": 0}
    assert values(child.thread) == values(scene.p.thread)
    child.regs.r12, child.thread.gsbase = 5, 6
    assert (scene.p.regs.r12, scene.p.thread.gsbase) == (0x1003, 0x2005)


def test_clone_sets_the_stack_and_the_base_of_fs(scene):
    filled(scene.p)
    made = scene.script.syscall(scene.p, "clone", CLONE_VM | CLONE_SETTLS, 0x7000, 0, 0, 0x12340)
    child = system.tasks[made.value]
    assert values(child.regs) == values(scene.p.regs) | {"ax": 0, "sp": 0x7000}
    assert values(child.thread) == values(scene.p.thread) | {"fsbase": 0x12340}


def test_a_base_of_fs_in_the_kernel_s_half_is_refused(scene):
    tasks = sorted(system.tasks)
    made = scene.script.syscall(scene.p, "clone", CLONE_VM | CLONE_SETTLS, 0, 0, 0, 1 << 47)
    assert (made.errno, sorted(system.tasks)) == (EPERM, tasks)


def test_exec_sets_all_anew():
    s = scene_with_programs("tiny-static")
    filled(s.p)
    execute(s, s.p)
    task = s.p
    assert task.regs.ip
    assert task.regs.sp
    new = pt_regs(ip=task.regs.ip, sp=task.regs.sp)
    assert (values(task.regs), values(task.thread)) == (values(new), values(thread_struct()))
    assert (task.regs.cs, task.regs.ss, task.regs.flags) == (0x33, 0x2B, 0x202)


def test_regs_shows_the_zero_ones_in_one_line():
    session = Session()
    session.run("spawn app")
    session.tasks[3].regs.r12 = 0xABC
    shown = session.text("regs app").split("\n")
    assert shown[5:] == [
        "  r12      0x0000000000000abc",
        "  zero     rbx rcx rdx rsi rdi rbp r8 r9 r10 r11 r13 r14 r15",
        "  rflags   0x0000000000000202",
        "  segment  cs 0x33, ss 0x2b, ds 0x0, es 0x0, fs 0x0, gs 0x0",
        "  base     fsbase 0x0, gsbase 0x0",
    ]
