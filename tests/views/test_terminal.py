"""What each reading looks like on a terminal of 80 columns."""

import inspect
import re

import pytest

from kemu import readings as r
from kemu.views import memory, moments, spaces, tables, tasks
from kemu.views.style import ASCII, PLAIN, UNICODE, Style, can_encode, style_for
from kemu.views.terminal import RENDERERS, render
from tests.views import samples as s

WIDE = Style(glyphs=UNICODE)


def lines(text):
    """The lines of an indented block."""
    return inspect.cleandoc(text)


def test_ps_marks_the_cpu_that_runs_a_task_and_says_what_is_odd():
    text = render(r.ProcessList((s.INIT, s.KTHREAD, s.PARENT, s.CHILD, s.ZOMBIE)))
    assert text == lines("""
        PID  PPID  NAME      S  CPU  MM  PAGES  RSS  MINFLT  MAJFLT
          1     0  init      S  0     1     37    1       0       0
          2     0  kthreadd  S  1*    -      -    -       0       0  borrows mm#2
          3     1  parent    R  0*    2     37    1       1       0
          4     3  child     R  0     3     37    1       0       0  [parent]
          5     3  late      Z  0     -      -    -       1       0  killed by signal 11
        """)


def test_tree_draws_the_family_in_the_glyphs_of_the_terminal():
    family = r.TaskTree((r.TaskNode(s.INIT, (r.TaskNode(s.CHILD, ()), r.TaskNode(s.ZOMBIE, ()))),))
    assert render(family) == "1 init\n|- 4 child  ([parent])\n`- 5 late  (killed by signal 11)"
    assert (
        render(family, WIDE) == "1 init\n├─ 4 child  ([parent])\n└─ 5 late  (killed by signal 11)"
    )


def test_regs_show_a_failed_call_as_the_kernel_returns_it():
    regs = r.RegsReading(
        3, "app", "x86-64", 0, True, 0x401000, 0x7FFFFFFFE000, 4, 0x10E000, 3, 0, 0, 0
    )
    failed = regs.replace(ax=(1 << 64) - 12, error="ENOMEM")
    assert "  rax  0x0000000000000004\n" in render(regs)
    assert "  rax  0xfffffffffffffff4  -ENOMEM (12)\n" in render(failed)
    assert "  a0    0xfffffffffffffff4  -ENOMEM (12)\n" in render(failed.replace(geometry="sv39"))


def test_walk_shows_every_level_the_rights_and_the_end():
    assert render(s.WALK) == lines("""
        walk parent 0x10004  (pid 3, x86-64, root 0xa000)
          LEVEL  INDEX  ENTRY AT  ENTRY               BITS       LEADS TO
          pgd        0  0xa000    0x000000000000b067  PWUAD----  table 0xb
          pud        0  0xb000    0x000000000000c067  PWUAD----  table 0xc
          pmd        0  0xc000    0x000000000000d067  PWUAD----  table 0xd
          pte       16  0xd080    0x80000000001a3065  P-UAD---N  page 0x1a3
          rights   r--u: no write (pte), no execute (pte)
          access   read ok, write faults (P|W|U), fetch faults (P|U|I)
          offset   0x4
          address  0x1a3004 holds 0x6f "o"
          VMA      0x10000-0x14000 rw-p
          frame    0x1a3 anon, refcount 2, mapcount 2, not exclusive: parent 0x10000,
                   child 0x10000
          TLB      CPU 0 pcid 2: 0x10000 -> 0x1a3 r--u dirty
          bits     P present, W write, U user, A accessed, D dirty, N no execute
        """)


def test_a_walk_that_stops_says_where_and_what_an_access_would_raise():
    text = render(s.STOPPED)
    assert "pte       19  0xd098    0x0000000000000000  ---------  nothing" in text
    assert "stops   not present" in text
    assert "access  read faults (U), write faults (W|U), fetch faults (U|I)" in text
    assert "frame " not in text


def test_a_walk_of_an_address_that_is_not_canonical_does_not_begin():
    walk = s.WALK.replace(address=1 << 63, canonical=False, steps=(), stopped="not canonical")
    assert render(walk).endswith(
        "not a canonical address: the CPU does not even walk, it raises #GP"
    )


def test_the_picture_has_three_lines():
    assert tables.picture(s.WALK, PLAIN).splitlines() == [
        "VMA    0x10000-0x14000 rw-p of parent",
        "PTE    0x10000 P-UAD---N -> 0x1a3   write and fetch would fault",
        "frame  0x1a3 anon, refcount 2, mapcount 2, not exclusive: parent 0x10000, child 0x10000",
    ]
    assert tables.picture(s.STOPPED, PLAIN).splitlines()[1:] == [
        "PTE    0x13000 not present (pte)",
        "frame  none",
    ]
    assert (
        tables.picture(s.STOPPED.replace(vma=None), PLAIN).splitlines()[0]
        == "VMA    none at 0x13000"
    )


def test_page_tables_fold_what_is_empty():
    assert render(s.TABLES) == lines("""
        page tables of parent (pid 3, mm#2, x86-64): 2 tables, 1 leaf
        pmd 0xc, 1 used
          [0] 0x0 PWUAD---- -> pte 0xd, 1 used
            [0...15] empty
            [16] 0x10000 P-UAD---N -> page 0x1a3
            [17...511] empty
        P present, W write, U user, A accessed, D dirty, N no execute
        """)
    assert render(s.TABLES.replace(root=None)) == "parent (pid 3) has no page tables"


def test_frame_names_every_holder_and_never_hides_a_reference():
    assert render(s.FRAME.replace(refcount=3, missing=1)) == lines("""
        frame 0x1a3 at 0x1a3000: anon
          refcount   3
          held by    parent 0x10000  P-UAD---N
          held by    child 0x10000  P-U-D---N
          missing    1 reference that nobody here explains
          mapcount   2  (_mapcount 1)
          exclusive  no
          flags      uptodate lru swapbacked  (UMab)
          mapping    anon_vma#1, index 0x10
          begins     68 65 6c 6c 6f 00 00 00 00 00 00 00 00 00 00 00  "hello..........."
        """)


def test_more_holders_than_references_are_said_without_a_minus():
    text = render(s.FRAME.replace(refcount=1, missing=-1))
    assert "  too few    1 holder more than references: a get is missing\n" in text
    assert "missing    " not in text


def test_a_batch_and_the_page_cache_are_holders_too():
    assert memory.holder_text(r.Holder("pipe", name="pipe 1")) == "pipe 1"
    assert memory.holder_text(r.Holder("lru_add batch", cpu=1)) == "lru_add batch of CPU 1"
    assert memory.holder_text(r.Holder("page cache", name="/bin/app")) == "page cache of /bin/app"
    assert memory.holder_text(r.Holder("pin", 1024)) == "pin x1024"


def test_rmap_marks_the_vmas_that_map_the_frame():
    visits = (
        r.RmapVisit(3, "parent", 2, s.VMA, 0x10000, True, "P-UAD---N"),
        r.RmapVisit(4, "child", 3, s.VMA, 0x10000, False),
    )
    assert render(r.RmapReading(0x1A3, "anon", "anon_vma#1", 0x10, 1, visits)) == lines("""
        frame 0x1a3: anon, found through anon_vma#1 at index 0x10; mapcount 1
           TASK        ADDRESS  ENTRY      VMA
        *  parent (3)  0x10000  P-UAD---N  0x10000-0x14000 rw-p
           child (4)   0x10000  -          0x10000-0x14000 rw-p
        * maps the frame
        """)
    assert render(r.RmapReading(1, "kernel", "", 0, 0, ())) == "frame 0x1: kernel, no reverse map"


def test_mem_folds_lines_that_repeat_and_keeps_the_last():
    runs = (r.FrameRun(0, 70, "K"), r.FrameRun(70, 2, "a"), r.FrameRun(72, 568, "."))
    text = render(
        r.MemoryMap(640, runs, ((".", "free", 568), ("K", "kernel", 70), ("a", "parent", 2)))
    )
    assert text.splitlines() == [
        "     0x0  " + "K" * 64,
        "    0x40  KKKKKKaa" + "." * 56,
        "    0x80  " + "." * 64,
        "     ...  6 more lines like this",
        "   0x240  " + "." * 64,
        ".  free: 568 frames",
        "K  kernel: 70 frames",
        "a  parent: 2 frames",
    ]


def test_tlb_says_which_entries_are_stale():
    row = s.WALK.tlb[0].replace(stale=True)
    cpu = r.TlbCpu(0, 3, 2, 0xA000, 2, False, (r.TlbSlot(1, 7, 4, 2, 1),), (row,))
    idle = r.TlbCpu(1, 0, 0, 0x9000, 1, True, (), ())
    assert render(r.TlbReading((cpu, idle))) == lines("""
        CPU 0: runs pid 3, mm#2 loaded, cr3 0xa000 pcid 2
          slot 1: mm#2 (context 7) at tlb_gen 4, 1 behind
          PCID  PAGE       PFN  RIGHTS  D  G  OF
             2  0x10000  0x1a3  r--u    D  -  parent  STALE
        CPU 1: runs pid 0, mm#0 loaded, lazy, cr3 0x9000 pcid 1
          no entry
        """)


def test_an_event_is_wrapped_below_itself():
    assert render(r.EventList(57, 59, s.EVENTS, 3)) == lines("""
        #58    copy_present_ptes pte parent 0x10000 0x80000000001a3067 ->
                                 0x80000000001a3065 (W cleared)
        #59    copy_present_ptes pfn 0x1a3 _refcount 1 -> 2
        3 events not shown: lists, locks, statistics, nothing new
        """)
    assert render(r.EventList(5, 5, ())) == "no event"


def test_calls_look_like_ftrace_with_the_file_of_the_original_at_the_edge():
    leaf = r.CallReading("find_vma", "mm/mmap.c", 50, 50, ())
    inner = r.CallReading("handle_mm_fault", "mm/memory.c", 57, 59, s.EVENTS[1:])
    tree = r.CallTree(
        50, 60, (r.CallReading("do_user_addr_fault", "arch/x86/mm/fault.c", 50, 60, (leaf, inner)),)
    )
    assert render(tree).splitlines() == [
        "        51-60  do_user_addr_fault() {                        arch/x86/mm/fault.c",
        "                 find_vma();                                           mm/mmap.c",
        "        58-59    handle_mm_fault() {                                 mm/memory.c",
        "          #59      pfn 0x1a3 _refcount 1 -> 2",
        "                 }",
        "               }",
    ]


def test_diff_names_an_object_once_and_stars_what_differs():
    changes = (
        r.FieldChange("frame", "pfn 0x1a3", "_refcount", "1", "2"),
        r.FieldChange("frame", "pfn 0x1a3", "_mapcount", "0", "1"),
        r.FieldChange("pte", "pte parent 0x10000", "", "0x67", "0x65", "W cleared"),
    )
    assert render(r.Difference(57, 59, changes)) == lines("""
        #57 -> #59: 3 differences
        pfn 0x1a3          * _refcount 1 -> 2
                           * _mapcount 0 -> 1
        pte parent 0x10000 * 0x67 -> 0x65 (W cleared)
        """)
    assert render(r.Difference(57, 57, ())) == "#57 -> #57: nothing differs"


def test_many_objects_that_changed_in_the_same_way_are_folded():
    changes = tuple(r.FieldChange("frame", f"pfn {n:#x}", "_refcount", "1", "2") for n in range(40))
    assert render(r.Difference(5, 90, changes)).splitlines()[1:] == [
        "pfn 0x0  * _refcount 1 -> 2",
        "pfn 0x1  * _refcount 1 -> 2",
        "pfn 0x2  * _refcount 1 -> 2",
        "         ... 37 more like this, to pfn 0x27",
    ]
    four = render(r.Difference(5, 90, changes[:4])).splitlines()
    assert four[-1] == "pfn 0x3 * _refcount 1 -> 2"


def test_many_pages_with_the_same_bits_are_folded():
    runs = tuple(
        r.EntryRun(n, 1, n << 12, n + 1 << 12, s.STEPS[3].replace(index=n, pfn=2 * n))
        for n in range(9)
    )
    text = render(s.TABLES.replace(root=r.TableReading("pte", 0xD, 9, runs)))
    assert text.splitlines()[2:7] == [
        "  [0] 0x0 P-UAD---N -> page 0x0",
        "  [1] 0x1000 P-UAD---N -> page 0x2",
        "  [2] 0x2000 P-UAD---N -> page 0x4",
        "  ... 5 more pages with the same bits",
        "  [8] 0x8000 P-UAD---N -> page 0x10",
    ]


def test_the_picture_after_a_command_stays_short():
    changes = tuple(
        r.FieldChange("frame", f"pfn {n:#x}", "_refcount", str(n), "2") for n in range(40)
    )
    shown = render(r.Change("fork parent", 5, 90, r.Difference(5, 90, changes))).splitlines()
    assert shown[0] == "#5 -> #90"
    assert len(shown) == moments.CHANGES_SHOWN + 1
    assert shown[-1] == "... 17 more lines: diff 5 90"
    assert not render(r.Change("ps", 5, 5, r.Difference(5, 5, ())))


@pytest.mark.parametrize(
    ("reading", "text"),
    [
        (r.Outcome(3, "app", "mmap", (), 0x10000, is_address=True), "mmap -> 0x10000"),
        (r.Outcome(3, "app", "fork", (), 4, minor=2), "fork -> 4  (2 minor faults)"),
        (r.Outcome(3, "app", "wait4", (), 0, blocked=True), "wait4 -> blocked"),
        (
            r.Outcome(3, "app", "mmap", (), -12, 12, "ENOMEM", "3 pages more would pass RLIMIT_AS"),
            "mmap -> -ENOMEM (12): 3 pages more would pass RLIMIT_AS",
        ),
        (r.AccessOutcome(3, "app", "write", 0x10000, 1, minor=1), "write app 0x10000: ok  (1 minor fault)"),
        (r.AccessOutcome(3, "app", "read", 0x10000, 3, b"hi\n"), 'read app 0x10000: 68 69 0a  "hi."'),
        (
            r.AccessOutcome(3, "app", "read", 0x10000, 8, bytes([7, 0, 0, 0, 0, 0, 0, 0])),
            'read app 0x10000: 07 00 00 00 00 00 00 00  "........"  0x7',
        ),
        (
            r.AccessOutcome(3, "app", "write", 0x20000, 8, b"", 0, 0, "SIGSEGV", "SEGV_MAPERR", 0x20000, "W|U", killed=True),
            "write app 0x20000: SIGSEGV (SEGV_MAPERR) at 0x20000, error code W|U (write, user); the task is dead",
        ),
    ],
)  # fmt: skip
def test_what_a_call_or_an_access_gave_is_one_line(reading, text):
    assert render(reading) == text


def test_vma_says_what_it_hangs_on():
    link = r.AnonLink(1, 1, 1, 2, 2, 1, 2, True)
    detail = r.VmaDetail(
        3,
        "parent",
        2,
        s.VMA,
        "anonymous",
        ("rd", "wr"),
        ("VM_READ", "VM_WRITE"),
        3,
        0x25,
        0x10,
        1,
        (link,),
        None,
        s.STACK,
    )
    text = render(detail)
    assert text.splitlines()[0] == "0x10000-0x14000 rw-p of parent (pid 3, mm#2)"
    assert "pages      4, 1 of them present" in text
    assert "anon_vma   #1 (its own): root #1, parent #1, refcount 2, 2 VMAs may map" in text
    assert "34359738314 pages away" in " ".join(text.split())


def test_layout_marks_holes_and_indents_mappings():
    regions = (
        r.Region(0, 1 << 47, "user", "user"),
        r.Region(0x10000, 0x14000, "vma", "", "rw-p"),
        r.Region(1 << 47, (1 << 64) - (1 << 47), "hole", "not canonical"),
        r.Region((1 << 64) - (1 << 47), 1 << 64, "kernel", "kernel"),
    )
    assert render(r.LayoutReading(3, "app", "x86-64, 4 levels", 48, regions)) == lines("""
        address space of app (pid 3), x86-64, 4 levels: 48-bit addresses
          0000000000000000 - 00007fffffffffff   128 TB  user
          0000000000010000 - 0000000000013fff    16 kB    rw-p
          0000800000000000 - ffff7fffffffffff  ~16M TB  (not canonical)
          ffff800000000000 - ffffffffffffffff   128 TB  kernel
        """)


def test_stat_names_its_fields():
    reading = r.StatReading(3, "app", "S", (("pid", 3), ("ppid", 1), ("minflt", 7)))
    shown = render(reading).splitlines()
    assert shown[0] == "3 (app) S 1 7"
    assert [line.split() for line in shown[1:]] == [
        ["1", "pid", "3", "4", "ppid", "1"],
        ["2", "comm", "app", "5", "minflt", "7"],
        ["3", "state", "S"],
    ]


def test_every_reading_of_a_command_has_a_renderer():
    kinds = {
        name: kind
        for name, kind in vars(r).items()
        if isinstance(kind, type) and issubclass(kind, r.Reading)
    }
    inside = {
        word
        for kind in kinds.values()
        for text in kind._fields.values()
        for word in re.findall(r"\w+", text)
    }
    without = kinds.keys() - {kind.__name__ for kind in RENDERERS} - {"Reading"}
    assert without <= inside, "a reading that is part of no other one cannot be drawn"
    with pytest.raises(TypeError, match="drawn only as part"):
        render(s.PARENT)


def test_colour_paints_and_never_carries_a_fact_alone():
    colour = Style(colour=True)
    change = r.Difference(1, 2, (r.FieldChange("frame", "pfn 0x1", "_refcount", "1", "2"),))
    painted = render(change, colour)
    assert "\x1b[1;33m*\x1b[0m" in painted
    assert painted.replace("\x1b[1;33m", "").replace("\x1b[0m", "") == render(change)


def test_no_colour_means_no_escape_sequence_anywhere():
    for reading in (
        s.WALK,
        s.FRAME,
        s.TABLES,
        r.ProcessList((s.PARENT,)),
        r.Outcome(3, "a", "b", (), -1, 1, "EPERM"),
    ):
        assert "\x1b" not in render(reading)
        assert render(reading).isascii()


def test_glyphs_follow_what_the_output_can_encode():
    assert style_for("utf-8").glyphs is UNICODE
    assert style_for("ascii").glyphs is ASCII
    assert style_for("utf-8", ascii_only=True).glyphs is ASCII
    assert style_for(None).glyphs is ASCII
    assert not can_encode("no-such-encoding")


def test_modules_keep_their_renderers_by_name():
    assert RENDERERS[r.ProcessList] is tasks.process_list
    assert RENDERERS[r.MmReading] is spaces.mm
