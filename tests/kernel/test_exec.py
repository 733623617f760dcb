"""execve as the process sees it: what goes, what stays, who is released, and what is an errno."""

import errno

import pytest

from kemu.abi.uapi import (
    CLONE_FILES,
    CLONE_SIGHAND,
    CLONE_THREAD,
    CLONE_VM,
    MAP_FIXED,
    RLIMIT_STACK,
    SIGCHLD,
    SIGTERM,
    SIGUSR1,
)
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.mm_types import MM_ANONPAGES, MM_FILEPAGES, PAGE_SIZE
from kemu.kernel.include.sched_types import PF_FORKNOEXEC
from kemu.kernel.include.system import system
from kemu.kernel.init.syscalls import sys_execve
from kemu.kernel.mm.filemap import load_file
from tests.kernel.recorded_exec import program
from tests.kernel.scenes import PRIVATE, Scene, prot, signal

STACK_TOP = 0x7FFFFFFFF000
THREAD = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_FILES


def scene(*names, **kwargs):
    """A machine with programs of tests/data/exec under /."""
    s = Scene(**kwargs)
    for name in names or ("tiny-static",):
        load_file(f"/{name}", program(name))
    return s


def execute(s, task, path="/tiny-static", argv=None, envp=()):
    return s.call(task, "execve", path, [path] if argv is None else argv, list(envp))


def error(outcome):
    assert outcome.signal is None
    return errno.errorcode.get(outcome.errno, "")


def arguments(s, task):
    """argv as the program reads it from its stack."""
    sp = task.regs.sp
    pointers = [s.read(task, sp + 8 * (i + 1)) for i in range(s.read(task, sp))]
    return [text(s, task, pointer) for pointer in pointers]


def text(s, task, pointer):
    found = b""
    while not found.endswith(b"\0"):
        found += s.load(task, pointer + len(found), 1).data
    return found[:-1]


# ---------------------------------------------------------------- what goes and what stays


def test_the_old_address_space_is_freed_with_its_pages():
    s = scene()
    before = s.free_frames()
    a = s.mmap(s.p, 64)
    s.write_pages(s.p, a, 64)
    old = s.p.mm
    assert execute(s, s.p).ok
    assert (old.mm_users, old.mm_count, old.map_count) == (0, 0, 0)
    assert s.p.mm is s.p.active_mm is system.cpu.loaded_mm
    assert (s.p.mm.mm_users, s.p.mm.mm_count) == (1, 1)
    assert signal(s.load(s.p, a)) == "SEGV_MAPERR"
    assert s.p.mm is None
    assert s.free_frames() >= before


def test_a_program_that_executes_itself_again_and_again_needs_no_more_memory():
    s = scene()
    execute(s, s.p)
    before = s.free_frames()
    for _ in range(20):
        assert execute(s, s.p).ok
    assert s.free_frames() == before


def test_committed_memory_is_counted_out_and_in():
    s = scene()
    execute(s, s.p)
    before = system.counters.vm_committed_as
    s.mmap(s.p, 1000)
    assert system.counters.vm_committed_as == before + 1000
    execute(s, s.p)
    assert system.counters.vm_committed_as == before


def test_a_borrowed_old_address_space_outlives_the_exec_as_a_structure():
    s = scene()
    old = s.p.mm
    s.script.schedule(system.tasks[2], cpu=1)
    s.script.schedule(s.p, cpu=1)
    s.script.schedule(system.tasks[2], cpu=1)
    assert system.tasks[2].active_mm is old
    s.call(s.p, "execve", "/tiny-static", ["x"], [], cpu=0)
    assert (old.mm_users, old.mm_count) == (0, 1), "kthreadd still has its tables loaded"
    s.script.schedule(system.tasks[1], cpu=1)
    assert old.mm_count == 0


def test_faults_are_not_counted_anew():
    s = scene()
    s.write_pages(s.p, s.mmap(s.p, 5), 5)
    before = s.p.min_flt
    outcome = execute(s, s.p)
    assert s.p.min_flt == before + outcome.minor > 0


def test_handlers_are_reset_and_ignored_signals_stay_ignored():
    s = scene()
    s.ok(s.p, "sigaction", SIGUSR1, "handle")
    s.ok(s.p, "sigaction", SIGTERM, "ignore")
    execute(s, s.p)
    assert dict(s.p.sighand.action) == {SIGTERM: "ignore"}


def test_signal_actions_that_a_child_shares_are_copied():
    s = scene()
    child = system.tasks[s.ok(s.p, "clone", CLONE_VM | CLONE_SIGHAND | SIGCHLD)]
    s.ok(s.p, "sigaction", SIGUSR1, "handle")
    assert child.sighand is s.p.sighand
    execute(s, child)
    assert dict(child.sighand.action) == {}
    assert dict(s.p.sighand.action) == {SIGUSR1: "handle"}
    assert (child.sighand.count, s.p.sighand.count) == (1, 1)


def test_descriptors_stay_open_and_are_no_longer_shared():
    s = scene()
    fd = s.ok(s.p, "memfd_create", "m")
    child = system.tasks[s.ok(s.p, "clone", CLONE_FILES | SIGCHLD)]
    execute(s, child)
    assert child.files is not s.p.files
    s.ok(child, "close", fd)
    assert error(s.call(child, "close", fd)) == "EBADF"
    s.ok(s.p, "close", fd)


def test_the_task_is_called_after_the_file():
    s = scene()
    load_file("/bin/a-name-of-more-than-fifteen-bytes", program("tiny-static"))
    assert s.p.flags & PF_FORKNOEXEC
    execute(s, s.p, "/bin/a-name-of-more-than-fifteen-bytes", ["argv0"])
    assert s.p.comm == "a-name-of-more-"
    assert not s.p.flags & PF_FORKNOEXEC
    assert s.p.mm.exe_file.f_path == "/bin/a-name-of-more-than-fifteen-bytes"


def test_limits_stay():
    s = scene()
    s.ok(s.p, "setrlimit", RLIMIT_STACK, 1 << 20, 2 << 20)
    execute(s, s.p)
    assert s.p.signal.rlim[RLIMIT_STACK] == (1 << 20, 2 << 20)


# ---------------------------------------------------------------- who is released, who dies


def test_a_vfork_parent_goes_on_when_the_child_executes():
    s = scene()
    a = s.mmap(s.p, 1)
    s.write(s.p, a, 1)
    child = system.tasks[s.call(s.p, "vfork").value]
    s.write(child, a, 2)
    assert (s.p.blocked_in, s.p.mm.mm_users) == ("vfork", 2)
    outcome = execute(s, child)
    assert [(done.pid, done.call, done.value) for done in outcome.completed] == [
        (s.p.pid, "vfork", child.pid)
    ]
    assert (s.p.blocked_in, s.p.mm.mm_users) == ("", 1)
    assert child.mm is not s.p.mm
    assert s.read(s.p, a) == 2


def test_a_vfork_parent_stays_blocked_when_the_exec_fails():
    s = scene("bad-magic")
    child = system.tasks[s.call(s.p, "vfork").value]
    assert error(execute(s, child, "/bad-magic")) == "ENOEXEC"
    assert (s.p.blocked_in, child.mm is s.p.mm) == ("vfork", True)


def test_a_vfork_child_that_dies_in_exec_releases_its_parent_once():
    s = scene("memsz-huge")
    child = system.tasks[s.call(s.p, "vfork").value]
    outcome = execute(s, child, "/memsz-huge")
    assert outcome.signal.killed
    assert [done.call for done in outcome.completed] == ["vfork"]
    s.write(s.p, s.mmap(s.p, 1), 1)
    s.wait(s.p, child)


def test_the_other_threads_die():
    s = scene()
    workers = [system.tasks[s.ok(s.p, "clone", THREAD)] for _ in range(3)]
    assert s.p.signal.nr_threads == 4
    execute(s, s.p)
    assert (s.p.signal.nr_threads, s.p.signal.live, s.p.signal.thread_head) == (1, 1, (s.p,))
    assert all(worker.pid not in system.tasks for worker in workers)
    assert s.p.mm.mm_users == 1


def test_a_thread_that_executes_becomes_the_leader_and_takes_its_pid():
    s = scene()
    parent = s.p
    leader = s.fork(parent)
    pid, tid = leader.pid, s.ok(leader, "clone", THREAD)
    thread = system.tasks[tid]
    child = s.fork(leader)
    execute(s, thread)
    assert (thread.pid, thread.tgid, thread.group_leader) == (pid, pid, thread)
    assert system.tasks[pid] is thread
    assert tid not in system.tasks
    assert (child.real_parent, thread.exit_signal) == (thread, SIGCHLD)
    assert thread.signal.thread_head == (thread,)
    s.exit(thread, 3)
    s.wait(parent, thread)


def test_a_sharer_keeps_the_memory_that_an_exec_leaves():
    s = scene()
    a = s.mmap(s.p, 1)
    twin = system.tasks[s.ok(s.p, "clone", CLONE_VM | SIGCHLD)]
    s.write(twin, a, 5)
    execute(s, twin)
    assert (s.p.mm.mm_users, s.read(s.p, a)) == (1, 5)


# ---------------------------------------------------------------- arguments


def test_arguments_are_read_where_argv_points():
    s = scene()
    execute(s, s.p, "/tiny-static", ["name", b"\xff\x00cut", "", "\u00e9"], ["A=1", "B=2"])
    assert arguments(s, s.p) == [b"name", b"\xff", b"", b"\xc3\xa9"]
    mm = s.p.mm
    assert s.load(s.p, mm.env_start, mm.env_end - mm.env_start).data == b"A=1\0B=2\0"
    assert s.load(s.p, mm.arg_start, mm.arg_end - mm.arg_start).data == b"name\0\xff\0\0\xc3\xa9\0"


def test_without_arguments_there_is_an_empty_one():
    s = scene()
    execute(s, s.p, argv=[])
    assert arguments(s, s.p) == [b""]


def test_without_an_environment_it_is_home_and_term():
    s = scene()
    s.ok(s.p, "execve", "/tiny-static", ["x"])
    mm = s.p.mm
    assert s.load(s.p, mm.env_start, mm.env_end - mm.env_start).data == b"HOME=/\0TERM=linux\0"


@pytest.mark.parametrize(
    ("arguments", "limit", "result"),
    [
        ([131071], 8 << 20, ""),
        ([131072], 8 << 20, "E2BIG"),
        ([100000] * 62, 64 << 20, ""),
        ([100000] * 63, 64 << 20, "E2BIG"),
        ([100000], 1 << 20, ""),
        ([100000] * 3, 1 << 20, "E2BIG"),
        ([120000], 64 << 10, "E2BIG"),
        ([30000], 32 << 10, ""),
        ([0] * 20000, 8 << 10, "E2BIG"),
        ([], 0, ""),
    ],
)
def test_strings_and_pointers_have_limits(arguments, limit, result):
    """Measured on Linux 6.18: 128 KiB a string; in all a quarter of the stack limit, at least 128
    KiB, at most 6 MiB; and the stack must be able to hold them."""
    s = scene(mem=256 << 20)
    s.ok(s.p, "setrlimit", RLIMIT_STACK, limit, limit)
    assert (
        error(execute(s, s.p, argv=["./tiny-static", *("x" * size for size in arguments)]))
        == result
    )


@pytest.mark.parametrize(
    ("number", "sp", "start"),
    [(10000, 0x7FFFFFFE6760, 0x7FFFFFFDA000), (30000, 0x7FFFFFFB5A20, 0x7FFFFFFB5000)],
)
def test_many_arguments_grow_the_stack_down(number, sp, start):
    """Measured on Linux 6.18 for so many arguments "a" behind ./tiny-static.  The pointers to
    10,000 strings find room in the 128 KiB below the strings, those to 30,000 do not."""
    s = scene()
    execute(s, s.p, "./tiny-static", ["./tiny-static", *["a"] * number], ["HOME=/", "TERM=linux"])
    stack = next(vma for vma in s.p.mm.mm_mt if vma.vm_end == STACK_TOP)
    assert (s.p.regs.sp, stack.vm_start) == (sp, start)
    assert s.p.mm.stack_vm == (STACK_TOP - start) >> 12
    last = s.read(s.p, sp + 8 * number + 8)
    assert text(s, s.p, last) == b"a"


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("", "ENOENT"),
        ("/missing", "ENOENT"),
        ("/bin", "EACCES"),
        ("/", "EACCES"),
        (".", "EACCES"),
        ("/bin/tiny/", "ENOTDIR"),
        ("/bin/tiny/x", "ENOTDIR"),
        ("/" + "a" * 255, "ENOENT"),
        ("/" + "a" * 256, "ENAMETOOLONG"),
        ("/" + "a/" * 3000, "ENAMETOOLONG"),
        ("bin/tiny", ""),
        ("/bin/../bin/./tiny", ""),
        ("//bin//tiny\0/ignored", ""),
    ],
)
def test_a_path_leads_to_a_file_or_to_an_errno(path, result):
    s = Scene()
    load_file("/bin/tiny", program("tiny-static"))
    assert error(execute(s, s.p, path)) == result


def test_a_kernel_thread_has_nothing_to_execute():
    s = scene()
    s.script.schedule(system.tasks[2])
    assert sys_execve("/tiny-static", [b"x"]) == -errno.EINVAL


# ---------------------------------------------------------------- scripts


def run_script(script, argv, path="/script"):
    """The arguments with which tiny-static was started; an errno's name where it was not."""
    s = scene()
    load_file(path, script)
    outcome = execute(s, s.p, path, argv)
    return arguments(s, s.p) if outcome.ok else error(outcome)


@pytest.mark.parametrize(
    ("script", "started"),
    [
        (b"#!/tiny-static\n", [b"/tiny-static", b"/script", b"a", b"b"]),
        (b"#!  /tiny-static \t\nrest", [b"/tiny-static", b"/script", b"a", b"b"]),
        (
            b"#!/tiny-static -x  two words \n",
            [b"/tiny-static", b"-x  two words", b"/script", b"a", b"b"],
        ),
        (b"#!/tiny-static", [b"/tiny-static", b"/script", b"a", b"b"]),
        (b"#!/tiny-static\0foo bar\n", [b"/tiny-static", b"/script", b"a", b"b"]),
        (b"#!tiny-static\n", [b"tiny-static", b"/script", b"a", b"b"]),
        (b"#!/tiny-static " + b"x" * 300, [b"/tiny-static", b"x" * 240, b"/script", b"a", b"b"]),
        (b"#!\n", "ENOEXEC"),
        (b"#! \t \n", "ENOEXEC"),
        (b"#!" + b" " * 300, "ENOEXEC"),
        (b"#!/" + b"a" * 300, "ENOEXEC"),
        (b"#!\0\n", "EACCES"),
        (b"#!/\n", "EACCES"),
        (b"#!/none\n", "ENOENT"),
        (b"#!/script\n", "ELOOP"),
        (b"#", "ENOEXEC"),
    ],
)
def test_a_script_starts_its_interpreter(script, started):
    """Measured on Linux 6.18, where the recordings do not have it."""
    assert run_script(script, ["zero", "a", "b"]) == started


def test_a_script_without_arguments_passes_its_path():
    assert run_script(b"#!/tiny-static\n", []) == [b"/tiny-static", b"/script"]


@pytest.mark.parametrize(("length", "result"), [(1, ""), (5, ""), (6, "ELOOP"), (7, "ELOOP")])
def test_interpreters_of_interpreters_end_at_five(length, result):
    s = scene()
    for i in range(length):
        target = f"/s{i + 1}" if i + 1 < length else "/tiny-static"
        load_file(f"/s{i}", f"#!{target}\n".encode())
    assert error(execute(s, s.p, "/s0", ["x"])) == result
    if not result:
        assert arguments(s, s.p) == [
            b"/tiny-static",
            *(f"/s{i}".encode() for i in reversed(range(length))),
        ]
        assert s.p.comm == "s0"


# ---------------------------------------------------------------- the interpreter


@pytest.mark.parametrize(
    ("interpreter", "result"),
    [
        (None, "ENOENT"),
        (b"", "EIO"),
        (b"\x7fELF", "EIO"),
        (b"x" * 64, "ELIBBAD"),
        (b"#!/bin/sh\n" + bytes(64), "ELIBBAD"),
        ("machine-386", "ELIBBAD"),
        ("phnum-0", "ELIBBAD"),
        ("type-rel", "SIGSEGV"),
        ("memsz-huge", "SIGSEGV"),
        ("tiny-static", ""),
    ],
)
def test_a_wrong_interpreter_is_found_before_or_behind_the_point_of_no_return(interpreter, result):
    """Measured on Linux 6.18 with tiny-dyn."""
    s = scene("tiny-dyn")
    if interpreter is not None:
        load_file(
            "/tiny-interp", program(interpreter) if isinstance(interpreter, str) else interpreter
        )
    outcome = execute(s, s.p, "/tiny-dyn")
    if result == "SIGSEGV":
        assert outcome.signal.killed
    else:
        assert error(outcome) == result


# ---------------------------------------------------------------- the new address space


def test_the_program_runs_from_the_page_cache_and_its_data_is_copied_on_write():
    s = scene()
    execute(s, s.p)
    assert s.script.fetch(s.p, s.p.regs.ip).minor == 1
    code = s.load(s.p, 0x401000, 16).data
    assert code == program("tiny-static")[0x1000:0x1010]
    s.write(s.p, 0x403000, 7)
    assert (s.anon(s.p), s.read(s.p, 0x403000)) == (2, 7)
    other = s.script.spawn("other")
    execute(s, other)
    assert s.read(other, 0x403000, 4) == int.from_bytes(
        program("tiny-static")[0x3000:0x3004], "little"
    )


def test_a_file_that_is_not_cached_is_read_by_exec_and_by_faults():
    s = Scene()
    node = create_file("/cold", "disk", program("tiny-static"))
    assert node.i_mapping.nrpages == 0
    assert execute(s, s.p, "/cold").major == 0
    assert node.i_mapping.nrpages == 4, "reading the header read ahead"


def test_the_bss_is_zero_and_writable():
    """forkcow-musl: the rest of the last file page is zeroed, three more pages are anonymous."""
    s = scene("forkcow-musl")
    execute(s, s.p, "/forkcow-musl")
    mm = s.p.mm
    end = mm.end_data
    assert s.load(s.p, end, 0x40C000 - end).data == bytes(0x40C000 - end)
    s.write(s.p, 0x40B000, 1)
    assert s.read(s.p, 0x40B000) == 1


def test_the_heap_begins_behind_the_program():
    s = scene()
    execute(s, s.p)
    start = s.p.mm.start_brk
    assert s.ok(s.p, "brk", start + 3 * PAGE_SIZE) == start + 3 * PAGE_SIZE
    s.write(s.p, start, 1)
    assert s.vmas(s.p, start, start + 1) == [(start, start + 3 * PAGE_SIZE, "rw-")]


def test_the_stack_grows_below_the_room_it_starts_with():
    s = scene()
    execute(s, s.p)
    s.write(s.p, STACK_TOP - (1 << 20), 1)
    assert s.p.mm.stack_vm == 256


@pytest.mark.parametrize(("flags", "rights"), [(6, "rw-"), (7, "rwx"), (None, "rw-")])
def test_the_program_says_whether_its_stack_is_executable(flags, rights):
    data = bytearray(program("tiny-static"))
    header = 64 + 5 * 56
    assert data[header : header + 4] == (0x6474E551).to_bytes(4, "little")
    if flags is None:
        data[header : header + 4] = bytes(4)
    else:
        data[header + 4] = flags
    s = Scene()
    load_file("/x", bytes(data))
    execute(s, s.p, "/x")
    assert s.vmas(s.p, STACK_TOP - 1, STACK_TOP)[0][2] == rights


def test_a_large_alignment_is_kept_by_a_static_pie_program():
    """6.18: the place is found, given up, and taken again aligned."""
    data = bytearray(program("tiny-static-pie"))
    data[64 + 48 : 64 + 56] = (0x200000).to_bytes(8, "little")
    s = Scene()
    load_file("/x", bytes(data))
    execute(s, s.p, "/x")
    assert s.vmas(s.p)[0][0] == 0x7FFFF7E00000


# ---------------------------------------------------------------- vdso


def special(task, name):
    return next(vma for vma in task.mm.mm_mt if vma.vm_name == name)


def test_the_vdso_is_an_elf_image_of_kernel_pages():
    s = scene()
    execute(s, s.p)
    vdso = special(s.p, "[vdso]")
    assert s.load(s.p, vdso.vm_start, 4).data == b"\x7fELF"
    frame = s.pfn(s.p, vdso.vm_start)
    assert (s.mapcount(frame), s.refcount(frame), s.file(s.p)) == (1, 2, 1)
    child = s.fork(s.p)
    s.load(child, vdso.vm_start)
    assert (s.pfn(child, vdso.vm_start), s.mapcount(frame)) == (frame, 2)
    s.exit(child)
    s.exit(s.p)
    assert (s.mapcount(frame), s.refcount(frame)) == (0, 1)


@pytest.mark.parametrize(
    ("name", "pages"), [("[vvar]", "ok,sigbus,ok,sigbus"), ("[vvar_vclock]", "ok,sigbus")]
)
def test_data_pages_are_raw_frames_or_nothing(name, pages):
    """Measured on Linux 6.18: no time namespace, pvclock as clock source."""
    s = scene()
    execute(s, s.p)
    s.survive(s.p)
    vma = special(s.p, name)
    found = []
    for addr in range(vma.vm_start, vma.vm_end, PAGE_SIZE):
        outcome = s.load(s.p, addr)
        found.append("sigbus" if outcome.signal else "ok")
        assert outcome.signal is None or signal(outcome) == "BUS_ADRERR"
    assert ",".join(found) == pages
    assert (s.p.mm.rss_stat[MM_FILEPAGES], s.p.mm.rss_stat[MM_ANONPAGES]) == (0, 1)
    assert signal(s.write(s.p, vma.vm_start, 1)) == "SEGV_ACCERR"


@pytest.mark.parametrize("name", ["[vdso]", "[vvar]", "[vvar_vclock]"])
def test_special_mappings_are_whole(name):
    s = scene()
    execute(s, s.p)
    vma = special(s.p, name)
    start, size = vma.vm_start, vma.vm_end - vma.vm_start
    assert error(s.call(s.p, "munmap", start, PAGE_SIZE)) == "EINVAL"
    assert error(s.call(s.p, "munmap", start + PAGE_SIZE, PAGE_SIZE)) == "EINVAL"
    assert error(s.call(s.p, "mprotect", start, PAGE_SIZE, prot("rw"))) == (
        "EINVAL" if name == "[vdso]" else "EACCES"
    )
    s.ok(s.p, "munmap", start, size)
    assert all(vma.vm_name != name for vma in s.p.mm.mm_mt)


def test_a_breakpoint_in_the_vdso_is_a_private_copy():
    s = scene()
    execute(s, s.p)
    vdso = special(s.p, "[vdso]")
    frame = system.vdso_pfn + 3
    s.mprotect(s.p, vdso.vm_start, 2, "rwx")
    s.write(s.p, vdso.vm_start, 0xCC, 1)
    assert s.pfn(s.p, vdso.vm_start) != frame
    assert s.load(s.p, vdso.vm_start, 4).data == b"\xccELF"
    assert system.phys.read(frame << 12, 4) == b"\x7fELF"


def test_a_mapping_may_take_the_place_of_the_vdso():
    s = scene()
    execute(s, s.p)
    start = special(s.p, "[vvar]").vm_start
    s.load(s.p, start)
    s.mmap(s.p, 8, addr=start, flags=PRIVATE | MAP_FIXED)
    s.write(s.p, start, 1)
    assert s.read(s.p, start) == 1


# ---------------------------------------------------------------- files


def test_a_replaced_program_lives_as_long_as_somebody_runs_it():
    s = Scene()
    free = s.free_frames()
    load_file("/x", program("tiny-static"))
    execute(s, s.p, "/x")
    s.script.fetch(s.p, s.p.regs.ip)
    load_file("/x", program("tiny-static-pie"))
    assert s.load(s.p, 0x401000, 4).data == program("tiny-static")[0x1000:0x1004]
    s.exit(s.p)
    load_file("/x", b"")
    assert s.free_frames() >= free


def test_a_large_file_does_not_take_all_memory():
    s = Scene(mem=16 << 20)
    load_file("/big", bytes(range(256)) * (256 << 10))
    assert s.free_frames() > 1000
    assert s.p.mm is not None
