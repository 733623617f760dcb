"""What things are called: tasks, address spaces, flag bits, entry bits.

Bits are tables (name and mask); nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from kemu.kernel.include import flags, sched_types
from kemu.kernel.include.mm_types import inode, mm_struct
from kemu.kernel.include.sched_types import task_struct
from kemu.kernel.include.system import system
from kemu.machine.geometry import EntryBits
from kemu.machine.mmu import PF_INSTR, PF_PROT, PF_RSVD, PF_USER, PF_WRITE

Names = Callable[[int], str] | None
"""pid -> what the user calls the task; None: take ``comm``."""


def name_of(task: task_struct, names: Names = None) -> str:
    """What the task is called."""
    return names(task.pid) if names is not None else task.comm


def mm_owner(mm: mm_struct | None) -> task_struct | None:
    """The task with the lowest pid whose address space this is."""
    if mm is None:
        return None
    return next((task for _, task in sorted(system.tasks.items()) if task.mm is mm), None)


def mm_label(mm: mm_struct | None, names: Names = None) -> tuple[int, str]:
    """(pid, name) of the owner; (0, "mm#3") for an mm that no task owns."""
    owner = mm_owner(mm)
    if owner is not None:
        return owner.pid, name_of(owner, names)
    return 0, "no mm" if mm is None else "init_mm" if mm is system.init_mm else f"mm#{mm.id}"


def path_of(node: inode) -> str:
    """The path under which a file is known, or its inode number."""
    known = (path for path, found in sorted(system.files.items()) if found is node)
    return next(known, f"{node.kind} inode {node.i_ino}")


# ---------------------------------------------------------------- tables of bits

Bits = tuple[tuple[str, int], ...]


def bit_names(table: Bits, word: int) -> tuple[str, ...]:
    """The names of the bits that are set in ``word``; bits without a name are one hex number at the
    end."""
    names = tuple(name for name, mask in table if word & mask)
    known = 0
    for _, mask in table:
        known |= mask
    return names + ((hex(word & ~known),) if word & ~known else ())


@cache
def _constants(prefix: str, leave_out: tuple[str, ...] = ("_",)) -> Bits:
    """The single-bit constants of the kernel with a prefix, lowest bit first."""
    found = [
        (name, value)
        for name, value in {**vars(flags), **vars(sched_types)}.items()
        if name.startswith(prefix)
        and not name.startswith(leave_out)
        and isinstance(value, int)
        and value.bit_count() == 1
    ]
    return tuple(sorted(found, key=lambda pair: pair[1]))


def page_flags(word: int) -> tuple[str, ...]:
    """PG_* names of ``page.flags`` without the prefix."""
    return tuple(name.removeprefix("PG_") for name in bit_names(_constants("PG_"), word))


def vm_flag_names(word: int) -> tuple[str, ...]:
    """VM_* names of ``vm_flags``."""
    return bit_names(_constants("VM_", ("VM_STACK", "VM_FAULT_")), word)


def task_flags(word: int) -> tuple[str, ...]:
    """PF_* names of ``task.flags``."""
    return bit_names(_constants("PF_"), word)


def mm_flags(word: int) -> tuple[str, ...]:
    """MMF_* names of ``mm.flags``, without the dump filter that every mm has."""
    return bit_names(_constants("MMF_"), word & ~flags.MMF_DUMP_FILTER_DEFAULT)


MNEMONICS = (
    (flags.VM_READ, "rd"),
    (flags.VM_WRITE, "wr"),
    (flags.VM_EXEC, "ex"),
    (flags.VM_SHARED, "sh"),
    (flags.VM_MAYREAD, "mr"),
    (flags.VM_MAYWRITE, "mw"),
    (flags.VM_MAYEXEC, "me"),
    (flags.VM_MAYSHARE, "ms"),
    (flags.VM_GROWSDOWN, "gd"),
    (flags.VM_UFFD_MISSING, "um"),
    (flags.VM_PFNMAP, "pf"),
    (flags.VM_MAYBE_GUARD, "gu"),
    (flags.VM_UFFD_WP, "uw"),
    (flags.VM_LOCKED, "lo"),
    (flags.VM_IO, "io"),
    (flags.VM_SEQ_READ, "sr"),
    (flags.VM_RAND_READ, "rr"),
    (flags.VM_DONTCOPY, "dc"),
    (flags.VM_DONTEXPAND, "de"),
    (flags.VM_LOCKONFAULT, "lf"),
    (flags.VM_ACCOUNT, "ac"),
    (flags.VM_NORESERVE, "nr"),
    (flags.VM_HUGETLB, "ht"),
    (flags.VM_SYNC, "sf"),
    (1 << 24, "ar"),
    (flags.VM_WIPEONFORK, "wf"),
    (flags.VM_DONTDUMP, "dd"),
    (flags.VM_SOFTDIRTY, "sd"),
    (flags.VM_MIXEDMAP, "mm"),
    (flags.VM_HUGEPAGE, "hg"),
    (flags.VM_NOHUGEPAGE, "nh"),
    (flags.VM_MERGEABLE, "mg"),
    (1 << 37, "ss"),
    (1 << 38, "ui"),
    (flags.VM_DROPPABLE, "dp"),
    (flags.VM_SEALED, "sl"),
)
"""The words of VmFlags, by bit (fs/proc/task_mmu.c: show_smap_vma_flags)."""


def vm_mnemonics(word: int) -> tuple[str, ...]:
    """The words of the VmFlags line."""
    return tuple(word_ for mask, word_ in MNEMONICS if word & mask)


def error_letters(code: int) -> str:
    """Bits of a page-fault error code: ``P|W|U``; ``0`` for none."""
    table = (("P", PF_PROT), ("W", PF_WRITE), ("U", PF_USER), ("R", PF_RSVD), ("I", PF_INSTR))
    return "|".join(letter for letter, mask in table if code & mask) or "0"


# ---------------------------------------------------------------- page-table entries


@cache
def entry_table(bits: EntryBits) -> tuple[tuple[str, str, int], ...]:
    """(letter, name, mask) of the bits that the format has, in the order in which they are
    shown."""
    first = "V" if bits.leaf_is_rwx else "P"
    table = (
        (first, "valid" if bits.leaf_is_rwx else "present", bits.present),
        ("R", "read", bits.read),
        ("W", "write", bits.write),
        ("X", "exec", bits.exec_),
        ("U", "user", bits.user),
        ("A", "accessed", bits.accessed),
        ("D", "dirty", bits.dirty),
        ("H", "huge", bits.huge),
        ("G", "global", bits.glob),
        ("S", "special", bits.special),
        ("N", "no execute", bits.nx),
    )
    return tuple(row for row in table if row[2])


def entry_legend(bits: EntryBits) -> tuple[tuple[str, str], ...]:
    """(letter, name) of the bits that the format has."""
    return tuple((letter, name) for letter, name, _ in entry_table(bits))


def entry_letters(bits: EntryBits, entry: int) -> str:
    """One letter per bit of the format, ``-`` where it is clear: ``PWUAD---N``."""
    return "".join(letter if entry & mask else "-" for letter, _, mask in entry_table(bits))


def entry_bits(bits: EntryBits, entry: int) -> tuple[str, ...]:
    """The names of the bits that are set."""
    return tuple(name for _, name, mask in entry_table(bits) if entry & mask)


def changed_bits(bits: EntryBits, old: int, new: int) -> str:
    """What changed between two entries: ``W cleared, A set``; ``""`` if no named bit did."""
    table = entry_table(bits)
    cleared = [letter for letter, _, mask in table if old & ~new & mask]
    put = [letter for letter, _, mask in table if new & ~old & mask]
    return ", ".join([*_all(cleared, "cleared"), *_all(put, "set")])


def _all(letters: Iterable[str], verb: str) -> list[str]:
    joined = " ".join(letters)
    return [f"{joined} {verb}"] if joined else []


STATE_LETTERS = "RSDTtXZP"
"""/proc's letter by the highest bit of the state, none set first (task_state_array)."""


WAITING = frozenset({1, 2})
"""init (in wait4) and kthreadd (in its loop) sleep in Linux wherever no CPU runs them; kemu keeps
them runnable, so that a command may name them."""


def state_letter(task: task_struct) -> str:
    """The letter of /proc/PID/stat (get_task_state)."""
    if task.state & sched_types.TASK_IDLE == sched_types.TASK_IDLE:
        return "I"
    if (
        task.pid in WAITING
        and not task.state | task.exit_state
        and all(cpu.curr is not task for cpu in system.cpus)
    ):
        return "S"
    return STATE_LETTERS[((task.state | task.exit_state) & 0x7F).bit_length()]
