"""The flag words of memory management: page flags, VMA flags, mm flags, fault flags and results.

Sources: include/linux/page-flags.h, mm.h, mm_types.h, sched/coredump.h.  As in Linux 6.18, without
the bits that no code here uses.
"""

from __future__ import annotations

# ---------------------------------------------------------------- struct page: flags

PG_locked = 1 << 0
PG_writeback = 1 << 1
PG_referenced = 1 << 2
PG_uptodate = 1 << 3
PG_dirty = 1 << 4
PG_lru = 1 << 5
PG_head = 1 << 6
PG_active = 1 << 8
PG_anon_exclusive = 1 << 11
PG_reserved = 1 << 13
PG_swapbacked = 1 << 17
PG_unevictable = 1 << 18
PG_mlocked = 1 << 20

# ---------------------------------------------------------------- vm_area_struct: vm_flags

VM_READ = 0x1
VM_WRITE = 0x2
VM_EXEC = 0x4
VM_SHARED = 0x8
VM_MAYREAD = 0x10
VM_MAYWRITE = 0x20
VM_MAYEXEC = 0x40
VM_MAYSHARE = 0x80
VM_GROWSDOWN = 0x100
VM_UFFD_MISSING = 0x200
VM_PFNMAP = 0x400
VM_MAYBE_GUARD = 0x800
VM_UFFD_WP = 0x1000
VM_LOCKED = 0x2000
VM_IO = 0x4000
VM_SEQ_READ = 0x8000
VM_RAND_READ = 0x10000
VM_DONTCOPY = 0x20000
VM_DONTEXPAND = 0x40000
VM_LOCKONFAULT = 0x80000
VM_ACCOUNT = 0x100000
VM_NORESERVE = 0x200000
VM_HUGETLB = 0x400000
VM_SYNC = 0x800000
VM_WIPEONFORK = 0x2000000
VM_DONTDUMP = 0x4000000
VM_SOFTDIRTY = 0
VM_MIXEDMAP = 0x10000000
VM_HUGEPAGE = 0x20000000
VM_NOHUGEPAGE = 0x40000000
VM_MERGEABLE = 0x80000000
VM_DROPPABLE = 1 << 40
VM_SEALED = 1 << 63

VM_ACCESS_FLAGS = VM_READ | VM_WRITE | VM_EXEC
VM_SPECIAL = VM_IO | VM_DONTEXPAND | VM_PFNMAP | VM_MIXEDMAP
VM_LOCKED_MASK = VM_LOCKED | VM_LOCKONFAULT
VM_STACK = VM_GROWSDOWN
VM_DATA_DEFAULT_FLAGS = VM_READ | VM_WRITE | VM_MAYREAD | VM_MAYWRITE | VM_MAYEXEC
VM_STACK_FLAGS = VM_STACK | VM_DATA_DEFAULT_FLAGS | VM_ACCOUNT
VM_STACK_INCOMPLETE_SETUP = VM_RAND_READ | VM_SEQ_READ
"""Marks the stack of a program that exec has not finished setting up."""

# ---------------------------------------------------------------- mm_struct: flags

MMF_DUMP_FILTER_DEFAULT = 0xC0
MMF_OOM_SKIP = 1 << 21
MMF_UNSTABLE = 1 << 22
MMF_MULTIPROCESS = 1 << 26
MMF_HAS_PINNED = 1 << 27
MMF_TOPDOWN = 1 << 31
MMF_INIT_MASK = MMF_DUMP_FILTER_DEFAULT | MMF_TOPDOWN

# ---------------------------------------------------------------- fault flags and results

VM_FAULT_OOM = 0x1
VM_FAULT_SIGBUS = 0x2
VM_FAULT_MAJOR = 0x4
VM_FAULT_SIGSEGV = 0x40
VM_FAULT_NOPAGE = 0x100
VM_FAULT_LOCKED = 0x200
VM_FAULT_RETRY = 0x400
VM_FAULT_ERROR = 0x873

FAULT_FLAG_WRITE = 0x1
FAULT_FLAG_ALLOW_RETRY = 0x4
FAULT_FLAG_KILLABLE = 0x10
FAULT_FLAG_TRIED = 0x20
FAULT_FLAG_USER = 0x40
FAULT_FLAG_INSTRUCTION = 0x100
FAULT_FLAG_INTERRUPTIBLE = 0x200
FAULT_FLAG_UNSHARE = 0x400
FAULT_FLAG_VMA_LOCK = 0x1000
FAULT_FLAG_DEFAULT = FAULT_FLAG_ALLOW_RETRY | FAULT_FLAG_KILLABLE | FAULT_FLAG_INTERRUPTIBLE
