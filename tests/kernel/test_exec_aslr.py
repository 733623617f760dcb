"""Random addresses: Linux's ranges, the same for the same seed, and a stack that really moved."""

import pytest

from kemu.kernel.include.sched_types import PF_RANDOMIZE
from kemu.kernel.include.system import pfn_to_page, system
from kemu.kernel.mm.filemap import load_file
from kemu.kernel.mm.rmap import rmap_walk
from kemu.machine.geometry import X86_64_5LEVEL
from tests.kernel.recorded_exec import maps, program
from tests.kernel.scenes import Scene

TASK_SIZE = 0x7FFFFFFFF000
ET_DYN_BASE = TASK_SIZE // 3 * 2
PAGES = 1 << 12
GAP = (8 << 20) + (1 << 20) + (0x3FFFFF << 12)
"""Below the highest stack: the stack limit, the guard gap, the room for moving."""


def machine(seed, **kwargs):
    s = Scene(**kwargs)
    for name in ("tiny-static", "tiny-static-pie", "tiny-dyn", "tiny-interp"):
        load_file(f"/{name}", program(name))
    system.sysctl.randomize_seed = seed
    return s


def execute(s, name="tiny-dyn", argv=("x",)):
    outcome = s.call(s.p, "execve", f"/{name}", list(argv))
    assert outcome.ok, outcome
    return s.p.mm


def layout(s):
    """What chance has decided."""
    mm = s.p.mm
    stack = next(vma for vma in mm.mm_mt if vma.vm_start <= mm.start_stack < vma.vm_end)
    random = dict(mm.saved_auxv)[25]
    return {
        "stack top": stack.vm_end,
        "sp": s.p.regs.sp,
        "mmap_base": mm.mmap_base,
        "vdso": mm.vdso,
        "program": mm.mm_mt.vmas[0].vm_start,
        "heap": mm.start_brk,
        "AT_RANDOM": s.load(s.p, random, 16).data,
    }


def test_the_same_seed_gives_the_same_addresses():
    one, other = machine(7), machine(7)
    execute(one)
    execute(other)
    assert layout(one) == layout(other)
    assert maps(one.p) == maps(other.p)


def test_setting_a_seed_begins_its_numbers_anew():
    s = machine(7)
    execute(s)
    first = layout(s)
    system.sysctl.randomize_seed = 8
    execute(s)
    system.sysctl.randomize_seed = 7
    execute(s)
    assert layout(s) == first


def test_each_program_of_one_seed_is_elsewhere():
    s = machine(7)
    seen = []
    for _ in range(20):
        execute(s)
        seen.append(layout(s))
    for what in seen[0]:
        assert len({found[what] for found in seen}) == len(seen), what


def test_without_a_seed_nothing_moves_and_at_random_is_random():
    s = machine(None)
    execute(s)
    first = layout(s)
    execute(s)
    again = layout(s)
    assert first.pop("AT_RANDOM") != again.pop("AT_RANDOM")
    assert first == again
    assert not s.p.flags & PF_RANDOMIZE
    assert first["stack top"] == TASK_SIZE


def test_a_child_inherits_its_parents_addresses():
    s = machine(3)
    execute(s)
    assert s.p.flags & PF_RANDOMIZE
    child = s.fork(s.p)
    assert maps(child) == maps(s.p)


@pytest.mark.parametrize("name", ["tiny-static", "tiny-static-pie", "tiny-dyn"])
def test_addresses_lie_in_linuxs_ranges(name):
    """arch/x86: stack 2**22 pages, mmap_base 2**28 pages, heap 1 GiB, sp twice 8 KiB."""
    s = machine(0)
    for seed in range(1, 60):
        system.sysctl.randomize_seed = seed
        mm = execute(s, name)
        found = layout(s)
        assert TASK_SIZE - (0x3FFFFF << 12) - 8192 <= found["stack top"] <= TASK_SIZE
        assert 0 <= TASK_SIZE - GAP - found["mmap_base"] <= ((1 << 28) + 1) * PAGES
        assert found["sp"] % 16 == 0
        assert 0 < found["stack top"] - found["sp"] < 3 * 8192
        assert (
            found["stack top"] % PAGES
            == found["mmap_base"] % PAGES
            == found["vdso"] % PAGES
            == found["heap"] % PAGES
            == 0
        )
        assert found["vdso"] < found["mmap_base"] < found["stack top"]
        check_program(name, mm, found)


def check_program(name, mm, found):
    if name == "tiny-static":
        assert found["program"] == 0x400000
        assert 0 < found["heap"] - mm.end_data < (1 << 30) + 3 * PAGES
    elif name == "tiny-static-pie":
        assert any(mm.mm_mt.before(mm.mmap_base) is vma for vma in mm.mm_mt if vma.vm_file)
        assert 0 <= found["heap"] - ET_DYN_BASE < (1 << 30) + PAGES
    else:
        assert 0 <= found["program"] - ET_DYN_BASE // PAGES * PAGES <= (1 << 28) * PAGES
        assert 0 < found["heap"] - mm.end_data < (1 << 30) + 3 * PAGES


def test_the_stack_moves_with_its_pages_and_rmap_finds_them():
    """The strings were copied at the top of the address space; the entries moved, the frames did
    not."""
    for seed in range(10):
        s = machine(seed)
        mm = execute(s, argv=["x" * 9000])
        stack = next(vma for vma in mm.mm_mt if vma.vm_start <= mm.start_stack < vma.vm_end)
        assert s.load(s.p, mm.arg_start, 9001).data == b"x" * 9000 + b"\0"
        present = [addr for addr in range(stack.vm_start, stack.vm_end, PAGES) if s.pfn(s.p, addr)]
        assert len(present) >= 3
        for addr in present:
            frame = pfn_to_page(s.pfn(s.p, addr))
            assert [(vma, at) for vma, at, _ in rmap_walk(frame)] == [(stack, addr)]
        assert mm.pgtables_bytes == 3 * PAGES, "the tables of the old place are gone"


def test_a_moved_stack_is_copied_on_write_after_fork():
    s = machine(4)
    execute(s)
    child = s.fork(s.p)
    sp = s.p.regs.sp
    before = s.read(s.p, sp)
    s.write(child, sp, 99)
    assert (s.read(s.p, sp), s.read(child, sp)) == (before, 99)
    s.write(child, sp - (1 << 20), 1)


def test_with_five_levels_the_stack_comes_down_to_47_bits():
    """STACK_TOP_MAX is 2**56 - 4096 there, STACK_TOP is not: the stack moves even without a
    seed."""
    for seed in (None, 5):
        s = machine(seed, geometry=X86_64_5LEVEL)
        mm = execute(s, argv=["hello"])
        assert TASK_SIZE - (0x400000 << 12) < layout(s)["stack top"] <= TASK_SIZE
        assert s.load(s.p, mm.arg_start, 6).data == b"hello\0"
        free = s.free_frames()
        for _ in range(5):
            execute(s, argv=["hello"])
        assert abs(s.free_frames() - free) <= 2, (
            "a stack that lies across a border takes a page more, nothing else may"
        )


def test_going_back_over_an_exec_and_forth_again_gives_the_same_state():
    """The random numbers are state too: drawn again, they are the same."""
    s = machine(11, record=True)
    s.kernel.journal.catch_up()
    journal = s.kernel.journal
    start, before = len(journal), s.kernel.state_hash()
    execute(s)
    s.kernel.journal.catch_up()
    end, after = len(journal), s.kernel.state_hash()
    found = layout_without_looking(s)
    for event in (start, end, (start + end) // 2, end, start):
        journal.seek(event)
    assert s.kernel.state_hash() == before
    journal.seek(end)
    assert s.kernel.state_hash() == after
    journal.seek(start)
    journal.truncate()
    execute(s)
    assert layout_without_looking(s) == found
    assert s.kernel.state_hash() == after


def layout_without_looking(s):
    """Reading memory through the process would set Accessed bits."""
    mm = s.p.mm
    return (
        [(vma.vm_start, vma.vm_end) for vma in mm.mm_mt],
        mm.start_brk,
        s.p.regs.sp,
        mm.saved_auxv,
    )
