"""What observe sees of a running kernel is what the kernel holds, and looking changes nothing."""

import inspect
from itertools import pairwise
from pathlib import Path

import pytest

from kemu.errors import KernelBug, UsageError
from kemu.kernel.fs.files import create_file
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import regions
from kemu.machine import mmu
from kemu.machine.geometry import RISCV_SV39, X86_64_4LEVEL, X86_64_5LEVEL
from kemu.observe import calls, difference, events, frames, procfs, space, tasks, translation
from kemu.observe.look import looking
from kemu.observe.names import (
    changed_bits,
    entry_letters,
    error_letters,
    vm_flag_names,
    vm_mnemonics,
)
from kemu.observe.regions import REGIONS
from kemu.views import memory
from kemu.views.json import to_data
from kemu.views.terminal import render
from tests.views.story import BASE, PAGE, SHARED, Story

TINY = Path(__file__).parents[1] / "data" / "exec" / "files" / "tiny-static"


@pytest.fixture
def forked():
    """Parent and child right after fork."""
    story = Story()
    story.begin()
    story.fork()
    return story


def looks(story):
    """Every observe function, called on the story's parent; (name, function) pairs."""
    kernel, parent, names = story.kernel, story.tasks["parent"], story.names
    end = len(kernel.journal)
    return {
        "process_list": lambda: tasks.process_list(kernel, names),
        "task_tree": lambda: tasks.task_tree(kernel, names),
        "task": lambda: tasks.task(kernel, parent, names),
        "registers": lambda: tasks.registers(kernel, parent, names),
        "address_space": lambda: space.address_space(parent, names),
        "mm": lambda: space.mm(kernel, parent, names),
        "vma": lambda: space.vma(parent, BASE, names),
        "layout": lambda: space.layout(kernel, parent, names),
        "smaps": lambda: procfs.smaps(kernel, parent, names),
        "smaps_rollup": lambda: procfs.smaps_rollup(kernel, parent, names),
        "status": lambda: procfs.status(kernel, parent),
        "stat": lambda: procfs.stat(kernel, parent),
        "statm": lambda: procfs.statm(parent),
        "pagemap": lambda: procfs.pagemap(kernel, parent, 0, 1 << 64, names),
        "walk": lambda: translation.walk(kernel, parent, BASE, names),
        "page_tables": lambda: translation.page_tables(kernel, parent, names, kernel_half=True),
        "dump": lambda: translation.dump(kernel, parent, BASE - 8, 5000, names),
        "frame": lambda: frames.frame(kernel, story.pfn, names),
        "rmap": lambda: frames.rmap(kernel, story.pfn, names),
        "memory_map": lambda: frames.memory_map(kernel, names),
        "free": lambda: frames.free(kernel),
        "tlb": lambda: frames.tlb(kernel, names),
        "events": lambda: events.events(kernel, 0, end, names, low=True),
        "one_event": lambda: events.one_event(kernel, end, names),
        "event_from_here": lambda: events.event_from_here(kernel, end, names),
        "calls": lambda: calls.calls(kernel, 0, end, names, with_events=True),
        "diff": lambda: difference.diff(kernel, 0, end, names, low=True),
    }


def test_looking_leaves_no_trace(forked):
    kernel = forked.kernel
    journal = kernel.journal
    before = (
        kernel.state_hash(),
        len(journal),
        len(journal.marks),
        journal.cursor,
        len(system.mem_map),
    )
    for name, look in looks(forked).items():
        look()
        after = (
            kernel.state_hash(),
            len(journal),
            len(journal.marks),
            journal.cursor,
            len(system.mem_map),
        )
        assert after == before, name


def test_every_public_observe_function_is_looked_at(forked):
    named = {
        name
        for module in (tasks, space, procfs, translation, frames, events, calls, difference)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and "names" in inspect.signature(function).parameters
        and name[0] != "_"
    }
    helpers = {
        "task_row",
        "need_mm",
        "space_of",
        "read_frame",
        "holders",
        "tlb_rows",
        "directory_at",
    }
    assert named - helpers <= looks(forked).keys()


def test_every_reading_can_be_drawn_and_written_at_any_moment(forked):
    journal = forked.kernel.journal
    moments = [
        forked.at["mmap"][1],
        (forked.at["fork"][0] + forked.at["fork"][1]) // 2,
        len(journal),
    ]
    for moment in moments:
        journal.seek(moment)
        for name, look in looks(forked).items():
            reading = look()
            assert render(reading), name
            assert to_data(reading), name
    assert journal.cursor == len(journal)


def test_a_write_while_looking_is_a_bug(forked):
    with looking(forked.kernel), pytest.raises(KernelBug, match="sealed"):
        forked.tasks["parent"].comm = "other"


# ---------------------------------------------------------------- frames


def test_all_references_of_all_frames_are_explained_after_every_step():
    story = Story(lru_batch=True)
    story.begin()
    story.fork()
    for _ in range(2):
        for pfn in sorted(system.mem_map):
            reading = frames.frame(story.kernel, pfn, story.names)
            assert reading.missing == 0, reading
            assert reading.mapcount == sum(holder.what == "pte" for holder in reading.holders)
        story.store("cow copy", "child", BASE, b"y")


def test_after_fork_both_entries_hold_the_frame_and_neither_may_write(forked):
    walks = [forked.walk(name) for name in ("parent", "child")]
    assert walks[0].frame.pfn == walks[1].frame.pfn
    assert [(h.name, h.address) for h in walks[0].frame.holders] == [
        ("parent", BASE),
        ("child", BASE),
    ]
    assert (walks[0].frame.refcount, walks[0].frame.mapcount, walks[0].frame.exclusive) == (
        2,
        2,
        False,
    )
    for walk in walks:
        assert walk.rights == "r--u"
        assert walk.denied == (("write", "pte"), ("execute", "pte"))
        assert walk.faults == (("read", ""), ("write", "P|W|U"), ("fetch", "P|U|I"))
        assert walk.byte == ord("h")
    own = [step.entry_address for step in walks[0].steps]
    assert not set(own) & {step.entry_address for step in walks[1].steps}


def test_a_batch_is_a_holder_and_the_page_cache_is_one():
    story = Story(lru_batch=True)
    story.begin()
    anon = story.walk("parent").frame
    assert [holder.what for holder in anon.holders] == ["pte", "lru_add batch"]
    assert anon.refcount == 2
    shared = story.walk("parent", SHARED).frame
    assert (shared.state, [holder.what for holder in shared.holders]) == (
        "shmem",
        ["pte", "page cache", "lru_add batch"],
    )


def test_the_zero_page_is_named(forked):
    walk = forked.walk("parent", BASE + PAGE)
    assert walk.steps[-1].note == "zero page"
    assert walk.frame.state == "zero"


def test_a_table_frame_says_whose_it_is(forked):
    walk = forked.walk("child")
    pte_table = frames.frame(forked.kernel, walk.steps[2].pfn, forked.names)
    assert (pte_table.state, pte_table.table) == ("table", "pte of child from 0x0")
    assert pte_table.missing == 0


def test_rmap_visits_the_parent_too_but_finds_only_the_child_after_its_copy(forked):
    old = forked.walk("child").frame.pfn
    forked.store("cow copy", "child", BASE, b"y")
    reading = frames.rmap(forked.kernel, old, forked.names)
    assert [(visit.name, visit.mapped) for visit in reading.visits] == [
        ("parent", True),
        ("child", False),
    ]
    new = frames.rmap(forked.kernel, forked.walk("child").frame.pfn, forked.names)
    assert [(visit.name, visit.mapped) for visit in new.visits] == [("child", True)]


def test_the_memory_map_has_a_letter_for_every_frame(forked):
    reading = frames.memory_map(forked.kernel, forked.names)
    assert sum(run.count for run in reading.runs) == reading.frames == system.phys.nr_frames
    firsts = [run.first for run in reading.runs]
    assert firsts == [sum(run.count for run in reading.runs[:n]) for n in range(len(firsts))]
    assert all(a.letter != b.letter for a, b in pairwise(reading.runs))
    counts = {letter: count for letter, _, count in reading.legend}
    free = frames.free(forked.kernel)
    assert counts["."] == free.free
    assert counts["T"] == dict(free.used)["table"]
    assert counts["S"] == 1  # the anonymous page; fork copies no shared mapping
    assert sum(counts.values()) == reading.frames


def test_an_owner_keeps_its_letter(forked):
    forked.store("cow copy", "child", BASE, b"y")
    legend = {
        meaning: (letter, count)
        for letter, meaning, count in frames.memory_map(forked.kernel, forked.names).legend
    }
    assert legend["parent"] == ("b", 2)
    assert legend["child"] == ("c", 1)


def test_the_pages_of_a_program_are_the_page_cache_s_and_the_program_s():
    story = Story()
    story.known("app", story.script.spawn("app"))
    create_file("/bin/tiny", "disk", TINY.read_bytes())
    story.call("exec", "app", "execve", "/bin/tiny", ["/bin/tiny"], [])
    story.load("text", "app", 0x401000, 8)
    frame = story.walk("app", 0x401000).frame
    assert (frame.state, frame.mapping, frame.index) == ("file", "/bin/tiny", 1)
    assert [memory.holder_text(holder) for holder in frame.holders] == [
        "app 0x401000",
        "page cache of /bin/tiny",
    ]
    story.store("data", "app", 0x403000, b"mine")
    assert story.walk("app", 0x403000).frame.state == "anon"
    assert [vma.name for vma in space.address_space(story.tasks["app"]).vmas][:1] == ["/bin/tiny"]
    told = [
        event.text for event in events.events(story.kernel, *story.at["exec"], story.names).events
    ]
    assert "task app (3) mm mm of app -> mm of app mm#3" in told
    for pfn in sorted(system.mem_map):
        assert frames.frame(story.kernel, pfn, story.names).missing == 0


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize(
    "geometry", [X86_64_4LEVEL, X86_64_5LEVEL, RISCV_SV39], ids=lambda g: g.name
)
def test_the_tables_found_are_the_tables_counted(geometry):
    story = Story(geometry=geometry)
    story.begin()
    story.fork()
    for name in ("parent", "child"):
        reading = translation.page_tables(story.kernel, story.tasks[name], story.names)
        mm = space.mm(story.kernel, story.tasks[name], story.names)
        uncounted = 2 if geometry is X86_64_5LEVEL else 1  # the root, and the p4d
        assert (reading.tables - uncounted) * 4096 == mm.pgtables_bytes
        present = procfs.pagemap(story.kernel, story.tasks[name], 0, 1 << 48, story.names).pages
        assert (
            reading.leaves == len(present) == (3 if name == "parent" else 2)
        )  # fork copies no shared mapping
        assert story.walk(name).byte == ord("h")
        assert render(story.walk(name))


def test_runs_of_a_table_cover_it_without_a_gap(forked):
    def check(table, entries):
        at = 0
        for run in table.runs:
            assert run.first == at
            at += run.count
            if run.table:
                check(run.table, 512)
        assert at == entries

    check(translation.page_tables(forked.kernel, forked.tasks["parent"]).root, 256)
    check(
        translation.page_tables(forked.kernel, forked.tasks["parent"], kernel_half=True).root, 512
    )


def test_large_pages_of_the_direct_map_are_one_run(forked):
    root = translation.page_tables(forked.kernel, forked.tasks["parent"], kernel_half=True).root
    huge = [
        run
        for pud in root.runs
        if pud.table
        for pmd in pud.table.runs
        if pmd.table
        for run in pmd.table.runs
        if run.entry
    ]
    direct = next(run for run in huge if run.entry.kind == "huge")
    assert direct.count == system.phys.size >> 21
    assert direct.start == 0xFFFF888000000000


def test_a_kernel_address_is_there_but_not_for_the_user(forked):
    walk = forked.walk("parent", 0xFFFF888000000000 + 0x1000)
    assert walk.page_size == 2 << 20
    assert walk.physical == 0x1000
    assert walk.rights == "rw--"
    assert ("user", "pgd") in walk.denied
    assert dict(walk.faults)["read"] == "P|U"


def test_an_address_that_is_not_canonical_has_no_steps(forked):
    walk = forked.walk("parent", 1 << 47)
    assert (walk.canonical, walk.steps, walk.stopped) == (False, (), "not canonical")
    with pytest.raises(UsageError, match="is not an address"):
        forked.walk("parent", 1 << 64)


def test_dump_shows_bytes_and_holes(forked):
    reading = translation.dump(forked.kernel, forked.tasks["parent"], BASE - 8, 16)
    assert reading.chunks == ((BASE - 8, None), (BASE, b"hello\0\0\0"))
    with pytest.raises(UsageError, match="cannot dump"):
        translation.dump(forked.kernel, forked.tasks["parent"], (1 << 64) - 8, 16)


def test_no_tlb_entry_is_stale_after_fork_and_copy(forked):
    for label, name in (("a", "child"), ("b", "parent"), ("c", "child")):
        forked.store(label, name, BASE, b"z")
        rows = [row for cpu in frames.tlb(forked.kernel, forked.names).cpus for row in cpu.entries]
        assert rows
        assert not any(row.stale for row in rows)
    assert forked.walk("child").tlb[0].rights == "rw-u"


def test_an_entry_that_was_not_flushed_is_called_stale():
    story = Story(record=False)
    story.begin()
    entry = story.walk("parent").steps[-1]
    system.phys.store(entry.entry_address, entry.value & ~2)
    rows = story.walk("parent").tlb
    assert [row.stale for row in rows] == [True]


# ---------------------------------------------------------------- tasks and spaces


def test_ps_shows_states_and_who_borrows():
    story = Story().tell()
    rows = {row.name: row for row in tasks.process_list(story.kernel, story.names).tasks}
    assert rows["parent"].running_on == 0
    assert rows["kthreadd"].mm == 0
    assert rows["parent"].rss == 2
    assert "child" not in {row.name for row in rows.values() if row.pid in system.tasks}


def test_a_zombie_shows_its_end_and_has_no_memory():
    story = Story()
    story.begin()
    story.fork()
    story.call("exit", "child", "exit_group", 3)
    child = story.tasks["child"]
    row = tasks.task_row(child, story.names)
    assert (row.state, row.exit_code, row.mm, row.size) == ("Z", 0x300, 0, 0)
    assert procfs.status(story.kernel, child).vm is None
    assert dict(procfs.stat(story.kernel, child).fields)["exit_code"] == 0x300
    assert procfs.statm(child).size == 0
    assert not space.address_space(child).vmas
    assert not procfs.smaps(story.kernel, child).entries
    with pytest.raises(UsageError, match="has no address space"):
        procfs.pagemap(story.kernel, child, 0, 4096)


def test_tree_has_every_task_once(forked):
    def walk(node):
        yield node.task.pid
        for child in node.children:
            yield from walk(child)

    roots = tasks.task_tree(forked.kernel, forked.names).roots
    assert sorted(pid for root in roots for pid in walk(root)) == sorted(system.tasks)
    assert [root.task.pid for root in roots] == [0]


def test_holders_of_an_mm_add_up(forked):
    for name in ("parent", "child"):
        reading = space.mm(forked.kernel, forked.tasks[name], forked.names)
        assert reading.mm_users == sum(holder.count for holder in reading.users)
        assert reading.mm_count == sum(holder.count for holder in reading.counts)
        assert reading.map_count == len(space.address_space(forked.tasks[name]).vmas)


def test_a_kernel_thread_shows_the_mm_that_it_borrows(forked):
    forked.script.schedule(system.tasks[2])
    reading = space.mm(forked.kernel, system.tasks[2], forked.names)
    assert [(holder.what, holder.pid) for holder in reading.counts] == [
        ("its users", 0),
        ("borrowed on CPU 0 by", 2),
    ]
    assert reading.mm_count == 2


def test_vma_names_follow_linux(forked):
    parent = forked.tasks["parent"]
    names = [vma.name for vma in space.address_space(parent).vmas]
    assert names == ["", "/dev/zero (deleted)", "[stack]"]
    assert space.address_space(parent).gate == space.GATE
    forked.call("brk", "parent", "brk", 0x1002000)
    assert "[heap]" in [vma.name for vma in space.address_space(parent).vmas]


def test_an_address_outside_names_its_neighbours(forked):
    with pytest.raises(UsageError, match="0x20000 is not in any mapping of parent") as caught:
        space.vma(forked.tasks["parent"], 0x20000, forked.names)
    assert caught.value.hint == "the nearest are 0x10000-0x14000 and 0x40000-0x42000"


@pytest.mark.parametrize(
    "geometry", [X86_64_4LEVEL, X86_64_5LEVEL, RISCV_SV39], ids=lambda g: g.name
)
def test_the_regions_cover_all_addresses_and_hold_what_boot_maps(geometry):
    table = REGIONS[geometry.name]
    assert table[0].start == 0
    assert table[-1].end == 1 << 64
    assert all(low.end == high.start for low, high in pairwise(table))
    Story(geometry=geometry)
    words = {"direct map": "direct map", "vmalloc": "vmalloc", "kernel text": "kernel text"}
    for mapped in regions(geometry):
        home = next(region for region in table if region.start <= mapped.start < region.end)
        assert words[mapped.name] in home.what
        assert mapped.end <= home.end


@pytest.mark.parametrize(
    "geometry", [X86_64_4LEVEL, X86_64_5LEVEL, RISCV_SV39], ids=lambda g: g.name
)
@pytest.mark.parametrize("mem", [8 << 20, 64 << 20, 3 << 30])
def test_what_is_said_to_be_mapped_of_the_kernel_is_and_ends_there(mem, geometry):
    Story(mem=mem, geometry=geometry)
    for mapped in regions(geometry):
        stopped = [
            mmu.walk(system.phys, geometry, system.init_mm.pgd, address).stopped
            for address in (mapped.start - 1, mapped.start, mapped.end - 1, mapped.end)
        ]
        assert stopped == ["not present", "", "", "not present"], mapped


def test_a_frame_that_does_not_exist_is_refused(forked):
    for pfn in (-1, system.phys.nr_frames):
        with pytest.raises(UsageError, match="does not exist"):
            frames.frame(forked.kernel, pfn)


# ---------------------------------------------------------------- names


def test_names_of_bits():
    bits = X86_64_4LEVEL.bits
    assert entry_letters(bits, 0x8000000000000067) == "PWUAD---N"
    assert changed_bits(bits, 0x67, 0x65) == "W cleared"
    assert changed_bits(bits, 0x5, 0x67) == "W A D set"
    assert entry_letters(RISCV_SV39.bits, 0xD7) == "VRW-UAD--"
    assert error_letters(7) == "P|W|U"
    assert error_letters(0) == "0"
    assert vm_mnemonics(0x100073) == ("rd", "wr", "mr", "mw", "me", "ac")
    assert vm_flag_names(0x3 | 1 << 35) == ("VM_READ", "VM_WRITE", "0x800000000")


def test_init_and_kthreadd_sleep_as_in_linux_unless_a_cpu_runs_them(forked):
    rows = {row.name: row for row in tasks.process_list(forked.kernel, forked.names).tasks}
    assert (rows["init"].state, rows["kthreadd"].state) == ("S", "S")
    assert rows["parent"].state == "R"
    running = [row for row in rows.values() if row.running_on is not None]
    assert running
    assert all(row.state == "R" for row in running)
