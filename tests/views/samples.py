"""Readings made by hand: parent and child right after fork share frame 0x1a3."""

from kemu import readings as r

VMA = r.VmaReading(0x10000, 0x14000, "rw-p")
STACK = r.VmaReading(0x7FFFFFFDE000, 0x7FFFFFFFF000, "rw-p", name="[stack]")
TEXT = r.VmaReading(0x401000, 0x402000, "r-xp", 0x1000, "fe:00", 12, "/bin/app")

PARENT = r.TaskRow(
    pid=3, tgid=3, ppid=1, comm="parent", name="parent", state="R", mm=2, active_mm=2, cpu=0, size=37, rss=1, threads=1,
    minor=1, major=0, running_on=0,
)  # fmt: skip
CHILD = PARENT.replace(
    pid=4, tgid=4, ppid=3, name="child", mm=3, active_mm=3, running_on=None, minor=0
)
ZOMBIE = PARENT.replace(
    pid=5,
    tgid=5,
    ppid=3,
    name="late",
    comm="late",
    state="Z",
    mm=0,
    active_mm=0,
    size=0,
    rss=0,
    running_on=None,
    exit_code=11,
)
KTHREAD = PARENT.replace(
    pid=2, tgid=2, ppid=0, name="kthreadd", comm="kthreadd", state="S", mm=0, active_mm=2, cpu=1, size=0, rss=0, running_on=1,
    minor=0,
)  # fmt: skip
INIT = PARENT.replace(
    pid=1,
    tgid=1,
    ppid=0,
    name="init",
    comm="init",
    state="S",
    mm=1,
    active_mm=1,
    running_on=None,
    minor=0,
)

HOLDERS = (
    r.Holder("pte", 1, 3, "parent", 0x10000, 0x80000000001A3065, "P-UAD---N"),
    r.Holder("pte", 1, 4, "child", 0x10000, 0x80000000001A3045, "P-U-D---N"),
)
FRAME = r.FrameReading(
    pfn=0x1A3, address=0x1A3000, state="anon", refcount=2, mapcount=2, flags=("uptodate", "lru", "swapbacked"),
    flag_word=0x20028, letters="UMab", mapping="anon_vma#1", index=0x10, exclusive=False, holders=HOLDERS,
    preview=b"hello" + bytes(11),
)  # fmt: skip


def entry(where, value, kind, letters, pfn):
    """An entry; ``where`` is its level, its index and its address."""
    bits = tuple(
        name
        for letter, name in (("P", "present"), ("W", "write"), ("U", "user"))
        if letter in letters
    )
    return r.EntryReading(*where, value, kind, letters, bits, pfn)


LEGEND = (
    ("P", "present"),
    ("W", "write"),
    ("U", "user"),
    ("A", "accessed"),
    ("D", "dirty"),
    ("N", "no execute"),
)
STEPS = (
    entry(("pgd", 0, 0xA000), 0xB067, "table", "PWUAD----", 0xB),
    entry(("pud", 0, 0xB000), 0xC067, "table", "PWUAD----", 0xC),
    entry(("pmd", 0, 0xC000), 0xD067, "table", "PWUAD----", 0xD),
    entry(("pte", 16, 0xD080), 0x80000000001A3065, "page", "P-UAD---N", 0x1A3),
)
WALK = r.Translation(
    pid=3, name="parent", address=0x10004, canonical=True, root=0xA000, geometry="x86-64",
    indices=(("pgd", 0), ("pud", 0), ("pmd", 0), ("pte", 16)), offset=4, legend=LEGEND, steps=STEPS, stopped="", rights="r--u",
    denied=(("write", "pte"), ("execute", "pte")), physical=0x1A3004, byte=0x6F,
    faults=(("read", ""), ("write", "P|W|U"), ("fetch", "P|U|I")), vma=VMA, frame=FRAME,
    tlb=(r.TlbRow(0, 2, 0x10000, 0x1A3, "r--u", True, False, 3, "parent"),),
)  # fmt: skip
CHILD_STEPS = (
    entry(("pgd", 0, 0x1E000), 0x1F067, "table", "PWUAD----", 0x1F),
    entry(("pud", 0, 0x1F000), 0x20067, "table", "PWUAD----", 0x20),
    entry(("pmd", 0, 0x20000), 0x21067, "table", "PWUAD----", 0x21),
    entry(("pte", 16, 0x21080), 0x80000000001A3045, "page", "P-U-D---N", 0x1A3),
)
CHILD_WALK = WALK.replace(pid=4, name="child", root=0x1E000, steps=CHILD_STEPS, tlb=())
STOPPED = WALK.replace(
    address=0x13000, offset=0, steps=(*STEPS[:3], entry(("pte", 19, 0xD098), 0, "none", "---------", None)),
    stopped="not present", rights="", denied=(), physical=None, byte=None, frame=None, tlb=(),
    faults=(("read", "U"), ("write", "W|U"), ("fetch", "U|I")), indices=(("pgd", 0), ("pud", 0), ("pmd", 0), ("pte", 19)),
)  # fmt: skip

PTE_TABLE = r.TableReading(
    "pte",
    0xD,
    1,
    (
        r.EntryRun(0, 16, 0, 0x10000),
        r.EntryRun(16, 1, 0x10000, 0x11000, STEPS[3]),
        r.EntryRun(17, 495, 0x11000, 0x200000),
    ),
)
PMD_TABLE = r.TableReading("pmd", 0xC, 1, (r.EntryRun(0, 1, 0, 0x200000, STEPS[2], PTE_TABLE),))
TABLES = r.PageTables(3, "parent", 2, "x86-64", LEGEND, PMD_TABLE, 2, 1)

EVENTS = (
    r.EventReading(
        58, "pte", "pte parent "
                   "0x10000", "", "0x80000000001a3067", "0x80000000001a3065", "W cleared",
        "copy_present_ptes", "mm/memory.c",
    ),
    r.EventReading(59, "frame", "pfn "
                                "0x1a3", "_refcount", "1", "2", "", "copy_present_ptes", "mm/memory.c"),
)  # fmt: skip
