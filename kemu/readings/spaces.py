"""Address spaces: mm, VMAs, and the numbers of /proc."""

from __future__ import annotations

from kemu.readings.base import Address, Addresses, Pairs, Reading, Word


class MmHolder(Reading):
    """A holder of a reference to an mm: a task (``what`` "task"), a CPU that borrowed it ("lazy"),
    a task that exited on a CPU ..."""

    what: str
    pid: int
    name: str
    count: int = 1


class MmReading(Reading):
    """An ``mm_struct``. Sizes in pages, ``pgtables_bytes`` in bytes, ``rss`` by counter in pages,
    ``layout`` addresses by field."""

    id: int
    pid: int
    name: str
    pgd: Address
    mm_users: int
    mm_count: int
    users: tuple[MmHolder, ...]
    counts: tuple[MmHolder, ...]
    map_count: int
    total_vm: int
    locked_vm: int
    pinned_vm: int
    data_vm: int
    exec_vm: int
    stack_vm: int
    pgtables_bytes: int
    rss: Pairs
    hiwater_rss: int
    hiwater_vm: int
    layout: Addresses
    context_id: int
    tlb_gen: int
    cpumask: tuple[int, ...]
    flags: tuple[str, ...]
    exe: str = ""


class VmaReading(Reading):
    """One VMA as /proc/PID/maps shows it. ``perm``: "rw-p"; ``offset``: bytes into the file, 0
    without a file; ``device`` "00:05"."""

    start: Address
    end: Address
    perm: str
    offset: int = 0
    device: str = "00:00"
    inode: int = 0
    name: str = ""

    @property
    def pages(self) -> int:
        """Pages in the VMA."""
        return (self.end - self.start) >> 12


class AnonLink(Reading):
    """An anon_vma on the chain of a VMA; ``own``: new pages of the VMA belong to it."""

    id: int
    root: int
    parent: int
    refcount: int
    num_children: int
    num_active_vmas: int
    vmas: int
    own: bool


class VmaDetail(Reading):
    """One VMA in full. ``flags``: the VmFlags words of smaps; ``names``: VM_* names; ``pgoff`` in
    pages; ``kind``: what memory it maps (anonymous, a ``vm_ops`` name); ``resident``: pages with a
    present entry."""

    pid: int
    name: str
    mm: int
    vma: VmaReading
    kind: str
    flags: tuple[str, ...]
    names: tuple[str, ...]
    vm_flags: Word
    page_prot: Word
    pgoff: int
    resident: int
    anon: tuple[AnonLink, ...]
    before: VmaReading | None = None
    after: VmaReading | None = None


class AddressSpace(Reading):
    """The VMAs of a task (/proc/PID/maps), lowest first.  ``mm`` 0: the task has no address
    space."""

    pid: int
    name: str
    mm: int
    vmas: tuple[VmaReading, ...]
    gate: VmaReading | None = None


class SmapsCounts(Reading):
    """What smaps counts, in bytes (Pss rounded down).  In the order of the kernel's text."""

    rss: int = 0
    pss: int = 0
    pss_dirty: int = 0
    pss_anon: int = 0
    pss_file: int = 0
    pss_shmem: int = 0
    shared_clean: int = 0
    shared_dirty: int = 0
    private_clean: int = 0
    private_dirty: int = 0
    referenced: int = 0
    anonymous: int = 0
    ksm: int = 0
    lazyfree: int = 0
    anon_huge_pages: int = 0
    shmem_pmd_mapped: int = 0
    file_pmd_mapped: int = 0
    shared_hugetlb: int = 0
    private_hugetlb: int = 0
    swap: int = 0
    swap_pss: int = 0
    locked: int = 0


class SmapsEntry(Reading):
    """One VMA of /proc/PID/smaps; ``flags``: the words of VmFlags."""

    vma: VmaReading
    counts: SmapsCounts
    flags: tuple[str, ...]


class Smaps(Reading):
    """/proc/PID/smaps."""

    pid: int
    name: str
    entries: tuple[SmapsEntry, ...]


class SmapsRollup(Reading):
    """/proc/PID/smaps_rollup: the totals, from the first VMA's ``start`` to the last one's
    ``end``."""

    pid: int
    name: str
    start: Address
    end: Address
    counts: SmapsCounts


class VmStatus(Reading):
    """The Vm lines of /proc/PID/status, in bytes."""

    peak: int
    size: int
    locked: int
    pinned: int
    hwm: int
    rss: int
    rss_anon: int
    rss_file: int
    rss_shmem: int
    data: int
    stack: int
    exe: int
    lib: int
    pte: int
    swap: int


class StatusReading(Reading):
    """/proc/PID/status.  ``vm``: None for a kernel thread and a zombie; signal sets are 64-bit
    masks."""

    name: str
    state: str
    tgid: int
    pid: int
    ppid: int
    fd_size: int
    kthread: bool
    vm: VmStatus | None
    threads: int
    sig_queued: int
    sig_limit: int
    pending: Word
    shared_pending: Word
    blocked: Word
    ignored: Word
    caught: Word
    capabilities: Word
    cpus: int


class StatReading(Reading):
    """/proc/PID/stat: the values of the 52 fields by name, in order; ``comm``, the second, and
    ``state``, the third, are not numbers."""

    pid: int
    comm: str
    state: str
    fields: Pairs


class StatmReading(Reading):
    """/proc/PID/statm, in pages."""

    size: int
    resident: int
    shared: int
    text: int
    data: int


class PagemapPage(Reading):
    """One virtual page of /proc/PID/pagemap, with what /proc/kpageflags and /proc/kpagecount say
    about its frame.

    ``word``: the 64 bits; ``letters``: P present, S swap, F file or shared, X mapped exactly once,
    W uffd-wp, G guard; ``kpageflags``: U D M a b u m E ... (see docs/json.md); ``mapcount``: None
    for the zero page."""

    address: Address
    word: Word
    letters: str
    pfn: int | None = None
    zero: bool = False
    mapcount: int | None = None
    kpageflags: str = ""


class Pagemap(Reading):
    """The pages of a range whose pagemap word is not zero."""

    pid: int
    name: str
    start: Address
    end: Address
    pages: tuple[PagemapPage, ...]


class Region(Reading):
    """A part of the address space.  ``kind``: user, hole, kernel; vma and mapped lie within one of
    these."""

    start: Address
    end: Address
    kind: str
    what: str
    perm: str = ""


class LayoutReading(Reading):
    """The whole address space of a task, lowest first: the regions of the architecture with its
    VMAs placed in them."""

    pid: int
    name: str
    geometry: str
    va_bits: int
    regions: tuple[Region, ...]
