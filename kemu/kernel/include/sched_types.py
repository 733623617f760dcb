"""Tasks, signals, CPUs, the zone: the structures around memory management (include/linux/sched.h,
sched/signal.h, mmzone.h).

    task_struct -> signal_struct, sighand_struct       shared by the threads of a process
    percpu      -> curr, loaded mm, LRU batches         one a CPU
    pglist_data -> zone -> free_area[order]             the buddy allocator's lists
                -> lruvec                               the LRU lists

This file has data only.
"""

from __future__ import annotations

from typing import Any

import attrs

from kemu.kernel.include.lists import list_head, list_node
from kemu.kernel.include.mm_types import files_struct, mm_struct, page
from kemu.machine.cpu import Cpu
from kemu.trace.barrier import Table, struct

TASK_RUNNING = 0
TASK_INTERRUPTIBLE = 1
TASK_UNINTERRUPTIBLE = 2
TASK_DEAD = 0x80
TASK_WAKEKILL = 0x100
TASK_NOLOAD = 0x400
TASK_KILLABLE = TASK_WAKEKILL | TASK_UNINTERRUPTIBLE
TASK_IDLE = TASK_UNINTERRUPTIBLE | TASK_NOLOAD
EXIT_DEAD = 0x10
EXIT_ZOMBIE = 0x20

PF_EXITING = 0x4
PF_FORKNOEXEC = 0x40
PF_SIGNALED = 0x400
PF_KTHREAD = 0x200000
PF_RANDOMIZE = 0x400000


SIGNAL_GROUP_EXIT = 0x4
SIGNAL_UNKILLABLE = 0x40


@struct
class sighand_struct:
    """What a process does on each signal: ``action`` signo -> "handle" or "ignore"; an absent
    signal has its default action."""

    count: int = 1
    action: Table[int, str] = attrs.Factory(lambda: Table("action"))


@struct
class signal_struct:
    """What the threads of a process share.  ``rlim`` resource -> (soft, hard) in bytes;
    ``cmin_flt``/``cmaj_flt`` count the faults of children that were waited for; ``thread_head``
    lists the threads in order."""

    live: int = 1
    nr_threads: int = 1
    flags: int = 0
    group_exit_code: int = 0
    cmin_flt: int = 0
    cmaj_flt: int = 0
    min_flt: int = 0
    maj_flt: int = 0
    oom_score_adj: int = 0
    rlim: Table[int, tuple[int, int]] = attrs.Factory(lambda: Table("rlim"))
    thread_head: tuple[Any, ...] = ()
    shared_pending: tuple[siginfo, ...] = ()
    is_child_subreaper: bool = False


@attrs.frozen
class siginfo:
    """A signal that was sent (``kernel_siginfo``): number, si_code, address (or 0), page-fault
    error code, sender's pid for kill(2)."""

    signo: int
    code: int = 0
    addr: int = 0
    error_code: int = 0
    pid: int = 0


X86_EFLAGS_FIXED, X86_EFLAGS_IF = 1 << 1, 1 << 9
"""Bits of RFLAGS: the one that is always set; interrupts enabled (uapi/asm/processor-flags.h)."""

USER_CS, USER_DS = 0x33, 0x2B
"""``__USER_CS`` and ``__USER_DS``, the selectors of user code and its stack
(arch/x86/include/asm/segment.h)."""


@struct
class pt_regs:
    """The user registers as the kernel saves them on its stack, each a u64
    (arch/x86/include/asm/ptrace.h). A task that was never in user mode has the values with which a
    program starts."""

    r15: int = 0
    r14: int = 0
    r13: int = 0
    r12: int = 0
    bp: int = 0
    bx: int = 0
    r11: int = 0
    r10: int = 0
    r9: int = 0
    r8: int = 0
    ax: int = 0
    cx: int = 0
    dx: int = 0
    si: int = 0
    di: int = 0
    orig_ax: int = 0
    ip: int = 0
    cs: int = USER_CS
    flags: int = X86_EFLAGS_IF | X86_EFLAGS_FIXED
    sp: int = 0
    ss: int = USER_DS


GENERAL_REGISTERS = (
    "ax", "bx", "cx", "dx", "si", "di", "bp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
)  # fmt: skip
"""The registers of ``pt_regs`` that are 0 when a program starts."""


@struct
class thread_struct:
    """A task's CPU state besides ``pt_regs`` (arch/x86/include/asm/processor.h): the bases of FS
    and GS (u64) and the selectors of the data segments (u16)."""

    es: int = 0
    ds: int = 0
    fsindex: int = 0
    gsindex: int = 0
    fsbase: int = 0
    gsbase: int = 0


@struct
class task_struct:
    """A task: a process or a thread (include/linux/sched.h).  ``mm`` is the address space it owns,
    ``active_mm`` the one whose tables are loaded while it runs.  ``vfork_done`` is the parent that
    waits for this child; ``blocked_in`` names the call in which the task waits, ``restart_block``
    how it continues when woken; ``io_buffers`` the (address, page) pairs of its long-term pins
    (io_uring's registered buffers)."""

    pid: int
    tgid: int
    comm: str
    mm: mm_struct | None = None
    active_mm: mm_struct | None = None
    group_leader: Any = None
    real_parent: Any = None
    parent: Any = None
    children: list_head = attrs.Factory(list_head)
    sibling: list_node = attrs.Factory(list_node)
    state: int = TASK_RUNNING
    exit_state: int = 0
    exit_code: int = 0
    exit_signal: int = 0
    flags: int = 0
    min_flt: int = 0
    maj_flt: int = 0
    vfork_done: Any = None
    set_child_tid: int = 0
    clear_child_tid: int = 0
    signal: signal_struct = attrs.Factory(signal_struct)
    sighand: sighand_struct = attrs.Factory(sighand_struct)
    pending: tuple[siginfo, ...] = ()
    blocked: int = 0
    files: files_struct | None = None
    regs: pt_regs = attrs.Factory(pt_regs)
    thread: thread_struct = attrs.Factory(thread_struct)
    pagefault_disabled: int = 0
    cpu: int = 0
    blocked_in: str = ""
    restart_block: tuple[Any, ...] = ()
    usage: int = 2
    io_buffers: tuple[tuple[int, page], ...] = ()
    trap_nr: int = 0
    error_code: int = 0
    cr2: int = 0

    def __repr__(self) -> str:
        return f"task({self.pid} {self.comm})"


# ---------------------------------------------------------------- the allocator and the CPUs

MAX_ORDER = 10


@struct
class free_area:
    """The free blocks of one order: a list and its length."""

    order: int
    free_list: list_head = attrs.Factory(list_head)
    nr_free: int = 0


@struct
class zone:
    """A range of frames with its own allocator.  ``nr_free_pages`` counts free frames; watermarks
    in pages."""

    free_area: tuple[free_area, ...] = ()
    nr_free_pages: int = 0
    managed_pages: int = 0
    watermark_min: int = 0
    watermark_low: int = 0
    watermark_high: int = 0


LRU_INACTIVE_ANON, LRU_ACTIVE_ANON, LRU_INACTIVE_FILE, LRU_ACTIVE_FILE, LRU_UNEVICTABLE = range(5)
LRU_NAMES = ("inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable")


@struct
class lruvec:
    """The LRU lists and the number of pages on each."""

    lists: tuple[list_head, ...] = attrs.Factory(lambda: tuple(list_head() for _ in LRU_NAMES))
    nr: Table[int, int] = attrs.Factory(lambda: Table("lru_size", dict.fromkeys(range(5), 0)))


@struct
class pglist_data:
    """A node: memory that is equally far from a CPU (NUMA)."""

    node_id: int
    node_zones: tuple[zone, ...]
    lruvec: lruvec


@struct
class percpu:
    """What Linux keeps per CPU: its node; the run queue's ``curr``, ``idle`` and ``prev_mm``; the
    TLB's software state (struct tlb_state: the loaded mm, its ASID slot, ``ctxs`` slot -> (ctx_id,
    tlb_gen)); the LRU batches, each holding one reference per page."""

    id: int
    hw: Cpu
    numa_node: int = 0
    curr: Any = None
    idle: Any = None
    prev_mm: mm_struct | None = None
    loaded_mm: mm_struct | None = None
    loaded_mm_asid: int = 0
    next_asid: int = 1
    is_lazy: bool = False
    ctxs: Table[int, tuple[int, int]] = attrs.Factory(lambda: Table("ctxs"))
    lru_add: tuple[page, ...] = ()
    lru_activate: tuple[page, ...] = ()
    mlock_fbatch: tuple[tuple[page, int], ...] = ()
    lru_lazyfree: tuple[page, ...] = ()


@struct
class vm_event_state:
    """Counters of /proc/vmstat."""

    PGFAULT: int = 0
    PGMAJFAULT: int = 0
    PGREUSE: int = 0
    PGALLOC: int = 0
    PGFREE: int = 0
    OOM_KILL: int = 0


@struct
class sysctl:
    """Settings of the machine, in the units of /proc/sys/vm; ``lru_batch`` (off: pages go to the
    LRU at once) and ``randomize_seed`` (None: no address randomisation) are kemu's own;
    ``fail_alloc`` N > 0 makes the N-th allocation of frames from now on fail (Linux:
    CONFIG_FAIL_PAGE_ALLOC), ``fail_slab`` that of an object (CONFIG_FAILSLAB); ``failed_slab`` is
    the cache in which it failed; ``planted`` is the number of the wrong kernel that runs (0: none).
    ``shmem_max_blocks`` is the size= of the tmpfs in pages, 0 for no limit. ``mmap_min_addr`` is
    the value in force: the security module's minimum, which /proc does not show."""

    max_map_count: int = 65530
    mmap_min_addr: int = 65536
    stack_guard_gap: int = 256
    overcommit_memory: int = 0
    fault_around_bytes: int = 65536
    lru_batch: bool = False
    randomize_seed: int | None = None
    fail_alloc: int = 0
    fail_slab: int = 0
    failed_slab: str = ""
    planted: int = 0
    shmem_max_blocks: int = 0


@struct
class counters:
    """The next pid, the next ids of objects and the commit charge.  ``vm_leaked`` pages of it were
    charged for the growth of stacks that are not accounted, and stay, as in Linux; ``random`` is
    the seed of the random numbers and the number of words drawn from it."""

    last_pid: int = 2
    next_mm: int = 1
    next_ctx: int = 1
    next_anon_vma: int = 1
    next_ino: int = 1
    vm_committed_as: int = 0
    vm_leaked: int = 0
    shmem_used_blocks: int = 0
    random: tuple[int, int] = (0, 0)
