"""Translation: entries, walks, page tables, TLBs, and the frame at the end."""

from __future__ import annotations

from kemu.readings.base import Address, Reading, Word
from kemu.readings.spaces import VmaReading


class EntryReading(Reading):
    """One page-table entry. ``level``: its Linux name; ``entry_address``: its address in RAM;
    ``letters``: one per bit that the format names, "-" where clear; ``bits``: names of the bits
    that are set; ``kind``: none, table, page, huge, protnone, marker (a guard page), uffd-wp,
    poison, swap, hwpoison, migration, device, unknown; ``note``: a remark (zero page, special)."""

    level: str
    index: int
    entry_address: Address
    value: Word
    kind: str
    letters: str
    bits: tuple[str, ...]
    pfn: int | None = None
    note: str = ""


class Holder(Reading):
    """A holder of references to a frame. ``what``: pte, page cache, swap cache, lru_add batch, ...
    ; for a pte the task and the address."""

    what: str
    count: int = 1
    pid: int = 0
    name: str = ""
    address: Address = 0
    entry: Word = 0
    letters: str = ""
    cpu: int | None = None
    note: str = ""


class FrameReading(Reading):
    """One frame of RAM and its ``struct page``. ``state``: one word (anon, file, shmem, table,
    kernel, free, zero, released); ``flags``: names of PG_* bits; ``mapcount``: as /proc/kpagecount
    counts (``_mapcount`` + 1); ``mapping``: what it belongs to; ``order``: of the free block that
    begins here; ``missing``: references that no holder explains."""

    pfn: int
    address: Address
    state: str
    refcount: int
    mapcount: int
    flags: tuple[str, ...]
    flag_word: Word
    letters: str
    mapping: str
    index: int
    exclusive: bool
    holders: tuple[Holder, ...]
    missing: int = 0
    order: int | None = None
    table: str = ""
    preview: bytes = b""


class Translation(Reading):
    """One walk. ``stopped``: "" if it ends in a frame, else why not; ``rights``: letters of what
    the combined levels allow ("rw-u"); ``denied``: (right, level that takes it away); ``faults``:
    (access, error code letters or "") for a user read, write and fetch right now, by the tables
    alone; ``byte``: the byte at the address; ``legend``: (letter, name) of the entry bits."""

    pid: int
    name: str
    address: Address
    canonical: bool
    root: Address
    geometry: str
    indices: tuple[tuple[str, int], ...]
    offset: int
    legend: tuple[tuple[str, str], ...]
    steps: tuple[EntryReading, ...]
    stopped: str
    rights: str = ""
    page_size: int = 4096
    physical: Address | None = None
    byte: int | None = None
    denied: tuple[tuple[str, str], ...] = ()
    faults: tuple[tuple[str, str], ...] = ()
    vma: VmaReading | None = None
    frame: FrameReading | None = None
    tlb: tuple[TlbRow, ...] = ()


class EntryRun(Reading):
    """``count`` entries of a table from ``first`` on that look alike: all none, or one entry (then
    ``entry``), with the table below. ``start`` and ``end``: the virtual addresses that they cover.
    A run of more than one present entry has the first as ``entry``; the others continue it (next
    frame, same bits)."""

    first: int
    count: int
    start: Address
    end: Address
    entry: EntryReading | None = None
    table: TableReading | None = None


class TableReading(Reading):
    """One page table: its level, frame, and entries with empty runs folded.  ``used``: entries that
    are not none."""

    level: str
    pfn: int
    used: int
    runs: tuple[EntryRun, ...]


class PageTables(Reading):
    """The page tables of a task (the user half, or the whole): the root table and all below it;
    ``legend``: (letter, name) of the entry bits."""

    pid: int
    name: str
    mm: int
    geometry: str
    legend: tuple[tuple[str, str], ...]
    root: TableReading | None
    tables: int
    leaves: int


class TlbRow(Reading):
    """A TLB entry.  ``stale``: it differs from what the tables say now (more rights, or another
    frame)."""

    cpu: int
    pcid: int
    page: Address
    pfn: int
    rights: str
    dirty: bool
    glob: bool
    pid: int = 0
    name: str = ""
    stale: bool = False


class TlbSlot(Reading):
    """An address-space slot of a CPU's ``tlb_state``: the ``context_id`` and ``tlb_gen`` that its
    entries are of."""

    slot: int
    context_id: int
    tlb_gen: int
    mm: int
    behind: int


class TlbCpu(Reading):
    """The TLB of a CPU and what Linux knows about it."""

    cpu: int
    curr: int
    loaded_mm: int
    root: Address
    pcid: int
    lazy: bool
    slots: tuple[TlbSlot, ...]
    entries: tuple[TlbRow, ...]


class TlbReading(Reading):
    """The TLBs of all CPUs."""

    cpus: tuple[TlbCpu, ...]
