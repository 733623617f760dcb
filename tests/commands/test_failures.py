"""Why a call failed or a signal came: the check, the function, and what would have made it come out
otherwise."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import kemu.kernel
from kemu.abi.words import ERRNO_TEXT, errno_name
from kemu.api import Session
from kemu.errors import UsageError
from kemu.explain.advice import ADVICE, advice_for
from kemu.explain.checks import condition
from kemu.explain.clines import as_c
from kemu.explain.rules import SIGNALS
from kemu.observe.moves import functions

PROGRAMS = Path(__file__).parent.parent / "data" / "exec" / "files"
START = (
    "spawn app; mmap app 0x10000 4p rw; spawn other; mkfile /data 2p; open app /data rdonly; "
    "signal app SEGV handle; "
    "signal app BUS handle; use app; "
)


def why(line, *before, what="last"):
    session = Session()
    for one in (START, *before, line):
        session.run(one)
    return session.run(f"why {what}")[-1].reading


PYTHON = re.compile(r"\b(not|and|or|is|in|None|True|False|U64)\b|\w\.\w|//")
"""What Python has and C has not."""

FAILURES = {
    "mmap app 0x10001 1p rw fixed": (
        "EINVAL",
        "__get_unmapped_area",
        "return addr & ~PAGE_MASK ? -EINVAL : addr",
    ),
    "mmap app 0 rw": ("EINVAL", "do_mmap", "the length is 0; in C: if (!length)"),
    "mmap app 1000000000p rw": (
        "ENOMEM",
        "__vm_enough_memory",
        "more than all of RAM (15616); in C: if (!allowed)",
    ),
    "mmap app 0x10000 1p rw fixed_noreplace": ("EEXIST", "do_mmap", "MAP_FIXED_NOREPLACE"),
    "munmap app 0x10001 1p": ("EINVAL", "do_vmi_munmap", "start & ~PAGE_MASK"),
    "munmap app 0x10000 0": ("EINVAL", "do_vmi_munmap", "end == start"),
    "mprotect app 0x10001 1p r": ("EINVAL", "do_mprotect_pkey", "start & ~PAGE_MASK"),
    "mprotect app 0x10000 9p r": ("ENOMEM", "_protect_range", "no mapping holds 0x14000"),
    "mremap app 0x90000 1p 2p maymove": ("EFAULT", "check_prep_vma", "if (!vma)"),
    "mremap app 0x10000 1p 9p": ("ENOMEM", "mremap_at", "if (!(vrm->flags & MREMAP_MAYMOVE))"),
    "mlock app 0x90000 1p": ("ENOMEM", "apply_vma_lock_flags", "if (!vma || vma->vm_start > at)"),
    "madvise app 0x90000 1p dontneed": ("ENOMEM", "madvise_walk_vmas", "if (at < vma->vm_start)"),
    "madvise app 0x10001 1p dontneed": ("EINVAL", "do_madvise", "no multiple of the page size"),
    "msync app 0x90000 1p sync": ("ENOMEM", "do_msync", "if (at < vma->vm_start)"),
    "mincore app 0x90000 1p": ("ENOMEM", "do_mincore", "if (!vma)"),
    "wait app": ("ECHILD", "do_wait", "if (!eligible)"),
    "exec app /nothere": ("ENOENT", "_not_a_file", "no such file"),
    "exec app /data": ("ENOEXEC", "load_elf_binary", "not an executable"),
    "open app /nothere rdonly": ("ENOENT", "do_open", "O_CREAT"),
    "pread app 9 0x10000 4": ("EBADF", "sys_pread", "FMODE_READ"),
    "pread app 3 0x90000 4": ("EFAULT", "generic_file_read", "left"),
    "pwrite app 3 0x10000 4": ("EBADF", "sys_pwrite", "FMODE_WRITE"),
    "ftruncate app 3 1p": (
        "EINVAL",
        "sys_ftruncate",
        "if (!(file->f_mode & FMODE_WRITE) || size < 0)",
    ),
    "mseal app 0x10000 1p; munmap app 0x10000 1p": ("EPERM", "vms_gather_munmap_vmas", "VM_SEALED"),
    "setrlimit app as 1p; mmap app 8p rw": ("ENOMEM", "mmap_region", "may_expand_vm"),
    "set fail alloc 1; fork app": ("ENOMEM", "copy_mm", "if (!mm)"),
}


@pytest.mark.parametrize("line", FAILURES)
def test_an_errno_names_the_check_the_function_and_what_would_have_helped(line):
    errno, function, text = FAILURES[line]
    reading = why(line)
    assert f"-{errno} (" in reading.thing
    assert reading.rule.startswith(f"{function} returned -{errno}: ")
    assert text in reading.rule
    assert not PYTHON.search(reading.rule.partition("; in C: ")[2])
    assert reading.calls[-1] == function
    assert reading.calls[0].startswith("sys_")
    assert reading.place.startswith("kemu/kernel/")
    assert reading.advice
    assert reading.command == line.rpartition("; ")[2]


def test_what_the_advice_says_does_help():
    for line, better in (
        ("mmap app 0x10001 1p rw fixed", "mmap app 0x20000 1p rw fixed"),
        ("mprotect app 0x10000 9p r", "mprotect app 0x10000 4p r"),
        ("mremap app 0x10000 1p 9p", "mremap app 0x10000 1p 9p maymove"),
        ("open app /nothere rdonly", "open app /nothere creat rdwr"),
    ):
        session = Session()
        session.run(START)
        assert session.run(line)[-1].reading.errno
        assert not session.run(better)[-1].reading.errno


@pytest.mark.parametrize(
    ("line", "before", "code", "words", "advice"),
    [
        ("read app 0x30000", (), "SEGV_MAPERR", "read at 0x30000: no mapping", "mmap it"),
        ("read app 0", (), "SEGV_MAPERR", "null pointer", "maps"),
        ("read app 0xffff888000000000", (), "SEGV_MAPERR", "kernel's half", "task_size"),
        (
            "read app 0x10000",
            ("madvise app 0x10000 1p guard_install",),
            "SEGV_MAPERR",
            "guard page",
            "guard_remove",
        ),
        (
            "write app 0x10000 1",
            ("mprotect app 0x10000 1p r",),
            "SEGV_ACCERR",
            "0x10000-0x11000 is r--",
            "mprotect",
        ),
        ("fetch app 0x10000", (), "SEGV_ACCERR", "fetch at 0x10000", "mprotect"),
        ("read app 0x900000000000", (), "SI_KERNEL", "not canonical", "task_size"),
        (
            "read app 0x41000",
            ("mkfile /one 1p; mmap app 0x40000 2p r file /one",),
            "BUS_ADRERR",
            "file ends",
            "ftruncate",
        ),
    ],
)
def test_a_signal_of_an_access_names_the_check_and_the_mapping(line, before, code, words, advice):
    for what in ("last", "signal"):
        reading = why(line, *before, what=what)
        assert code in reading.thing
        assert words in reading.rule
        assert advice in reading.advice
        assert reading.command == line
        assert reading.place


def test_a_signal_that_was_sent_names_its_sender():
    reading = why("kill other TERM", what="signal")
    assert reading.thing == "SIGTERM (SI_USER)"
    assert reading.rule.startswith("app (pid 3) sent it")
    child = why("exit kid 3", "signal app CHLD handle", "fork app as kid; use app", what="signal")
    assert child.thing.startswith("SIGCHLD")
    assert child.place == "do_notify_parent"


def test_the_killer_of_last_resort_says_so():
    session = Session(mem=8 << 20)
    session.run("spawn app; mmap app 0x10000000 1000p rw populate; mmap app 0x20000000 900p rw")
    session.run("mmap app 0x30000000 1000p rw populate")
    reading = session.run("why signal")[-1].reading
    assert reading.thing.startswith("SIGKILL")
    assert "memory had run out" in reading.rule


def test_a_program_that_cannot_be_mapped_dies_of_what_exec_has_thrown_away():
    reading = why(f"load {PROGRAMS / 'entry-kernel'} as /x; exec other /x", what="signal")
    assert reading.thing == "SIGSEGV (SI_KERNEL)"
    assert reading.rule.startswith("exec had thrown the old program away")
    assert why("read app 0x8000000000000000", what="signal").rule.startswith(
        "the address is not canonical"
    )


def test_before_the_failure_nothing_has_failed():
    session = Session()
    session.run(START + "mark before; read app 0x30000; goto before")
    for what in ("signal", "errno", "last"):
        with pytest.raises(UsageError):
            session.run(f"why {what}")


def test_the_condition_over_a_return_is_found_in_the_source():
    lines = [
        "def f(x):",
        "    if x:",
        "        return 0",
        "    for y in x:",
        "        if y > 1:",
        "            error = -EINVAL",
    ]
    assert condition([*lines, "    return error"], "-EINVAL") == "if y > 1"
    assert (
        condition(
            ["def f(x):", "    if (", "        x", "    ):", "        return -EINVAL"], "-EINVAL"
        )
        == "if ( x )"
    )
    assert (
        condition(["def f(x):", "    if x:", "        return 0", "    return -ENOMEM"], "-ENOMEM")
        == "not: if x"
    )
    assert (
        condition(["def f(x):", "    error = g(x)", "    return error"], "-EINVAL")
        == "error = g(x)"
    )


def test_the_tables_name_what_exists():
    known = {errno_name(number) for number in ERRNO_TEXT}
    assert {errno for _, errno in ADVICE} <= known
    assert all(advice_for("anything", errno) for errno in known)
    names = {function.name for function in functions()}
    assert {rule.function for rule in SIGNALS if rule.function} <= names


@pytest.mark.parametrize(
    ("python", "c"),
    [
        ("if vma is None or vma.vm_start > at", "if (!vma || vma->vm_start > at)"),
        (
            "if vma is not None and not vma.vm_flags & VM_WRITE",
            "if (vma && !(vma->vm_flags & VM_WRITE))",
        ),
        ("if a and b or c", "if ((a && b) || c)"),
        ("if a and (b or c)", "if (a && (b || c))"),
        ("if start & ~PAGE_MASK & U64", "if (start & ~PAGE_MASK)"),
        ("if (flags & 3) == 2", "if ((flags & 3) == 2)"),
        ("if flags & 3 == 2", "if ((flags & 3) == 2)"),
        ("if low <= addr < high", "if (low <= addr && addr < high)"),
        ("if kind in (MAP_SHARED, MAP_PRIVATE)", "if (kind == MAP_SHARED || kind == MAP_PRIVATE)"),
        ("if kind not in (1, 2) and x", "if (kind != 1 && kind != 2 && x)"),
        ("if (a - b) - c > a - (b - c)", "if (a - b - c > a - (b - c))"),
        ("if size // 4096 > 1 << 40", "if (size / 0x1000 > 1 << 40)"),
        ("elif system.sysctl.max_map_count < n", "if (sysctl_max_map_count < n)"),
        ("while (vma := find_vma(mm, at)) is None", "while (!(vma = find_vma(mm, at)))"),
        ("not: if allowed", "if (!allowed)"),
        ("not: if a or b", "if (!(a || b))"),
        ("return -EINVAL if x else 0", "return x ? -EINVAL : 0"),
        ("error = f(a) or g(b)", "error = f(a) ?: g(b)"),
        ("if __vm_enough_memory(mm, pages)", "if (__vm_enough_memory(mm, pages))"),
        ("if _own(helper)", ""),
        ("if len(name) >= PATH_MAX", ""),
        ('if kind == "disk"', ""),
        ("if x in table", ""),
        ("error, more = f(x)", ""),
        ("return -EINVAL, 0", ""),
        ("error = f(x, wait=True)", ""),
        ("anything else", ""),
        ("if (", ""),
    ],
)
def test_a_check_is_shown_in_c_or_not_at_all(python, c):
    assert as_c(python) == c


def test_of_all_checks_of_the_kernel_most_have_a_form_in_c_and_none_is_python():
    checks = list(all_checks())
    shown = [as_c(check) for check in checks]
    assert [text for text in shown if PYTHON.search(text)] == []
    assert len(list(filter(None, shown))) > 0.75 * len(checks) > 200


def all_checks():
    """The condition of each return of an errno in kemu/kernel."""
    for path in sorted(Path(kemu.kernel.__file__).parent.rglob("*.py")):
        source = path.read_text(encoding="utf-8").split("\n")
        for function in ast.walk(ast.parse("\n".join(source))):
            for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
                if isinstance(node, ast.Return) and re.search(
                    r"-E[A-Z]+|\berror\b|\bret\b", source[node.lineno - 1]
                ):
                    yield condition(source[function.lineno - 1 : node.lineno], "-E")
