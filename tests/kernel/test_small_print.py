"""The small print of faults, fork, rmap and the allocator: what mutations of the kernel showed to
be tested nowhere else."""

import pytest

from kemu.abi.uapi import (
    CLONE_CHILD_CLEARTID,
    CLONE_CHILD_SETTID,
    CLONE_DETACHED,
    CLONE_FS,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_PARENT,
    CLONE_PIDFD,
    CLONE_SIGHAND,
    CLONE_THREAD,
    CLONE_VM,
    EINVAL,
    MAP_FIXED,
    MAP_NORESERVE,
    MAP_PRIVATE,
    MAP_SHARED,
    O_RDONLY,
    O_RDWR,
    SIGCHLD,
)
from kemu.invariants import check
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.flags import (
    FAULT_FLAG_UNSHARE,
    FAULT_FLAG_WRITE,
    MMF_UNSTABLE,
    VM_FAULT_MAJOR,
    VM_FAULT_NOPAGE,
    VM_FAULT_OOM,
    VM_FAULT_SIGBUS,
    VM_FAULT_SIGSEGV,
    VM_SHARED,
    PG_locked,
    PG_lru,
    PG_uptodate,
)
from kemu.kernel.include.lists import list_for_each
from kemu.kernel.include.mm_types import PAGE_SIZE, vm_operations_struct
from kemu.kernel.include.mmzone import NODE_DATA, nr_free_pages
from kemu.kernel.include.sched_types import PF_EXITING
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.init.boot import Kernel
from kemu.kernel.mm import fault_missing
from kemu.kernel.mm.fault import handle_mm_fault
from kemu.kernel.mm.page_alloc import alloc_page, folio_put
from kemu.kernel.mm.rmap import PageAnonExclusive, folio_mapcount, folio_maybe_dma_pinned, rmap_walk
from kemu.kernel.mm.vma import vma_lookup
from kemu.testing.stage import program
from tests.kernel.scenes import PRIVATE, Scene, signal

FADV_DONTNEED = 4
MADV_DONTFORK, MADV_WIPEONFORK, MADV_GUARD_INSTALL = 10, 18, 102
AT = 0x5000_0000


@pytest.fixture
def scene():
    s = Scene(record=True)
    create_file("/data", "disk", b"0123456789abcdef" * 1024)
    return s


def page(s, task, addr):
    return pfn_to_page(s.pfn(task, addr))


def fault(s, task, addr, flags):
    """What handle_mm_fault says, asked directly as the current task."""
    s.script.schedule(task)
    return handle_mm_fault(vma_lookup(task.mm, addr), addr, flags)


def of_file(s, flags=MAP_SHARED, mode=O_RDWR, rights="rw"):
    """Four pages of /data at AT."""
    fd = s.ok(s.p, "open", "/data", mode)
    return s.mmap(s.p, 4, rights, flags=flags | MAP_FIXED, addr=AT, fd=fd)


# ---------------------------------------------------------------- faults


def test_no_fault_gives_what_nobody_may_ask_for(scene):
    addr = of_file(scene, mode=O_RDONLY, rights="r")
    assert fault(scene, scene.p, addr, FAULT_FLAG_WRITE) == VM_FAULT_SIGSEGV
    assert fault(scene, scene.p, addr, FAULT_FLAG_WRITE | FAULT_FLAG_UNSHARE) == VM_FAULT_SIGSEGV
    fd = scene.ok(scene.p, "open", "/data", O_RDWR)
    writable = scene.mmap(scene.p, 1, "r", flags=MAP_SHARED, fd=fd)
    assert fault(scene, scene.p, writable, FAULT_FLAG_WRITE) == VM_FAULT_SIGSEGV
    private = scene.mmap(scene.p, 1, "r")
    assert fault(scene, scene.p, private, FAULT_FLAG_WRITE) == 0


def test_memory_that_claims_to_be_shared_and_anonymous_cannot_be_had(scene):
    addr = scene.mmap(scene.p, 1)
    vma_lookup(scene.p.mm, addr).vm_flags |= VM_SHARED
    assert fault(scene, scene.p, addr, FAULT_FLAG_WRITE) == VM_FAULT_SIGBUS


def test_a_mapping_that_cannot_bring_pages_is_a_sigbus(scene):
    addr = of_file(scene)
    vma_lookup(scene.p.mm, addr).vm_ops = vm_operations_struct(name="none", fault=None)
    assert fault(scene, scene.p, addr, 0) == VM_FAULT_SIGBUS


def test_a_write_to_an_entry_that_allows_it_makes_it_dirty(scene):
    addr = scene.mmap(scene.p, 1)
    scene.write(scene.p, addr, 1)
    entry = scene.steps(scene.p, addr).steps[-1].entry_pa
    system.phys.store(entry, scene.pte(scene.p, addr) & ~system.bits.dirty)
    assert fault(scene, scene.p, addr, 0) == 0
    assert not scene.pte(scene.p, addr) & system.bits.dirty
    assert fault(scene, scene.p, addr, FAULT_FLAG_WRITE) == 0
    assert scene.pte(scene.p, addr) & system.bits.dirty


def test_a_forced_write_to_untouched_read_only_memory_gives_no_right(scene):
    addr, buffer = scene.mmap(scene.p, 1, "r"), scene.mmap(scene.p, 1)
    scene.write(scene.p, buffer, 7)
    assert scene.ok(scene.p, "memwrite", scene.p.pid, buffer, addr, 8) == 8
    assert scene.read(scene.p, addr) == 7
    assert not scene.pte(scene.p, addr) & (system.bits.write | system.bits.dirty)


@pytest.mark.parametrize("flags", [MAP_SHARED, MAP_PRIVATE])
@pytest.mark.parametrize("order", ["wwrr", "rrww"])
def test_a_page_that_was_brought_in_is_neither_locked_nor_unread_nor_lost_to_the_lru(
    scene, flags, order
):
    addr = of_file(scene, flags)
    for number, letter in enumerate(order):
        if letter == "w":
            scene.write(scene.p, addr + number * PAGE_SIZE, 1)
        else:
            scene.load(scene.p, addr + number * PAGE_SIZE)
        found = page(scene, scene.p, addr + number * PAGE_SIZE)
        assert found.flags & (PG_uptodate | PG_lru | PG_locked) == PG_uptodate | PG_lru
    assert check(scene.kernel) == []


def test_the_file_system_is_told_of_the_first_write_and_may_refuse(scene):
    addr = of_file(scene)
    scene.survive(scene.p)
    told = []
    ops = vma_lookup(scene.p.mm, addr).vm_ops

    def refuse(vmf):
        told.append(vmf.address)
        return VM_FAULT_SIGBUS

    vma_lookup(scene.p.mm, addr).vm_ops = vm_operations_struct(
        name="full", fault=ops.fault, page_mkwrite=refuse
    )
    scene.load(scene.p, addr)
    for target in (addr, addr + PAGE_SIZE):
        assert scene.write(scene.p, target, 1).signal is not None
    assert told == [addr, addr + PAGE_SIZE]
    for index in range(2):
        found = system.files["/data"].i_mapping.i_pages[index]
        assert found._refcount == 1 + folio_mapcount(found)
        assert not found.flags & PG_locked or index == 1
    assert not any(p.ptl for p in system.mem_map.values())


def test_the_file_system_is_told_in_both_ways(scene):
    addr = of_file(scene)
    told = []
    ops = vma_lookup(scene.p.mm, addr).vm_ops

    def hear(vmf):
        told.append(vmf.address)
        return ops.page_mkwrite(vmf)

    vma_lookup(scene.p.mm, addr).vm_ops = vm_operations_struct(
        name="told", fault=ops.fault, page_mkwrite=hear
    )
    scene.load(scene.p, addr)
    scene.write(scene.p, addr, 1)
    scene.write(scene.p, addr + PAGE_SIZE, 1)
    assert told == [addr, addr + PAGE_SIZE]


@pytest.mark.parametrize(("flags", "lives"), [(MAP_SHARED, True), (MAP_PRIVATE, False)])
def test_memory_that_the_oom_reaper_takes_apart_is_not_faulted_in_again(scene, flags, lives):
    addr = of_file(scene, flags)
    scene.survive(scene.p)
    scene.p.mm.flags |= MMF_UNSTABLE
    assert (scene.write(scene.p, addr, 1).signal is None) is lives


def test_unsharing_the_last_copy_marks_it_and_gives_no_right(scene):
    addr = scene.mmap(scene.p, 1)
    scene.write(scene.p, addr, 1)
    scene.exit(scene.fork(scene.p))
    before = scene.pfn(scene.p, addr)
    assert not PageAnonExclusive(page(scene, scene.p, addr))
    assert fault(scene, scene.p, addr, FAULT_FLAG_UNSHARE) == 0
    assert PageAnonExclusive(page(scene, scene.p, addr))
    assert (scene.pfn(scene.p, addr), scene.may_write(scene.p, addr)) == (before, False)
    assert check(scene.kernel) == []


def test_a_write_behind_the_end_of_a_shared_file_is_a_sigbus(scene):
    addr = of_file(scene)
    scene.survive(scene.p)
    scene.ok(scene.p, "ftruncate", 3, PAGE_SIZE)
    assert signal(scene.write(scene.p, addr + PAGE_SIZE, 1)) == "BUS_ADRERR"
    assert check(scene.kernel) == []


@pytest.mark.parametrize("flags", [0, FAULT_FLAG_WRITE])
def test_a_fault_that_finds_no_table_leaves_the_page_unlocked(scene, flags):
    addr, refused = of_file(scene), 0
    for number in range(4, 0, -1):
        system.sysctl.fail_alloc = number
        refused += bool(fault(scene, scene.p, addr, flags) & VM_FAULT_OOM)
        assert not any(found.flags & PG_locked for found in system.mem_map.values())
        scene.ok(scene.p, "munmap", addr, 4 * PAGE_SIZE)
        addr = of_file(scene)
    assert refused > 0


def test_who_finds_the_page_of_a_file_mapped_meanwhile_leaves_it(scene):
    addr = of_file(scene)
    ops = vma_lookup(scene.p.mm, addr).vm_ops
    others = []

    def slow(vmf):
        if not others:
            others.append(vmf.address)
            assert handle_mm_fault(vmf.vma, vmf.address, 0) & VM_FAULT_MAJOR
        return ops.fault(vmf)

    vma_lookup(scene.p.mm, addr).vm_ops = vm_operations_struct(name="slow", fault=slow)
    assert fault(scene, scene.p, addr, 0) & VM_FAULT_NOPAGE
    assert others == [addr]
    assert scene.mapcount(scene.pfn(scene.p, addr)) == 1
    assert check(scene.kernel) == []


def test_who_finds_untouched_memory_mapped_meanwhile_leaves_it(scene, monkeypatch):
    addr = scene.mmap(scene.p, 1)
    alloc, others = fault_missing.alloc_page, []

    def slow(gfp):
        if not others:
            others.append(gfp)
            assert handle_mm_fault(vma_lookup(scene.p.mm, addr), addr, FAULT_FLAG_WRITE) == 0
        return alloc(gfp)

    monkeypatch.setattr(fault_missing, "alloc_page", slow)
    assert fault(scene, scene.p, addr, FAULT_FLAG_WRITE) == 0
    assert (len(others), scene.anon(scene.p)) == (1, 1)
    assert check(scene.kernel) == []


def test_a_hole_in_a_file_is_a_hole_on_disk_too(scene):
    addr, fd = of_file(scene), 3
    scene.ok(scene.p, "fadvise64", fd, 0, 0, FADV_DONTNEED)
    assert not system.files["/data"].i_mapping.i_pages
    scene.ok(scene.p, "fallocate", fd, 3, PAGE_SIZE, PAGE_SIZE)
    assert scene.read(scene.p, addr + PAGE_SIZE) == 0
    assert scene.read(scene.p, addr) != 0


def test_a_page_that_waits_in_a_batch_is_reused_after_the_batch_is_emptied():
    scene = Scene(lru_batch=True)
    addr = scene.mmap(scene.p, 1)
    scene.write(scene.p, addr, 1)
    before = scene.pfn(scene.p, addr)
    scene.exit(scene.fork(scene.p))
    assert scene.refcount(before) == 2
    scene.write(scene.p, addr, 2)
    assert (scene.pfn(scene.p, addr), scene.refcount(before)) == (before, 1)


# ---------------------------------------------------------------- fork


def test_the_child_returns_0_and_nothing_is_pending(scene):
    scene.p.regs.ax = 77
    child = scene.fork(scene.p)
    assert (child.regs.ax, child.regs.ip, child.regs.sp) == (0, scene.p.regs.ip, scene.p.regs.sp)
    assert not child.pending


def test_memory_that_is_wiped_on_fork_begins_again(scene):
    addr = scene.mmap(scene.p, 1)
    scene.write(scene.p, addr, 5)
    scene.ok(scene.p, "madvise", addr, PAGE_SIZE, MADV_WIPEONFORK)
    child = scene.fork(scene.p)
    assert vma_lookup(child.mm, addr).anon_vma is None
    scene.write(child, addr + 8, 1)
    assert scene.read(child, addr) == 0
    assert check(scene.kernel) == []


def test_entries_of_shared_memory_that_must_be_copied_are_clean_in_the_child(scene):
    addr = of_file(scene)
    scene.write(scene.p, addr, 1)
    scene.ok(scene.p, "madvise", addr + PAGE_SIZE, PAGE_SIZE, MADV_GUARD_INSTALL)
    child = scene.fork(scene.p)
    assert scene.pte(scene.p, addr) & system.bits.dirty
    assert scene.pte(child, addr) & (system.bits.write | system.bits.dirty) == system.bits.write
    assert scene.pte(child, addr + PAGE_SIZE) == scene.pte(scene.p, addr + PAGE_SIZE)


def test_raw_frames_of_the_kernel_are_mapped_in_the_child_at_once(scene):
    create_file("/program", "disk", program())
    scene.ok(scene.p, "execve", "/program", [b"program"], [])
    vvar = next(vma for vma in scene.p.mm.mm_mt if vma.vm_name == "[vvar]")
    scene.load(scene.p, vvar.vm_start)
    child = scene.fork(scene.p)
    assert scene.pfn(child, vvar.vm_start) == scene.pfn(scene.p, vvar.vm_start) is not None


@pytest.mark.parametrize(
    "flags",
    [
        CLONE_FS | CLONE_NEWNS, CLONE_FS | CLONE_NEWUSER, CLONE_THREAD, CLONE_SIGHAND, CLONE_THREAD | CLONE_SIGHAND,
        CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | CLONE_NEWUSER, CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | CLONE_NEWPID,
        CLONE_PIDFD | CLONE_DETACHED,
    ],
)  # fmt: skip
def test_flags_that_do_not_go_together(scene, flags):
    assert scene.call(scene.p, "clone", flags | SIGCHLD).errno == EINVAL


@pytest.mark.parametrize(
    "flags",
    [
        CLONE_FS,
        CLONE_NEWNS,
        CLONE_NEWUSER,
        CLONE_NEWPID,
        CLONE_PIDFD,
        CLONE_DETACHED,
        CLONE_VM,
        CLONE_SIGHAND | CLONE_VM,
    ],
)
def test_flags_that_may_stand_alone(scene, flags):
    assert scene.call(scene.p, "clone", flags | SIGCHLD).ok


def test_init_has_no_siblings(scene):
    init = system.tasks[1]
    assert scene.call(init, "clone", CLONE_PARENT | SIGCHLD).errno == EINVAL
    assert scene.call(scene.p, "clone", CLONE_PARENT | SIGCHLD).ok


def test_the_words_for_the_thread_library(scene):
    addr = scene.mmap(scene.p, 1)
    for word in range(2):
        scene.write(scene.p, addr + 8 * word, 9)
    plain = system.tasks[scene.ok(scene.p, "clone", CLONE_VM | SIGCHLD, 0, 0, addr)]
    assert (plain.set_child_tid, plain.clear_child_tid) == (0, 0)
    scene.exit(plain)
    flags = CLONE_VM | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD
    child = system.tasks[scene.ok(scene.p, "clone", flags, 0, 0, addr)]
    assert (child.set_child_tid, child.clear_child_tid) == (addr, addr)
    scene.exit(child)
    assert scene.read(scene.p, addr, 4) == 0
    alone = system.tasks[scene.ok(scene.p, "clone", CLONE_CHILD_CLEARTID | SIGCHLD, 0, 0, addr + 8)]
    scene.exit(alone)
    assert scene.read(scene.p, addr + 8) == 9


def test_a_child_runs_the_same_program(scene):
    create_file("/program", "disk", (b"\x7fELF" + bytes(60)))
    fd = scene.ok(scene.p, "open", "/program", O_RDONLY)
    file = scene.p.files.fd[fd]
    scene.p.mm.exe_file, file.f_count = file, file.f_count + 1
    child = scene.fork(scene.p)
    assert child.mm.exe_file is file
    assert check(scene.kernel) == []


def test_a_row_ends_where_its_mapping_ends(scene):
    addr = scene.mmap(scene.p, 200, flags=PRIVATE | MAP_FIXED, addr=AT)
    scene.write_pages(scene.p, addr, 200)
    scene.ok(scene.p, "madvise", addr + 100 * PAGE_SIZE, 100 * PAGE_SIZE, MADV_DONTFORK)
    child = scene.fork(scene.p)
    assert [bool(pfn) for pfn in scene.pfns(child, addr, 200)] == [True] * 100 + [False] * 100
    assert check(scene.kernel) == []


def test_the_early_copy_of_a_pinned_page_is_a_page_like_any_other(scene):
    addr = scene.mmap(scene.p, 1)
    scene.write(scene.p, addr, 3)
    scene.ok(scene.p, "pin", addr, PAGE_SIZE)
    child = scene.fork(scene.p)
    copy = page(scene, child, addr)
    assert copy is not page(scene, scene.p, addr)
    assert copy.flags & (PG_uptodate | PG_lru) == PG_uptodate | PG_lru


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize(("references", "pinned"), [(1023, False), (1024, True), (1025, True)])
def test_a_page_with_1024_references_counts_as_pinned(references, pinned):
    found = alloc_page()
    found._refcount = references
    assert folio_maybe_dma_pinned(found) is pinned


# ---------------------------------------------------------------- the reverse map


def neighbours(s, *, second="rwx", gap=0):
    """Two mappings side by side, the first touched, then the second; their anon_vmas."""
    first = s.mmap(s.p, 2, "rw", flags=PRIVATE | MAP_FIXED, addr=AT)
    other = s.mmap(s.p, 2, second, flags=PRIVATE | MAP_FIXED, addr=AT + (2 + gap) * PAGE_SIZE)
    for addr in (first, other):
        s.ok(s.p, "memwrite", s.p.pid, s.mmap(s.p, 1), addr, 8)
    return vma_lookup(s.p.mm, first).anon_vma, vma_lookup(s.p.mm, other).anon_vma


def test_neighbours_that_differ_in_rights_have_one_anon_vma(scene):
    first, second = neighbours(scene)
    assert first is second


def test_rights_alone_make_no_difference(scene):
    first = scene.mmap(scene.p, 2, "rw", flags=PRIVATE | MAP_FIXED | MAP_NORESERVE, addr=AT)
    other = scene.mmap(
        scene.p, 2, "r", flags=PRIVATE | MAP_FIXED | MAP_NORESERVE, addr=AT + 2 * PAGE_SIZE
    )
    for addr in (first, other):
        scene.ok(scene.p, "memwrite", scene.p.pid, scene.mmap(scene.p, 1), addr, 8)
    assert vma_lookup(scene.p.mm, first).anon_vma is vma_lookup(scene.p.mm, other).anon_vma


@pytest.mark.parametrize("apart", [{"gap": 1}, {"second": "r"}])
def test_mappings_with_a_gap_or_another_promise_between_them_have_two(scene, apart):
    first, second = neighbours(scene, **apart)
    assert first is not second


def test_the_mapping_before_takes_over_the_one_of_the_mapping_behind(scene):
    addr = scene.mmap(scene.p, 4, "rw", flags=PRIVATE | MAP_FIXED, addr=AT)
    scene.mprotect(scene.p, addr, 2, "rwx")
    scene.write(scene.p, addr + 2 * PAGE_SIZE, 1)
    scene.ok(scene.p, "memwrite", scene.p.pid, addr + 2 * PAGE_SIZE, addr, 8)
    assert (
        vma_lookup(scene.p.mm, addr).anon_vma
        is vma_lookup(scene.p.mm, addr + 2 * PAGE_SIZE).anon_vma
    )


def test_a_neighbour_that_was_inherited_is_not_reused(scene):
    addr = scene.mmap(scene.p, 4, "rw", flags=PRIVATE | MAP_FIXED, addr=AT)
    scene.mprotect(scene.p, addr, 2, "rwx")
    scene.write(scene.p, addr + 2 * PAGE_SIZE, 1)
    child = scene.fork(scene.p)
    scene.ok(child, "memwrite", child.pid, addr + 2 * PAGE_SIZE, addr, 8)
    assert (
        vma_lookup(child.mm, addr).anon_vma
        is not vma_lookup(child.mm, addr + 2 * PAGE_SIZE).anon_vma
    )


def test_a_grandchild_takes_over_the_idle_anon_vma_of_a_dead_child(scene):
    addr = scene.mmap(scene.p, 1)
    scene.write(scene.p, addr, 1)
    child = scene.fork(scene.p)
    idle = vma_lookup(child.mm, addr).anon_vma
    grandchild = scene.fork(child)
    scene.exit(child)
    assert idle.num_active_vmas == 0
    heir = scene.fork(grandchild)
    assert vma_lookup(heir.mm, addr).anon_vma is idle
    assert idle.num_active_vmas == 1
    assert check(scene.kernel) == []


def test_a_family_that_ends_leaves_no_anon_vma_behind(scene):
    addr = scene.mmap(scene.p, 1)
    scene.write(scene.p, addr, 1)
    root = vma_lookup(scene.p.mm, addr).anon_vma
    child = scene.fork(scene.p)
    own = vma_lookup(child.mm, addr).anon_vma
    assert (root.refcount, root.num_children, own.refcount) == (2, 2, 1)
    scene.exit(child)
    assert (root.refcount, root.num_children, own.refcount) == (1, 1, 0)
    scene.exit(scene.p)
    assert (root.refcount, root.num_children) == (0, 0)


def test_every_mapping_of_a_page_of_a_file_is_found(scene):
    addr = of_file(scene)
    fd = scene.ok(scene.p, "open", "/data", O_RDWR)
    other = scene.mmap(scene.p, 2, flags=MAP_SHARED, fd=fd, offset=PAGE_SIZE)
    scene.write(scene.p, addr + PAGE_SIZE, 1)
    scene.write(scene.p, other, 1)
    assert sorted(at for _, at, _ in rmap_walk(page(scene, scene.p, other))) == sorted(
        [addr + PAGE_SIZE, other]
    )
    assert list(rmap_walk(alloc_page())) == []


# ---------------------------------------------------------------- the allocator


def test_ordinary_requests_stop_at_the_minimum_and_the_dying_do_not(scene):
    zone = NODE_DATA(0).node_zones[0]
    held = []
    system.out_of_memory = lambda: False
    system.reclaim = lambda _: 0
    while (found := alloc_page()) is not None:
        held.append(found)
    assert zone.nr_free_pages == zone.watermark_min
    scene.p.flags |= PF_EXITING
    system.cpu.curr = scene.p
    reserve = [alloc_page() for _ in range(zone.nr_free_pages + 1)]
    assert reserve.count(None) == 1
    for found in [*held, *reserve[:-1]]:
        folio_put(found)


@pytest.mark.usefixtures("scene")
def test_who_finds_no_memory_asks_for_reclaim_then_for_a_victim():
    asked = []
    system.reclaim = lambda wanted: asked.append(("reclaim", wanted)) or 0
    system.out_of_memory = lambda: asked.append("kill")
    held = []
    while (found := alloc_page()) is not None:
        held.append(found)
    assert asked == [("reclaim", 32), "kill"]
    system.reclaim = lambda _: folio_put(held.pop()) or 1
    assert alloc_page() is not None
    for found in held:
        folio_put(found)


@pytest.mark.usefixtures("scene")
def test_every_page_counts_once_among_those_handed_out():
    given, back = system.vmstat.PGALLOC, system.vmstat.PGFREE
    folio_put(alloc_page())
    assert (system.vmstat.PGALLOC - given, system.vmstat.PGFREE - back) == (1, 1)


@pytest.mark.parametrize("extra", [0, 1, 3, 1023])
def test_every_frame_is_handed_to_the_allocator_in_aligned_blocks(extra):
    kernel = Kernel(mem=(8 << 20) + extra * PAGE_SIZE)
    kernel.activate()
    blocks = [
        (p.pfn, area.order)
        for area in NODE_DATA(0).node_zones[0].free_area
        for p in list_for_each(area.free_list)
    ]
    assert sum(1 << order for _, order in blocks) == nr_free_pages()
    assert all(
        pfn % (1 << order) == 0 and pfn + (1 << order) <= system.phys.nr_frames
        for pfn, order in blocks
    )
    assert check(kernel) == []
