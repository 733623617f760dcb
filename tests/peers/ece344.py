"""ECE344's "vms" scripts on kemu's kernel: its words for page tables by hand, as kernel calls and
words of RAM.

The scripts build Sv39 tables themselves (``new_page``, ``pte_set_ppn``, ``pte_valid_set`` ...) and
know no mappings; kemu's kernel, like Linux, takes a page's rights from a VMA and finds its owners
by rmap.  So the adapter

* makes a process for the first root; the root page is the one that its mm has;
* allocates a frame for each ``new_page``; what it becomes is decided by the level whose entry points to it;
* stores every entry by hand, word by word, where the script says, user bit added (the scripts have no supervisor);
* when a leaf becomes valid, maps that one page (fixed, private, anonymous) in the VMA tree, prepares its anon_vma, and counts
  the data page as a new anonymous page of it; ``pte_write_set`` is mprotect, which makes the entry
  writable;
* counts used frames as those taken since before the process was made, from the allocator's own number.

``fork_cow`` is fork.  ``fork_copy`` is fork and then, for each page of the child, the kernel's own
unsharing fault.
"""

from kemu.abi.uapi import MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, PROT_READ, PROT_WRITE
from kemu.kernel.include.flags import FAULT_FLAG_UNSHARE
from kemu.kernel.include.mm_types import MM_ANONPAGES, PAGE_SIZE, PGTY_table
from kemu.kernel.include.mmzone import nr_free_pages
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import Kernel
from kemu.kernel.kernel.sched import schedule_to
from kemu.kernel.mm.fault import handle_mm_fault
from kemu.kernel.mm.page_alloc import GFP_ZERO, alloc_page
from kemu.kernel.mm.rmap import anon_vma_prepare, folio_add_new_anon_rmap
from kemu.kernel.mm.util import inc_mm_counter
from kemu.kernel.mm.vma import vma_lookup
from kemu.machine.geometry import RISCV_SV39
from kemu.userland.script import Script

V, R, W, U = 1 << 0, 1 << 1, 1 << 2, 1 << 4
SHIFTS = {2: 30, 1: 21, 0: 12}


def roles(ops):
    """{page name: "root", "table" or "data"} of a script, from the entries that point to each."""
    found = {}
    for op in ops:
        word, *rest = op.split()
        if word == "pte_set_ppn":
            table, _, level, to = rest
            found[to] = "data" if level == "0" else "table"
            found.setdefault(table, "root")
    return found


class Machine:
    """One run of a script.  ``fatal`` is the signal that ended it, or None."""

    def __init__(self, ops):
        self.kernel = Kernel(mem=16 << 20, geometry=RISCV_SV39, record=False)
        self.kernel.activate()
        self.script = Script(self.kernel)
        self.roles = roles(ops)
        self.frames = {}
        self.tasks = {}
        self.pages = set()
        self.free_at_boot = nr_free_pages()
        self.active = None
        self.fatal = None

    def used(self):
        """Frames taken since the machine was booted."""
        return self.free_at_boot - nr_free_pages()

    def run(self, op):
        word, *args = op.split()
        getattr(self, f"op_{word}")(*args)

    # ------------------------------------------------ tables by hand

    def op_new_page(self, name):
        role = self.roles[name]
        if role == "root":
            task = self.tasks[name] = self.script.spawn("script")
            self.frames[name] = task.mm.pgd >> 12
            self.active = self.active or name
            return
        page = alloc_page(GFP_ZERO)
        self.frames[name] = page.pfn
        if role == "table":
            page.page_type = PGTY_table
            self.owner().mm.pgtables_bytes += PAGE_SIZE

    def owner(self):
        """The process whose tables the script builds: the first."""
        return next(iter(self.tasks.values()))

    def entry(self, table, va, level):
        """Physical address of the entry for ``va`` in the page ``table``."""
        return (self.frames[table] << 12) + ((int(va, 16) >> SHIFTS[int(level)]) & 511) * 8

    def op_pte_set_ppn(self, table, va, level, to):
        place = self.entry(table, va, level)
        system.phys.store(place, system.phys.load(place) & 0x3FF | self.frames[to] << 10)

    def set_bits(self, table, va, level, bits):
        place = self.entry(table, va, level)
        system.phys.store(place, system.phys.load(place) | bits)

    def op_pte_valid_set(self, table, va, level):
        self.set_bits(table, va, level, V)
        if level == "0":
            self.adopt(
                int(va, 16) & -PAGE_SIZE, system.phys.load(self.entry(table, va, level)) >> 10
            )

    def op_pte_read_set(self, table, va, level):
        self.set_bits(table, va, level, R | U)

    def op_pte_write_set(self, table, va, level):
        task = self.owner()
        page = int(va, 16) & -PAGE_SIZE
        assert (
            self.script.syscall(task, "mprotect", page, PAGE_SIZE, PROT_READ | PROT_WRITE).errno
            == 0
        )
        assert system.phys.load(self.entry(table, va, level)) & W

    def adopt(self, address, pfn):
        """The kernel learns of the data page at ``address``: a VMA, an anon_vma, one mapping, one
        page more."""
        task = self.owner()
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED
        entry = self.find_entry(task, address)
        kept = system.phys.load(entry)
        system.phys.store(entry, 0)
        assert (
            self.script.syscall(task, "mmap", address, PAGE_SIZE, PROT_READ, flags, -1, 0).value
            == address
        )
        system.phys.store(entry, kept)
        vma = vma_lookup(task.mm, address)
        assert anon_vma_prepare(vma) == 0
        folio_add_new_anon_rmap(system.mem_map[pfn], vma, address)
        inc_mm_counter(task.mm, MM_ANONPAGES)
        self.pages.add(address)

    def find_entry(self, task, address):
        table = task.mm.pgd
        for shift in (30, 21):
            table = system.phys.load(table + ((address >> shift) & 511) * 8) >> 10 << 12
        return table + ((address >> 12) & 511) * 8

    # ------------------------------------------------ running

    def op_switch(self, root):
        self.active = root

    def op_write(self, va, value, outcome=""):
        self.access(
            self.script.store(self.tasks[self.active], int(va, 16), bytes([int(value)])), outcome
        )

    def op_read(self, va, value, outcome=""):
        if value == "fatal":
            value, outcome = None, "fatal"
        got = self.script.load(self.tasks[self.active], int(va, 16), 1)
        self.access(got, outcome)
        assert value is None or got.data == bytes([int(value)])

    def access(self, got, outcome):
        self.fatal = got.signal
        assert (got.signal is not None) == (outcome == "fatal"), got

    def op_fork_cow(self, child):
        parent = self.tasks[self.active]
        pid = self.script.syscall(parent, "fork").value
        self.tasks[child] = system.tasks[pid]

    def op_fork_copy(self, child):
        self.op_fork_cow(child)
        task = self.tasks[child]
        schedule_to(task)
        for address in sorted(self.pages):
            assert not handle_mm_fault(vma_lookup(task.mm, address), address, FAULT_FLAG_UNSHARE)

    # ------------------------------------------------ expectations

    def op_expect(self, what, *args):
        getattr(self, f"expect_{what}")(*args)

    def expect_used_pages(self, count):
        assert self.used() == int(count)

    def expect_distinct_roots(self, *names):
        assert len({self.tasks[name].mm.pgd for name in names}) == len(names)

    def expect_same_index(self, *args):
        *vas, level = args
        assert len({(int(va, 16) >> SHIFTS[int(level)]) & 511 for va in vas}) == 1
